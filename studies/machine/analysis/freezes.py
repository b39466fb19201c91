"""Freezes of a node, from the gaps between its events: how long they are, and how often they occur."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from hypermon.studies.machine.analysis.reading import Floats

__all__ = ["THRESHOLDS", "Found", "progressions", "series", "sources"]

#: Freezes of one source are as long as one another to this, ms; and a source comes this often at least.
_ALIKE_MS, _TIMES = 0.03, 2
#: A sum of freezes is as long as its parts together to this for each part, ms, if lengths do not scatter more.
_EXACT_MS = 0.004
#: By how much a freeze may be late, as a share of its period, and in seconds.
_LATE, _LATE_S = 0.2, 1.0
#: If lengths scatter, a sum is as long as its parts to this many standard deviations for each part. The share of a
#: series that may be missing.
_SCATTER, _MISSING = 4, 0.1
#: The limits that the sources depend on, by name.
THRESHOLDS = {"alike_ms": _ALIKE_MS, "times": _TIMES, "exact_ms": _EXACT_MS, "late": _LATE, "late_s": _LATE_S,
              "scatter": _SCATTER, "missing": _MISSING}


class Found(NamedTuple):
    """A source of freezes. ``period_s`` is None if it came once."""

    period_s: float | None
    duration_ms: float
    count: int


def sources(at_s: Floats, long_ms: Floats, end_s: float, blind: Floats) -> list[Found]:
    """The sources that explain a node's freezes.

    Parameters
    ----------
    at_s, long_ms : of each freeze, when and how long. Two in one gap are one of the sum of their lengths.
    end_s : of the recording. ``blind``: rows of begin and end, seconds, in which nothing would have been seen.
    """
    groups = _groups(long_ms)
    simple = [group for group in groups if len(group) >= _TIMES]
    times = _resolved(groups, simple, at_s, long_ms)
    found = []
    for length, own in times:
        for period, count in progressions(np.sort(own), end_s, blind):
            found.append(Found(period, length, count))
    return sorted(found, key=lambda one: one.duration_ms)


def _groups(long_ms: Floats) -> list[Floats]:
    """Freezes of the same length, as indices; shortest first."""
    order = np.argsort(long_ms)
    cuts = np.flatnonzero(np.diff(long_ms[order]) > _ALIKE_MS) + 1
    return [group for group in np.split(order, cuts) if len(group)]


def _resolved(groups: list[Floats], simple: list[Floats], at_s: Floats, long_ms: Floats) -> list[tuple[float, Floats]]:
    """The times of each length that is not the sum of two or three others; those of a sum count for each of these."""
    exact = max([_EXACT_MS, *(_SCATTER * float(np.std(long_ms[group])) for group in simple)])
    own: list[tuple[float, list[Floats]]] = []
    # The shortest first: a sum is longer than its parts.
    for group in groups:
        length = float(np.median(long_ms[group]))
        parts = _parts(length, [of for of, _ in own], exact)
        for at in parts:
            own[at][1].append(at_s[group])
        if not parts:
            own.append((length, [at_s[group]]))
    return [(length, np.concatenate(times)) for length, times in own]


def _parts(length: float, lengths: list[float], exact: float) -> tuple[int, ...]:
    for many in (2, 3):
        for parts in combinations(range(len(lengths)), many):
            if abs(sum(lengths[at] for at in parts) - length) < many * exact:
                return parts
    return ()


def progressions(at_s: Floats, end_s: float, blind: Floats) -> list[tuple[float | None, int]]:
    """Period and count of each regular series that the times consist of."""
    left, found = at_s, []
    while len(left):
        hits = series(left, end_s, blind, _LATE_S)
        if hits is None:
            found.append((None, len(left)))
            break
        found.append((_period(left[hits]), len(hits)))
        left = np.delete(left, hits)
    return found


def series(at_s: Floats, end_s: float, blind: Floats, late_s: float, *, most_s: float = np.inf,
           least: int = _TIMES) -> list[int] | None:
    """The regular series that begins with the first of the times and has the shortest period; None if there is none.

    Parameters
    ----------
    late_s : by how much one may be late. ``most_s``: longest period. ``least``: how many it has.
    """
    for second in range(1, len(at_s)):
        period = float(at_s[second] - at_s[0])
        if period > most_s:
            break
        late = min(_LATE * period, late_s)
        hits = _followed(at_s, end_s, blind, period, late) if period > 2 * late else None
        if hits is not None and len(hits) >= least:
            return hits
    return None


def _followed(at_s: Floats, end_s: float, blind: Floats, period: float, late: float) -> list[int] | None:
    """The times that follow the first with that period; None if more than one in ten is missing, and more than one."""
    hits, missed, here = [0], 0, float(at_s[0])
    lenient = max(1.0, _MISSING * (end_s - here) / period)
    unexcused = 0
    while (here := here + period) <= end_s + late:
        right = min(int(np.searchsorted(at_s, here)), len(at_s) - 1)
        near = right if right == 0 or at_s[right] - here < here - at_s[right - 1] else right - 1
        if abs(at_s[near] - here) <= late and near > hits[-1]:
            hits.append(near)
            here = float(at_s[near])
            period = (here - float(at_s[0])) / (len(hits) - 1 + missed)
            continue
        missed += 1
        excused = here > end_s - late or any(begin - late <= here <= end + late for begin, end in blind)
        unexcused += not excused
        if unexcused > lenient:
            return None
    return hits


def _period(at_s: Floats) -> float:
    """Least squares over a series, some of which may be missing."""
    gaps = np.diff(at_s)
    rough = float(np.median(gaps))
    steps = np.concatenate([[0], np.cumsum(np.maximum(np.rint(gaps / rough), 1))])
    return float(np.polyfit(steps, at_s, 1)[0])
