"""Sorts out events that are answered, or that nothing follows, beyond doubt: see :mod:`.sieves`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.host.contracts.lines.line import (
    NEVER,
    Ground,
    Line,
    Lines,
    Sieved,
    after,
    before,
    each,
    gaps_of,
    merged,
    touched,
)
from hypermon.host.contracts.lines.sieves import Found, gathered, node_of, sieved_by

__all__ = ["Reach", "answered", "between", "mirrored", "next_to_gaps", "span_of_gaps"]


@dataclass(frozen=True)
class Reach:
    """When an answer is in time.

    Parameters
    ----------
    least, most : after the event that it answers.
    own, apart : by how much the difference of two times of one node, or of any, may be off.
    alone : only answers of the same node count.
    absent : there must be none.
    """

    least: int
    most: int
    own: int
    apart: int
    alone: bool
    absent: bool

    @property
    def first(self) -> int:
        """Of the same node: from when on an answer may be in time, and is in time for sure."""
        return max(self.least - self.own, 1)

    @property
    def after_own(self) -> int:
        return max(self.least + self.own, 1) if self.least else 1


def mirrored(lines: Lines) -> Lines:
    """The lines of negated times."""
    return [-line[::-1] for line in lines]


def answered(trace: Ground, asked: Lines, answers: Lines, reach: Reach) -> Sieved:
    """Creates ``staged``: ``t``, ``node``, ``key``; ``value``, the time until the next answer; ``sure``, ``may``: an
    answer is, or may be, in time. The tables ``gn`` and ``gm`` are about the answers."""
    gaps = trace.gap_rows("select node, lo, hi from gn order by node, lo" if reach.alone else
                          "select lo, hi from gm order by lo")
    every = answers if reach.alone else [merged(answers)]

    def one(node: int) -> Found:
        line = asked[node]
        if reach.alone:
            return _of_one_node(line, node, every[node], reach, gaps_of(gaps, node))
        return _of_all_nodes(line, node, answers[node], every[0], reach, gaps_of(gaps))

    return gathered(trace, "staged", each(one, range(len(asked))))


def _of_one_node(line: Line, node: int, answers: Line, reach: Reach, gaps: tuple[Line, Line]) -> Found:
    high = reach.most + reach.own
    value = after(answers, line + reach.first)
    value -= line
    if reach.first == reach.after_own:
        sure = value <= reach.most - reach.own
    else:
        sure = after(answers, line + reach.after_own) - line <= reach.most - reach.own
    if reach.absent:
        keep = value <= high
        keep |= sure
        keep[touched(line + reach.first, line + high, gaps)] = True
    else:
        keep = ~sure
    rest = np.flatnonzero(keep)
    return sieved_by(keep, None if reach.absent else value), _staged(
        line, node, rest, value[rest], value[rest] <= high, sure[rest])


def _of_all_nodes(line: Line, node: int, own: Line, every: Line, reach: Reach, gaps: tuple[Line, Line]) -> Found:
    low, high = reach.least - reach.apart, reach.most + reach.apart
    if reach.absent:
        keep = after(every, line + low) - line <= high
        keep[touched(line + low, line + high, gaps)] = True
        rest = np.flatnonzero(keep)
        sieved = sieved_by(keep)
    else:
        value = after(every, line + max(reach.least, 1))
        value -= line
        keep = value < reach.least + reach.apart
        keep |= value > reach.most - reach.apart
        rest = np.flatnonzero(keep)
        sieved = sieved_by(keep, value)
    times = line[rest]
    value = after(every, times + max(reach.least, 1)) - times
    sure = ((value >= reach.least + reach.apart) & (value <= reach.most - reach.apart)
            | (after(every, times + (reach.least + reach.apart)) - times <= reach.most - reach.apart)
            | (after(own, times + reach.after_own) - times <= reach.most - reach.own))
    if low > 0:
        may = after(every, times + low) - times <= high
    else:
        # An answer of the same node that came before is none, however uncertain the times of other nodes.
        may = (np.searchsorted(every, times + high, "right") - np.searchsorted(every, times + low)
               > np.searchsorted(own, times, "right") - np.searchsorted(own, times + low))
    return sieved, _staged(line, node, rest, value, may, sure)


def _staged(line: Line, node: int, rest: npt.NDArray[np.int64], value: Line, may: npt.NDArray[np.bool_],
            sure: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[np.generic]]:
    value = np.where(value > NEVER // 2, NEVER, value)
    return {"t": line[rest], "node": node_of(node, len(rest)), "key": np.zeros(len(rest), np.int32), "value": value,
            "may": may, "sure": sure}


def next_to_gaps(trace: Ground, table: str, condition: str, lines: Lines, edge: str, off: int, alone: bool,
                 find: Callable[[Line, Line], Line] = after) -> None:
    """Creates a table (``id``, ``t``): of each gap in ``g``, the first event ``off`` after one of its ends; or with
    :func:`.before`, the last one before."""
    gaps = trace.gap_rows(f"select id, node, {edge} as edge from g where {condition}")
    trace.give(table, id=gaps["id"], t=_beside(find, lines, gaps["node"], gaps["edge"] + off, alone))


def _beside(find: Callable[[Line, Line], Line], lines: Lines, nodes: Line, times: Line, alone: bool) -> Line:
    """The event after, or before, each of some times: of the node, or of all."""
    if not alone:
        return find(merged(lines), times)
    found = np.full(len(times), NEVER)
    for node, line in enumerate(lines):
        mine = nodes == node
        found[mine] = find(line, times[mine])
    return found


def between(trace: Ground, events: Lines, begins: Lines, ends: Lines, step: int, alone: bool) -> Sieved:
    """For ``absence`` with ``between``: creates ``staged`` (``t``, ``node``; ``b_sure``, ``b_may``, ``c_sure``,
    ``c_may``: the last begin and end that came before for sure, or that may have; ``c_next``: the next end). The table
    ``gb`` is about the begins."""
    gaps = trace.gap_rows(f"select {'node, ' * alone}lo, hi from gb order by {'node, ' * alone}lo")
    opened, closed = (lines if alone else [merged(lines)] * len(lines) for lines in (begins, ends))
    may = 0 if alone else step - 1

    def one(node: int) -> Found:
        line, first, last = events[node], opened[node], closed[node]
        ended = before(last, line - step)
        begun = before(first, line + may)
        keep = ended == -NEVER
        keep |= begun > ended - step
        keep[touched(ended - may, line + step, gaps_of(gaps, node if alone else None))] = True
        rest = np.flatnonzero(keep)
        times = line[rest]
        return sieved_by(keep), {
            "t": times, "node": node_of(node, len(rest)), "b_sure": before(first, times - step), "b_may": begun[rest],
            "c_sure": ended[rest], "c_may": before(last, times + may), "c_next": after(last, times + step)}

    return gathered(trace, "staged", each(one, range(len(events))))


def span_of_gaps(trace: Ground, begins: Lines, ends: Lines, step: int, alone: bool) -> None:
    """For ``absence`` with ``between``: creates ``edges`` (``id``; ``c_sure``, ``b_may``): of each gap in ``hiding``,
    the last end before it, and the last begin up to its end."""
    gaps = trace.gap_rows("select id, node, lo, hi from hiding")
    trace.give("edges", id=gaps["id"], c_sure=_beside(before, ends, gaps["node"], gaps["lo"] - step, alone),
               b_may=_beside(before, begins, gaps["node"], gaps["hi"] + step, alone))
