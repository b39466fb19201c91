"""Finds periodic sources in the times of many events, by autocorrelation: several may have the same period."""

import numpy as np
from hypermon.studies.machine.analysis.freezes import series
from hypermon.studies.machine.analysis.reading import Floats

__all__ = ["THRESHOLDS", "periods"]

#: Shortest and longest regular interval that is looked for among all events, and the share of a train that must be
#: there; what is left is searched for longer ones, which come this often at least.
_LEAST_S, _MOST_S, _SHARE, _LONG = 0.001, 0.05, 0.4, 8
#: Periods that differ by less than this are the same.
_ALIKE = 0.01
#: No period is shorter than this many times the time to which an event is known. In a train whose period is refined,
#: events may be off by this many times that time.
_SHORTEST, _REFINED = 3, 1.5
#: Two trains are half a period apart if every other event is early by more than this many standard errors.
_ERRORS = 4
#: The limits that the periods depend on, by name.
THRESHOLDS = {"least_s": _LEAST_S, "most_s": _MOST_S, "share": _SHARE, "long": _LONG, "alike": _ALIKE,
              "shortest": _SHORTEST, "refined": _REFINED, "errors": _ERRORS}
#: Distances, in periods, over which a period is refined.
_FARTHER = (1, 1, 1, 2, 4, 8, 16, 32, 64, 128)


def periods(at_s: Floats, late_s: float, end_s: float) -> list[float]:
    """The periods of the trains, in seconds.

    Parameters
    ----------
    at_s : of the events, in order. ``late_s``: how exactly each is known. ``end_s``: of the recording.
    """
    left, found = at_s, []
    lag = max(_LEAST_S, _SHORTEST * late_s)
    while lag <= _MOST_S and len(left) > _LONG:
        chained = _chained(left, lag, late_s)
        if chained.sum() >= _SHARE * (left[-1] - left[0]) / lag:
            period = _refined(left, lag, late_s)
            found.append(_doubled(left, period, late_s))
            left = left[~_linked(left, period, late_s)]
        else:
            lag += late_s / 2
    while len(left) > _LONG:
        hits = series(left, end_s, np.empty((0, 2)), late_s, most_s=(end_s - at_s[0]) / _LONG, least=_LONG)
        if hits is None:
            left = left[1:]
        else:
            own = left[hits]
            found.append(float(np.polyfit(np.rint((own - own[0]) / np.median(np.diff(own))), own, 1)[0]))
            left = np.delete(left, hits)
    return _distinct(found)


def _there(at_s: Floats, shift: float, late_s: float) -> Floats:
    """Which events have another one that much later."""
    low, high = (np.searchsorted(at_s, at_s + shift + side * late_s) for side in (-1, 1))
    return high > low


def _chained(at_s: Floats, lag: float, late_s: float) -> Floats:
    """Which events have two before and two after them, that far apart."""
    return np.logical_and.reduce([_there(at_s, shift * lag, late_s) for shift in (-2, -1, 1, 2)])


def _linked(at_s: Floats, period: float, late_s: float) -> Floats:
    """Which events have two others next to them in a train, on one side or on both."""
    there = {shift: _there(at_s, shift * period, late_s) for shift in (-2, -1, 1, 2)}
    return (there[-1] & there[1]) | (there[1] & there[2]) | (there[-1] & there[-2])


def _refined(at_s: Floats, lag: float, late_s: float) -> float:
    """The period, from events farther and farther apart."""
    period = lag
    for many in _FARTHER:
        if many * period > (at_s[-1] - at_s[0]) / 3:
            break
        chained = np.flatnonzero(_chained(at_s, period, _REFINED * late_s))
        aim = at_s[chained] + many * period
        near = np.clip(np.searchsorted(at_s, aim), 1, len(at_s) - 1)
        near -= aim - at_s[near - 1] < at_s[near] - aim
        apart = at_s[near] - at_s[chained]
        good = np.abs(apart - many * period) <= _REFINED * late_s
        if good.any():
            period = float(np.mean(apart[good])) / many
    return period


def _doubled(at_s: Floats, period: float, late_s: float) -> float:
    """The period, or twice as much if every other event is early: then these are two trains, half a period apart."""
    own = at_s[_linked(at_s, period, late_s)]
    number = np.rint((own - own[0]) / period)
    side = np.where(number % 2 == 0, 1.0, -1.0)
    matrix = np.column_stack([np.ones(len(own)), number, side])
    if len(own) < _LONG or np.linalg.matrix_rank(matrix) < 3:
        return period
    fitted = np.linalg.lstsq(matrix, own, rcond=None)[0]
    error = float(np.std(own - matrix @ fitted)) / len(own) ** 0.5
    return 2 * period if abs(fitted[2]) > _ERRORS * error else period


def _distinct(found: list[float]) -> list[float]:
    groups: list[list[float]] = []
    for period in sorted(found):
        if groups and period < groups[-1][0] * (1 + _ALIKE):
            groups[-1].append(period)
        else:
            groups.append([period])
    return [float(np.median(own)) for own in groups]
