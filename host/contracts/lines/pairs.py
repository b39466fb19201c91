"""Sorts out spans that are right beyond doubt: see :mod:`.sieves`.

A begin that an end follows is a pair, whatever else is open: pairs can be taken out, and the rest has the same spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.host.contracts.lines.line import NEVER, NOTHING, Gaps, Ground, Line, Lines, Sieved, each, gaps_of, touched
from hypermon.host.contracts.lines.sieves import Found, gathered, node_of, sieved_by

__all__ = ["Pairs", "brief_spans", "regular_pairs", "separate", "shares"]

_GAPS = "select node, lo, hi from gn order by node, lo"


@dataclass
class Pairs:
    """Begins and ends of a node, in order.

    Parameters
    ----------
    until : the next end after each begin, if there is one. ``place``: its number, or the number of ends.
    apart : the pairs that can be taken out.
    """

    begins: Line
    ends: Line
    place: npt.NDArray[np.intp]
    until: Line
    apart: npt.NDArray[np.bool_]

    def rest(self, node: int) -> tuple[Found, Found]:
        """The begins and the ends that are not taken out."""
        used = np.zeros(len(self.ends), np.bool_)
        used[self.place[self.apart]] = True
        return (_marks(self.begins[~self.apart], node), _marks(self.ends[~used], node))


def _marks(line: Line, node: int) -> Found:
    return NOTHING, {"t": line, "node": node_of(node, len(line)), "key": np.zeros(len(line), np.int32)}


def _paired(begins: Line, ends: Line) -> Pairs:
    place = np.searchsorted(ends, begins, "right")
    apart = place < len(ends)
    apart[:-1] &= place[1:] > place[:-1]
    until = ends.take(place, mode="clip") if len(ends) else begins
    return Pairs(begins, ends, place, until, apart)


def brief_spans(trace: Ground, begins: Lines, ends: Lines, least: int, most: int | None
                ) -> tuple[Sieved, Line, list[tuple[int, int, int]]]:
    """For ``duration``: creates ``begins`` and ``ends``, without pairs from ``least`` to ``most`` apart.

    Returns what was sorted out, the durations, and of each node the longest of them with its begin and the node.
    """
    gaps = trace.gap_rows(_GAPS)

    def one(node: int) -> tuple[Pairs, Sieved, Line, list[tuple[int, int, int]]]:
        pairs = _paired(begins[node], ends[node])
        values = pairs.until - pairs.begins
        pairs.apart &= values >= least
        if most is not None:
            pairs.apart &= values <= most
        pairs.apart[touched(pairs.begins, pairs.until, gaps_of(gaps, node))] = False
        sieved = sieved_by(~pairs.apart, values)
        durations = values[pairs.apart]
        longest = [(int(durations.max()), int(pairs.begins[pairs.apart][durations.argmax()]), node)] if len(
            durations) else []
        return pairs, sieved, durations, longest

    found = each(one, range(len(begins)))
    _give_rest(trace, "begins", "ends", [own[0] for own in found])
    return (sum((own[1] for own in found), NOTHING), np.concatenate([own[2] for own in found]),
            [one for own in found for one in own[3]])


def _give_rest(trace: Ground, begins: str, ends: str, pairs: Sequence[Pairs]) -> None:
    rests = [own.rest(node) for node, own in enumerate(pairs)]
    gathered(trace, begins, [own for own, _ in rests])
    gathered(trace, ends, [own for _, own in rests])


def regular_pairs(begins: Line, ends: Line, gaps: tuple[Line, Line]) -> Pairs:
    """The pairs between which a node is outside for sure: another end came before, and there is no gap since that one.

    To take them out changes nothing about when a node is inside, but for themselves.
    """
    pairs = _paired(begins, ends)
    place = pairs.place
    pairs.apart[1:] &= place[1:] > place[:-1]
    pairs.apart[:1] &= place[:1] > 0
    if len(ends):
        pairs.apart[touched(ends.take(place - 1, mode="clip"), pairs.until, gaps)] = False
    return pairs


def _keep_close(pairs: Pairs, gaps: tuple[Line, Line], last: int, slack: int) -> None:
    """Keeps pairs in the tables if the time outside just before or after them may be nothing (stamps are uncertain)."""
    if len(pairs.ends):
        pairs.apart &= pairs.begins - pairs.ends.take(pairs.place - 1, mode="clip") >= slack
    later = np.append(pairs.begins, last)
    pairs.apart &= later[np.searchsorted(pairs.begins, pairs.until, "right")] - pairs.until >= slack
    pairs.apart[touched(pairs.begins, pairs.until + slack, gaps)] = False


def shares(trace: Ground, begins: Lines, ends: Lines, slack: int, ends_ps: Sequence[int]) -> None:
    """For ``share``: creates ``begins`` and ``ends`` without regular pairs, and ``regular``: for how long each node is
    inside in these at least, and at most: ``sure`` and ``may``, and how many they are: ``pairs``.

    Parameters
    ----------
    slack : by how much the difference of two times may be off, or more.
    ends_ps : of each node, when its recording ends.
    """
    gaps = trace.gap_rows(_GAPS)

    def one(node: int) -> tuple[Pairs, int, int, int]:
        pairs = regular_pairs(begins[node], ends[node], gaps_of(gaps, node))
        _keep_close(pairs, gaps_of(gaps, node), ends_ps[node], slack)
        values = (pairs.until - pairs.begins)[pairs.apart]
        return pairs, int(np.maximum(values - slack, 0).sum()), int(values.sum()) + slack * len(values), len(values)

    found = each(one, range(len(begins)))
    _give_rest(trace, "begins", "ends", [own[0] for own in found])
    trace.give("regular", node=np.arange(len(found), dtype=np.int16), sure=np.array([own[1] for own in found]),
               may=np.array([own[2] for own in found]), pairs=np.array([own[3] for own in found]))


def separate(trace: Ground, groups: Sequence[tuple[Lines, Lines]], gaps: Sequence[Gaps], starts: Sequence[int],
             slack: int) -> None:
    """For ``exclusion``: creates ``begins_LANE`` and ``ends_LANE`` without the regular pairs that are far from all that
    is inside, or not known, in other lanes.

    Parameters
    ----------
    gaps : of each lane, those of each node, merged.
    starts : of each node, when its recording begins.
    slack : by how much the difference of two times may be off, or more.
    """
    nodes = range(len(groups[0][0]))
    lanes = [each(lambda node, lane=lane: regular_pairs(  # type: ignore[misc]
        groups[lane][0][node], groups[lane][1][node], gaps_of(gaps[lane], node)), nodes) for lane in range(len(groups))]
    doubtful = _union([_not_apart(own, starts[node], gaps_of(gaps[lane], node))
                       for lane, pairs in enumerate(lanes) for node, own in enumerate(pairs)])
    near = _near_each_other(lanes[0], slack) if len(lanes) == 1 else []
    unions = each(lambda lane: _union([(own.begins[own.apart], own.until[own.apart]) for own in lanes[lane]]),
                  range(len(lanes) if len(lanes) > 1 else 0))
    for lane, pairs in enumerate(lanes):
        others = [union for other, union in enumerate(unions) if other != lane]

        def keep(node: int, pairs: list[Pairs] = pairs, others: list[tuple[Line, Line]] = others) -> None:
            own = pairs[node]
            # Few spans: which pairs they meet. Then many: which of them each pair meets.
            own.apart[touched(own.begins - slack, own.until + slack, doubtful)] = False
            for union in others:
                own.apart &= ~_meets(own, union, slack)
            if near:
                own.apart &= ~near[node]

        each(keep, nodes)
        _give_rest(trace, f"begins_{lane}", f"ends_{lane}", pairs)


def _not_apart(pairs: Pairs, start: int, gaps: tuple[Line, Line]) -> tuple[Line, Line]:
    """When a node may be inside, but for its regular pairs: from each other begin to the next end, from each gap to the
    next begin or end, and before the first one."""
    (_, begins), (_, ends) = pairs.rest(0)
    opened, closed = begins["t"], np.append(ends["t"], NEVER)
    marks = np.append(np.sort(np.concatenate((opened, ends["t"]))), NEVER)
    lo, hi = gaps
    return (np.concatenate((opened, lo, [start])),
            np.concatenate((closed[np.searchsorted(ends["t"], opened, "right")],
                            marks[np.searchsorted(marks[:-1], hi, "right")], marks[:1])))


def _union(spans: Sequence[tuple[Line, Line]]) -> tuple[Line, Line]:
    """Spans in order, joined where they touch."""
    lo, hi = (np.concatenate([np.empty(0, np.int64), *(span[k] for span in spans)]) for k in (0, 1))
    # Before a begin there is a hole if as many spans have ended as began.
    lo.sort(kind="stable")
    hi.sort(kind="stable")
    first = np.ones(len(lo), np.bool_)
    first[1:] = lo[1:] > hi[:-1]
    return lo[first], hi[np.append(first[1:], np.ones(min(len(lo), 1), np.bool_))]


def _near_each_other(pairs: Sequence[Pairs], slack: int) -> list[npt.NDArray[np.bool_]]:
    """Of each node, which pairs are as near to a pair of any node that is apart."""
    begins = np.concatenate([own.begins[own.apart] for own in pairs])
    order = np.argsort(begins, kind="stable")
    begins, until = begins[order], np.concatenate([own.until[own.apart] for own in pairs])[order]
    found = np.zeros(len(order), np.bool_)
    found[order[1:]] = begins[1:] - slack <= np.maximum.accumulate(until)[:-1]
    found[order[:-1]] |= begins[1:] - slack <= until[:-1]
    near = [np.zeros(len(own.begins), np.bool_) for own in pairs]
    sizes = np.cumsum([np.count_nonzero(own.apart) for own in pairs])[:-1]
    for own, mask, part in zip(pairs, near, np.split(found, sizes), strict=True):
        mask[own.apart] = part
    return near


def _meets(pairs: Pairs, spans: tuple[Line, Line], slack: int) -> npt.NDArray[np.bool_]:
    """Which pairs are nearer to any of some spans than times are uncertain."""
    lo, hi = spans
    if not len(lo):
        return np.zeros(len(pairs.begins), np.bool_)
    last = np.searchsorted(lo, pairs.until + slack, "right")
    return (last > 0) & (hi.take(last - 1, mode="clip") >= pairs.begins - slack)
