"""Fits the time of a board that keeps its own clock to that of the board that it follows, to a fraction of a clock.

The board marks rises of the wave that came a clock more or less than a period after the one before. Between these two
rises, the phase of the wave has passed a clock edge. At the middle of that period, the two times therefore differ by a
whole number of clocks and the wire, to half of what the clocks drift apart in a period: 0.05 clocks at 100 ppm. Such
*crossings* are averaged over some milliseconds, and a line with few bends is laid through the averages.

The uncertainty includes the largest distance of a crossing from this line, and how far the clocks may have wandered
between crossings.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import DRIFT_CLOCKS, MarkSource

__all__ = ["THRESHOLDS", "Drift", "fit_drift"]

_Clocks = npt.NDArray[np.int64]
_Ahead = npt.NDArray[np.float64]
#: Clocks over which crossings are averaged, as a power of two.
_MEAN_BITS = 21
#: Clocks by which averages may be off the line with few bends.
_STRAIGHT = 0.02
#: The clock edge, in the time of a board that follows, that sees the first rise of the wave: it is before its time 0,
#: and its time is :data:`~.layout.SYNC_LAG` clocks ahead of its own count.
_FIRST = 1
#: The phase of the wave may be anywhere in a clock.
_PHASE = 0.5
#: Clocks: a rise that comes just before an edge may be seen at the next one.
_APERTURE = 0.1
#: The drift before the first crossing and after the last one is measured over this many times the same span.
_TIMES = 4
#: The limits that the drift between boards depends on, by their names in output.
THRESHOLDS = {"mean_clocks": 1 << _MEAN_BITS, "straight_clocks": _STRAIGHT, "aperture_clocks": _APERTURE,
              "slope_spans": _TIMES}


class Drift(NamedTuple):
    """A line with bends: at clock ``own`` of the board, the clock of the board that it follows is ``own + ahead``.

    The delay of the wire has to be added. The first and the last stretch continue for ever. ``unsure``: clocks, up to
    the last point. ``grows``: clocks for each clock after it.
    """

    own: _Clocks
    ahead: _Ahead
    unsure: float
    grows: float = 0.0

    def unsure_until(self, clock: int) -> float:
        """How far the times of a recording that ends at a clock may be off, in clocks."""
        return self.unsure + self.grows * max(clock - int(self.own[-1]), 0)


def fit_drift(marks: npt.NDArray[np.void], period: int, until: int = 0) -> Drift:
    """The drift of a board.

    Parameters
    ----------
    marks : see :func:`.drift_log.load_drift`.
    period : clocks of the wave's period.
    until : the last clock of the recording; 0: not known.
    """
    if not len(marks):
        # No rise was ever off: the phase stands still, or nearly so.
        return Drift(np.array([_FIRST, _FIRST + period]), np.full(2, _PHASE - _FIRST), _PHASE + _APERTURE)
    own, ahead = _crossings(marks, period)
    if len(own) == 1:
        # The phase went from somewhere to an edge. Then it moved on, and no mark says how far until another may come.
        y, h = np.array([_FIRST, own[0], own[0] + 1]), np.array([_PHASE - _FIRST, ahead[0], ahead[0]], np.float64)
        return Drift(y, h, 1 + _APERTURE + DRIFT_CLOCKS / max(int(own[0]), 1))
    means = _means(own, ahead)
    y, h, spans, last = _continued(*_straightened(*means), until)
    drift = float(np.abs(np.diff(h) / np.diff(y)).max())
    off = float(np.abs(ahead - _at(own, y, h)).max()) + _APERTURE + drift * period / 2
    return Drift(y, h, off * (1 + spans) + _wandered(*means), off / last)


def _crossings(marks: npt.NDArray[np.void], period: int) -> tuple[_Clocks, _Clocks]:
    """Clocks of the board at which an edge of its clock met the wave, and by how much the other board was ahead."""
    clock = marks["clock"].astype(np.int64)
    since = np.diff(clock, prepend=_FIRST)
    # Marks before a gap show the drift, by which the gap is bridged.
    whole = np.diff(marks["number"].astype(np.int64), prepend=-1) == 1
    near = np.rint(since / period)
    ratio = (since - near * period)[whole] / since[whole]
    drift = float(np.median(ratio)) if len(ratio) else 0.0
    rises = np.where(whole, near, np.rint(since * (1 - drift) / period)).astype(np.int64)
    lead = np.cumsum(rises) * period - period // 2
    own = clock - (marks["source"] == MarkSource.SYNC_LATE) - period // 2
    return own, lead - own


def _means(own: _Clocks, ahead: _Clocks) -> tuple[_Clocks, _Ahead]:
    """Averages of crossings that are close to each other; of few, the ends of the line that is closest to all."""
    first = np.flatnonzero(np.diff(own >> _MEAN_BITS, prepend=-1))
    if len(first) > 1:
        count = np.diff(first, append=len(own))
        base = own[first]
        late = np.add.reduceat(own - np.repeat(base, count), first)
        return base + np.rint(late / count).astype(np.int64), _shifted(own, ahead, first, count)
    ends = own[[0, -1]]
    slope, middle = np.polyfit((own - ends[0]).astype(np.float64), (ahead - ahead[0]).astype(np.float64), 1)
    return ends, ahead[0] + middle + slope * (ends - ends[0])


def _shifted(own: _Clocks, ahead: _Clocks, first: npt.NDArray[np.intp], count: npt.NDArray[np.intp]) -> _Ahead:
    """Averages of ``ahead``, exact although it may be large."""
    base = ahead[first]
    rest = np.add.reduceat(ahead - np.repeat(base, count), first)
    mean: _Ahead = base + rest / count
    return mean


def _straightened(y: _Clocks, h: _Ahead) -> tuple[_Clocks, _Ahead]:
    """Some of the points, such that the others are near the line through them."""
    kept = [0]
    least, most = -np.inf, np.inf
    ys, hs = y.tolist(), h.tolist()
    for k in range(1, len(ys)):
        at, up = ys[k] - ys[kept[-1]], hs[k] - hs[kept[-1]]
        if not least <= up / at <= most:
            kept.append(k - 1)
            at, up = ys[k] - ys[k - 1], hs[k] - hs[k - 1]
            least, most = -np.inf, np.inf
        least, most = max(least, (up - _STRAIGHT) / at), min(most, (up + _STRAIGHT) / at)
    if kept[-1] != len(ys) - 1:
        kept.append(len(ys) - 1)
    return y[kept], h[kept]


def _continued(y: _Clocks, h: _Ahead, until: int) -> tuple[_Clocks, _Ahead, float, int]:
    """The line with a stretch more on either side; how long these are, compared with what their slopes are of; and the
    clocks of which the last slope is."""
    before, after = max(int(y[0]) - _FIRST, 1), max(until - int(y[-1]), 1)
    head = int(np.clip(np.searchsorted(y, y[0] + max(_TIMES * before, 2 << _MEAN_BITS)), 1, len(y) - 1))
    tail = int(np.clip(np.searchsorted(y, y[-1] - max(_TIMES * after, 2 << _MEAN_BITS)), 0, len(y) - 2))
    slopes = (h[head] - h[0]) / (y[head] - y[0]), (h[-1] - h[tail]) / (y[-1] - y[tail])
    # The first rise was seen in its own clock.
    begin = float(np.clip(h[0] - slopes[0] * before, -_FIRST, 1 - _FIRST))
    ys = np.concatenate([[y[0] - before], y, [y[-1] + after]])
    hs = np.concatenate([[begin], h, [h[-1] + slopes[1] * after]])
    last = int(y[-1] - y[tail])
    return ys, hs, float(max(before / (y[head] - y[0]), after / last)), last


def _at(own: _Clocks, y: _Clocks, h: _Ahead) -> _Ahead:
    """The line at some clocks."""
    k = np.clip(np.searchsorted(y, own, "right") - 1, 0, len(y) - 2)
    line: _Ahead = h[k] + (own - y[k]) * ((h[k + 1] - h[k]) / (y[k + 1] - y[k]))
    return line


def _wandered(y: _Clocks, h: _Ahead) -> float:
    """How far the clocks may have wandered between averages that are far from each other, in clocks. It is estimated
    from the changes of the drift between gaps, and is at most one clock, because more would have been marked."""
    gap = np.diff(y).astype(np.float64)
    change = np.abs(np.diff(np.diff(h) / gap))
    bent = gap * np.maximum(np.append(change, 0), np.insert(change, 0, 0)) / 4
    far = gap > 2 << _MEAN_BITS
    return float(min(bent[far].max(), 1.0)) if far.any() else 0.0
