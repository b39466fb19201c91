"""The time of a byte on two or three wires, from the edges of a stimulus: what FRONT_SPAN must be."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import FRONT_SPAN_BITS, PORT_BITS, Front
from hypermon.sim.stimulus.stimulus import Edge, Stimulus

__all__ = ["Spans", "spans_of"]

_BITS = 8
#: A level of the clock that is this number of times as long as the median one is a pause between bytes.
_PAUSE = 6
#: Clocks for the sampling of two edges and the delivery.
_MARGIN = 2


class Spans:
    """What FRONT_SPAN may be for bytes of a stimulus.

    Members
    -------
    least, most : in clocks. A smaller one rejects the slowest byte, a larger one the fastest.
    chosen : between these, nearer to the least; if there is no such value, ``least`` or the largest that the register
        holds.
    fits : there is a value between them.
    """

    def __init__(self, least: int, most: int):
        self.least, self.most = least, most
        top = (1 << FRONT_SPAN_BITS) - 1
        self.chosen = min(max(least, min(4 * least // 3, (least + most) // 2)), top)
        self.fits = least <= min(most, top)


def spans_of(stimulus: Stimulus, nodes: Iterable[int], clock_hz: int) -> Spans | None:
    """What FRONT_SPAN may be for these nodes, which have two or three wires; None if they send no byte."""
    found = [span for node in nodes for span in [_span(stimulus, node, clock_hz)] if span is not None]
    return Spans(max(least for least, _ in found), min(most for _, most in found)) if found else None


def _span(stimulus: Stimulus, node: int, clock_hz: int) -> tuple[int, int] | None:
    firsts, lasts = _bytes(stimulus, node)
    if not len(firsts):
        return None

    def clocks(ps: int) -> int:
        return ps * clock_hz // 10**12

    least = clocks(int((lasts - firsts).max())) + 1 + _MARGIN
    # A byte must have been delivered when the next one is complete.
    most = clocks(int((lasts[1:] - firsts[:-1]).min())) - _MARGIN if len(firsts) > 1 else 2 * least
    return least, most


def _bytes(stimulus: Stimulus, node: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Times of the first and of the last sampling edge of each whole byte."""
    mine = stimulus.node == node
    time, port = stimulus.time_ps[mine], stimulus.port[mine].astype(np.int64)
    before = np.concatenate([[stimulus.initial[node]], port[:-1]]).astype(np.int64)
    rises = stimulus.edge[node] is not Edge.FALLING
    edge = ((before ^ port) >> PORT_BITS & 1).astype(bool) & ((port >> PORT_BITS & 1) == rises)
    selected = stimulus.wiring[node].front is Front.SELECTED
    # Which burst an edge belongs to: the number of selects before it, or of pauses.
    if selected:
        edge &= port >> 1 & 1 == 0
        burst = np.cumsum((before ^ port) >> 1 & 1)[edge]
    at = time[edge]
    if not selected:
        gaps = np.diff(at, prepend=at[:1])
        burst = np.cumsum(gaps > _PAUSE * np.median(gaps[1:])) if len(at) > 1 else np.zeros(len(at), np.int64)
    starts = np.flatnonzero(np.diff(burst, prepend=-1))
    place = np.arange(len(at)) - np.repeat(starts, np.diff(np.append(starts, len(at))))
    first = np.flatnonzero(place % _BITS == 0)
    first = first[first + _BITS - 1 < len(at)]
    first = first[place[first + _BITS - 1] == place[first] + _BITS - 1]
    return at[first], at[first + _BITS - 1]
