"""Sorts out, by the lines of events, the instances of a rule that are right beyond doubt.

They are far from all gaps, and within all limits by more than times are uncertain. The judges' queries are about the
rest, which is small in most runs.

Each function creates a table of this rest, with the columns that the judge needs, and returns what was sorted out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.contracts.lines.line import (
    INNER,
    NEVER,
    NOTHING,
    Ground,
    Line,
    Lines,
    Sieved,
    each,
    gaps_of,
    touched,
)

__all__ = ["Found", "around_gaps", "gathered", "in_order", "node_of", "quantiles", "rare", "sieved_by", "steady",
           "windows"]

Columns = dict[str, npt.NDArray[Any]]
Found = tuple[Sieved, Columns]


def gathered(trace: Ground, table: str, found: Sequence[Found]) -> Sieved:
    """Creates a table of the rests of all nodes, and adds up what was sorted out."""
    trace.give(table, **{name: np.concatenate([rest[name] for _, rest in found]) for name in found[0][1]})
    total = NOTHING
    for sieved, _ in found:
        total += sieved
    return total


def node_of(node: int, count: int) -> npt.NDArray[np.int16]:
    """The column ``node`` of a rest."""
    return np.full(count, node, np.int16)


def sieved_by(keep: npt.NDArray[np.bool_], values: Line | None = None) -> Sieved:
    """What is sorted out: all that is not kept."""
    count = len(keep) - int(np.count_nonzero(keep))
    return Sieved(count, int(values.max(where=~keep, initial=-NEVER)) if count and values is not None else None)


def steady(trace: Ground, lines: Lines, every: int, margin: int) -> tuple[Sieved, Line]:
    """For ``period``: creates ``known`` (``t``, ``node``, ``d``, the time since the event before). Also returns the
    deviations of all intervals."""
    gaps = trace.gap_rows("select node, lo, hi from gn order by node, lo")

    def one(node: int) -> tuple[Found, Line]:
        line = lines[node]
        deviations = np.diff(line)
        deviations -= every
        values = np.abs(deviations)
        keep = values > margin
        keep[touched(line[:-1], line[1:], gaps_of(gaps, node))] = True
        rest = np.flatnonzero(keep)
        return (sieved_by(keep, values), {"t": line[1:][rest], "node": node_of(node, len(rest)),
                                          "d": deviations[rest] + every}), deviations

    found = each(one, range(len(lines)))
    return gathered(trace, "known", [own for own, _ in found]), np.concatenate([own for _, own in found])


def quantiles(values: Line, hundredths: Sequence[int]) -> list[int | None]:
    """Quantiles as DuckDB's ``quantile_disc`` defines them. ``values`` is reordered."""
    if not len(values):
        return [None] * len(hundredths)
    places = [max(-(-len(values) * part // 100), 1) - 1 for part in hundredths]
    values.partition(places)
    return [int(values[place]) for place in places]


def windows(trace: Ground, lines: Lines, most: int, length: int) -> Sieved:
    """For ``rate`` with ``max``: creates ``windows``, those that begin at an event (``t``, ``node``, ``beyond``, the
    event that is ``most`` later, and ``seen``, the events within ``length``)."""
    gaps = trace.gap_rows("select node, lo, hi from gn order by node, lo")

    def one(node: int) -> Found:
        line = lines[node]
        beyond = np.full(len(line), NEVER)
        beyond[:-most] = line[most:]
        keep = beyond - line < length
        keep[1:] |= line[1:] == line[:-1]
        keep[touched(line, line + (length - 1), gaps_of(gaps, node))] = True
        rest = np.flatnonzero(keep)
        times = line[rest]
        return sieved_by(keep), {
            "t": times, "node": node_of(node, len(rest)), "beyond": beyond[rest],
            "seen": np.searchsorted(line, times + length) - np.searchsorted(line, times)}

    return gathered(trace, "windows", each(one, range(len(lines))))


def around_gaps(trace: Ground, lines: Lines, length: int, slack: int) -> None:
    """For ``rate`` with ``max``: creates ``near``, how many events were seen around each gap (``id``, ``seen``)."""
    gaps = trace.gap_rows(f"select id, node, lo, hi from g where {INNER}")
    seen = np.zeros(len(gaps["id"]), np.int64)
    for node, line in enumerate(lines):
        mine = gaps["node"] == node
        seen[mine] = np.searchsorted(line, gaps["hi"][mine] + length) - np.searchsorted(line, gaps["lo"][mine] - slack)
    trace.give("near", id=gaps["id"], seen=seen)


def rare(trace: Ground, lines: Lines, extents: Mapping[int, tuple[int, int]], least: int, enough: int, far: int
         ) -> Sieved:
    """For ``rate`` with ``min``: creates ``gone`` (``t``, ``node``, and ``until``, the event that is ``least`` later),
    of events and of the start of the recording; and ``probes`` (``t``, ``node``, ``seen``), the
    events seen up to ``far`` after each of these, and after each gap.

    extents : of the nodes that the rule is about, the start and the end of the recording.
    """
    gaps = trace.gap_rows(f"select node, hi from g where {INNER}")

    def one(node: int) -> tuple[Found, Found]:
        line, (start, end) = lines[node], extents.get(node, (0, 0))
        times = np.concatenate(([start], line, [end])) if node in extents else line[:0]
        until = np.full(max(len(times) - 1, 0), end)
        later = times[least:]
        until[:len(later)] = later
        keep = until - times[:-1] > enough
        keep |= times[1:] == times[:-1]
        rest = np.flatnonzero(keep)
        probes = np.concatenate((times[rest], gaps["hi"][(gaps["node"] == node) & (node in extents)]))
        seen = np.searchsorted(line, probes + far, "right") - np.searchsorted(line, probes, "right")
        return (sieved_by(keep), {"t": times[rest], "node": node_of(node, len(rest)), "until": until[rest]}), (
            NOTHING, {"t": probes, "node": node_of(node, len(probes)), "seen": seen})

    found = each(one, range(len(lines)))
    gathered(trace, "probes", [own for _, own in found])
    return gathered(trace, "gone", [own for own, _ in found])


def in_order(trace: Ground, lines: Sequence[Lines]) -> Sieved:
    """For ``order``: creates ``placed`` (``t``, ``node``, ``pos`` in the list, and of the neighbours ``before``,
    ``since``, ``after``; -1 or null if there is none)."""
    gaps = trace.gap_rows("select node, lo, hi from gn order by node, lo")

    def one(node: int) -> Found:
        times = np.concatenate([own[node] for own in lines])
        order = np.argsort(times, kind="stable")
        times = times[order]
        place = np.repeat(np.arange(len(lines), dtype=np.int8), [len(own[node]) for own in lines])[order]
        keep = np.zeros(len(times), np.bool_)
        if len(times):
            following = place + np.int8(1)
            following[following == len(lines)] = 0
            keep[1:] = place[1:] != following[:-1]
            keep[0] = keep[-1] = True
            keep[1 + touched(times[:-1], times[1:], gaps_of(gaps, node))] = True
        rest = np.flatnonzero(keep)
        first, last = rest == 0, rest == len(times) - 1
        return sieved_by(keep), {
            "t": times[rest], "node": node_of(node, len(rest)), "pos": place[rest].astype(np.int32),
            "before": np.where(first, -1, place[rest - 1]).astype(np.int32),
            "since": np.where(first, NEVER, times[rest - 1]),
            "after": np.where(last, -1, place[(rest + 1) % max(len(times), 1)]).astype(np.int32)}

    return gathered(trace, "placed", each(one, range(len(lines[0]))))


def turns(trace: Ground, lines: Lines, nodes: int, margin: int, counted: bool) -> Sieved:
    """For ``together``: creates ``turns``, the k-th events of the nodes (``k``, ``t``, ``last``, ``nodes``, how many
    have one, ``doubt``, the number of one of them is not known; ``node``, that of the first; ``cause``), and with
    ``counted`` also ``latest`` (``k``, ``late``): when at the earliest the last node can have had its event.

    nodes : those that should have one.
    """
    firsts = {node: (lo, cause) for node, lo, cause in trace.db.execute(
        f"select node, min(lo), min_by(cause, lo) from g where {INNER} group by node").fetchall()}
    size = max(map(len, lines)) if nodes > 1 else 0
    first, last = np.full(size, NEVER), np.full(size, -NEVER)
    owner, count, doubt = np.zeros(size, np.int16), np.zeros(size, np.int16), np.zeros(size, np.bool_)
    causes: list[str | None] = [None, *sorted({cause for _, cause in firsts.values()}, reverse=True)]
    cause = np.zeros(size, np.int8)
    for node, line in enumerate(lines):
        line, own = line[:size], slice(0, min(len(line), size))
        owner[own][line < first[own]] = node
        np.minimum(first[own], line, out=first[own])
        np.maximum(last[own], line, out=last[own])
        count[own] += 1
        if node in firsts:
            doubt[np.searchsorted(line, firsts[node][0]):len(line)] = True
            np.maximum(cause[own], np.int8(causes.index(firsts[node][1])), out=cause[own])
    keep = doubt | (count != nodes)
    keep |= last - first > margin
    rest = np.flatnonzero(keep)
    trace.give("turns", k=rest + 1, t=first[rest], last=last[rest], nodes=count[rest], doubt=doubt[rest],
               node=owner[rest], cause=np.array(causes, np.object_)[cause[rest]])
    if counted:
        _latest(trace, lines, rest)
    return sieved_by(keep, last - first)


def _latest(trace: Ground, lines: Lines, rest: npt.NDArray[np.int64]) -> None:
    """Creates ``latest`` for some turns: what was lost counts as events at the begin of its gap, the end as endless."""
    gaps = trace.gap_rows(f"select node, lo, n from g where {INNER} or cause = 'end' order by lo")
    late, known = np.full(len(rest), -NEVER), np.zeros(len(rest), np.bool_)
    for node, in trace.db.execute("select node from whose").fetchall():
        line, mine = lines[node], gaps["node"] == node
        times = np.concatenate((line, gaps["lo"][mine]))
        order = np.argsort(times, kind="stable")
        reached = np.cumsum(np.concatenate((np.ones(len(line), np.int64), gaps["n"][mine]))[order])
        places = np.searchsorted(reached, rest + 1)
        there = places < len(times)
        np.maximum(late, times[order].take(places, mode="clip"), out=late, where=there)
        known |= there
    trace.give("latest", k=rest[known] + 1, late=late[known])
