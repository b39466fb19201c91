"""Ties the board's time to UTC by pulses: one at the beginning of each second, from a receiver of GPS or the like.

A pulse says when a second begins, not which one: the host's clock says that, which must be right to half a second. The
board's time is never changed. The estimate is a line through the pulses; its uncertainty is what they are off it at
most, and a clock. Pulses that cannot be of a second are left out and counted.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from hypermon.host.recording.clock import WallClock

__all__ = ["THRESHOLDS", "PulseReport", "pulse_clock"]

_SECOND_PS = 10**12
#: An oscillator is off by at most this. A pulse that is off by more has no second: it is early, or late.
_OFF_PPM = 200
#: Pulses that make a line.
_FEWEST = 3
#: A pulse that is off the line by more than this many times the median, and by more than this many clocks, is left out.
_TIMES, _CLOCKS = 10.0, 3.0
#: The limits that UTC by pulses depends on, by their names in output.
THRESHOLDS = {"pulse_ppm": _OFF_PPM, "pulses_least": _FEWEST, "pulse_times": _TIMES, "pulse_clocks": _CLOCKS}


@dataclass(frozen=True)
class PulseReport:
    """What the pulses were.

    Parameters
    ----------
    used : on the line.
    missing : seconds between the first and the last pulse without one.
    doubled : pulses that came in a second that had one already.
    strayed : pulses that were early or late, and are not used.
    holdover_s : the longest time without a pulse that was used, up to the end of the recording; UTC is less certain
        then.
    """

    used: int
    missing: int = 0
    doubled: int = 0
    strayed: int = 0
    holdover_s: float = 0.0


def pulse_clock(pulses_ps: Sequence[int], host: WallClock, clock_ps: float, until_ps: int) -> WallClock | None:
    """UTC by pulses; None if there are too few.

    Parameters
    ----------
    pulses_ps : the board's time of each, in order.
    host : UTC by the host's clock, which says which second a pulse begins.
    clock_ps : period of the board's clock.
    until_ps : end of the recording.
    """
    times = np.array(pulses_ps, np.int64)
    seconds, strayed = _seconds(times)
    if len(np.unique(seconds[~strayed])) < _FEWEST:
        return None
    kept = ~strayed
    # A second pulse in a second is not used: the first of the two that fits is.
    line = _line(seconds[kept], times[kept])
    off = np.abs(times - _at(line, seconds))
    limit = max(_CLOCKS * clock_ps, _TIMES * float(np.median(off[kept])))
    strayed |= off > limit
    order = np.lexsort((off, seconds))
    _, first = np.unique(seconds[order], return_index=True)
    best = np.zeros(len(times), bool)
    best[order[first]] = True
    doubled = ~best & ~strayed
    used = best & ~strayed
    early = int(strayed.sum())
    if used.sum() < _FEWEST:
        return None
    line = _line(seconds[used], times[used])
    unsure_ps = float(np.abs(times[used] - _at(line, seconds[used])).max()) + clock_ps
    begin, per_second = line
    drift = _SECOND_PS / per_second - 1
    # The board's time of a second's beginning, by the host's clock: which second that is.
    at_ps = round(begin)
    utc_ns = host.utc_ns + at_ps // 1000 + round(at_ps / 1000 * host.drift_ppm * 1e-6)
    second_ns = round(utc_ns / 10**9) * 10**9
    zero_ns = second_ns - round(at_ps / 1000 * (1 + drift))
    where = times[used]
    held = max(int(np.diff(where).max()), until_ps - int(where[-1]), int(where[0])) / _SECOND_PS
    span = seconds[used]
    report = PulseReport(int(used.sum()), int(span[-1] - span[0] + 1 - used.sum()), int(doubled.sum()), early, held)
    # Beyond the pulses, the line is extrapolated: by as much as its slope is unsure.
    beyond = max(until_ps - int(where[-1]), int(where[0]), 0) / max(int(where[-1] - where[0]), 1)
    unsure_ns = -int(-(unsure_ps * (1 + 2 * beyond)) // 1000)
    return WallClock(zero_ns, drift * 1e6, unsure_ns, len(times), "pps", asdict(report))


def _seconds(times: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """For each pulse the number of its second, and whether it has none: it is early or late.

    The seconds are counted from the pulse that most of the others agree with.
    """
    if not len(times):
        return times, np.zeros(0, bool)
    votes = []
    for anchor in times[:: max(len(times) // 64, 1)]:
        since = times - anchor
        number = np.rint(since / _SECOND_PS).astype(np.int64)
        off = np.abs(since - number * _SECOND_PS)
        allowed = np.maximum(np.abs(number), 1) * (_OFF_PPM * 1e-6 * _SECOND_PS)
        # Far away, a drift moves a pulse out of its second: the neighbours tell.
        near = np.abs(number) * _OFF_PPM * 1e-6 < 0.25
        votes.append((int(((off <= allowed) & near).sum()), int(anchor)))
    anchor = max(votes)[1]
    number = np.zeros(len(times), np.int64)
    strayed = np.zeros(len(times), bool)
    begin = int(np.searchsorted(times, anchor))
    for indices in (range(begin, len(times)), range(begin - 1, -1, -1)):
        last, count, period = anchor, 0, float(_SECOND_PS)
        for k in indices:
            since = int(times[k]) - last
            steps = round(since / period)
            number[k] = count + steps
            strayed[k] = abs(since - steps * period) > max(abs(steps), 1) * _OFF_PPM * 1e-6 * _SECOND_PS
            if not strayed[k] and steps:
                last, count = int(times[k]), count + steps
                period = since / steps
    return number, strayed


def _line(seconds: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Time of second 0, and of a second, by least squares."""
    x = seconds.astype(np.float64)
    base = int(times[0])
    y = (times - base).astype(np.float64)
    slope = float(np.sum((x - x.mean()) * (y - y.mean())) / np.sum((x - x.mean()) ** 2))
    return base + float(y.mean() - slope * x.mean()), slope


def _at(line: tuple[float, float], seconds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray(line[0] + line[1] * seconds, np.float64)
