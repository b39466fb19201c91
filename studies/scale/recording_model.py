"""A model of the classic board: which nibbles it admits, how it stamps them, and its loss counters.

The model holds for a host that drains faster than frames can be built, so only node FIFOs can fill. Nibbles of a node
must be at least four clocks apart. A node FIFO gives up one nibble per window. A full one refuses; the gate then stays
closed until the FIFO is half empty. `tests/studies/scale` compares the model with the gateware.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import (
    CENSUS_BOARD,
    CENSUS_NODE,
    COUNTERS,
    LATENCY,
    LOSS_RECORD,
    BlockType,
    Cause,
    CensusFlag,
    Counter,
    Geometry,
    Window,
    frame_bytes,
)
from hypermon.host.blocks.blocks import PAYLOAD_MAX, build_block
from hypermon.host.blocks.times import TimeScale
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["Recorded", "record_model"]

#: Clocks from the end of a window to the pop of its nibbles, seen from a strobe's first clock at the pads: when the
#: gate finds room again after a pop, and when it reopens.
_ROOM, _REOPEN = 3, 4
#: Where the sweep over outages is at clock 0. It runs from power-up, so this depends on what the host reads before.
_VISIT = 14
#: A node FIFO that has been empty for this number of clocks holds up nothing that follows.
_SETTLED = 32

_Column = npt.NDArray[np.int64]


#: Items lost, first and last window, and the clock at which the gate reopened.
_Outage = tuple[int, int, int, int]


@dataclass
class _Node:
    """What a board makes of a node's nibbles: own window and stamped window of each, -1 if it is refused; outages."""

    window: _Column
    stamp: _Column
    outages: list[_Outage]


@dataclass
class Recorded:
    """A board's stream, ready to be written.

    Parameters
    ----------
    blocks : the stream, in pieces.
    duration_ps : from enable to stop.
    """

    blocks: list[bytes]
    duration_ps: int


def record_model(stimulus: Stimulus, geometry: Geometry, window: Window, epoch: int) -> Recorded:
    """The stream of a classic board that captured a stimulus.

    Raises
    ------
    ValueError
        if the nibbles of a node are less than four clocks apart, or stamps exceed 32 bits: the model does not hold.
    """
    span = geometry.window_clocks(window)
    picoseconds, part = TimeScale(geometry.clock_hz, window, LATENCY).ratio
    rows = _strobes(stimulus)
    nodes, values = [], []
    for number in range(geometry.nodes):
        own = rows[0] == number
        clocks = -(-rows[1][own] * part // picoseconds)
        if len(clocks) > 1 and int(np.diff(clocks).min()) < 4:
            raise ValueError(f"nibbles of node {number} are less than four clocks apart")
        nodes.append(_through(clocks, span, geometry.node_depth))
        values.append(rows[2][own])
    end = int(max((node.stamp.max(initial=0) for node in nodes), default=0)) + 2
    if len(stimulus):
        end = max(end, int(stimulus.time_ps[-1]) * part // picoseconds // span + 2)
    if end >= 1 << 32:
        raise ValueError("the stamps exceed 32 bits")
    blocks = _Blocks(geometry, window, epoch)
    blocks.census(0, nodes, 0, CensusFlag.START, before=True)
    stamps, frames = _frames(nodes, values, geometry)
    blocks.frames(stamps, frames)
    blocks.losses(nodes, end)
    blocks.census(end, nodes, len(stamps), CensusFlag.STOP)
    return Recorded(blocks.made, geometry.ps(end * span))


def _strobes(stimulus: Stimulus) -> tuple[_Column, _Column, _Column]:
    """Node, time and data of each rising strobe; the data is that before it (sample point *before*)."""
    order = np.lexsort((np.arange(len(stimulus)), stimulus.node))
    node, time, port = stimulus.node[order].astype(np.int64), stimulus.time_ps[order], stimulus.port[order]
    first = np.ones(len(node), bool)
    first[1:] = node[1:] != node[:-1]
    initial = np.array(stimulus.initial, port.dtype)
    before = np.where(first, initial[node], np.roll(port, 1)) if len(node) else port
    rising = ((port & 16) > 0) & ((before & 16) == 0)
    return node[rising], time[rising], before[rising].astype(np.int64) & 15


def _through(clocks: _Column, span: int, depth: int) -> _Node:
    """Passes a node's nibbles through its gate and its FIFO."""
    window = (clocks + LATENCY) // span
    index = np.arange(len(clocks))
    stamp: _Column = np.maximum.accumulate(window - index) + index      # if none is refused
    outages: list[_Outage] = []
    gone = (stamp + 1) * span + _ROOM
    level = index - np.searchsorted(gone, clocks, "left")
    if not len(clocks) or int(level.max()) < depth:
        return _Node(window, stamp, outages)
    # Stretches between moments at which nothing waits, whatever was refused, do not depend on each other.
    idle = np.ones(len(clocks), bool)
    idle[1:] = gone[:-1] + _SETTLED < clocks[1:]
    edges = np.append(np.flatnonzero(idle), len(clocks))
    full = np.maximum.reduceat(level, edges[:-1]) >= depth
    for begin, end in zip(edges[:-1][full].tolist(), edges[1:][full].tolist(), strict=True):
        stamp[begin:end] = _crowded(clocks[begin:end].tolist(), window[begin:end].tolist(), span, depth, outages)
    return _Node(window, stamp, outages)


def _crowded(clocks: list[int], windows: list[int], span: int, depth: int,
             outages: list[_Outage]) -> list[int]:
    """Stamps of nibbles of which some are refused (-1)."""
    stamps: list[int] = []
    gone: list[int] = []        # when each admitted nibble leaves
    left, last, reopen = 0, -1, -1
    for clock, window in zip(clocks, windows, strict=True):
        while left < len(gone) and gone[left] < clock:
            left += 1
        if clock < reopen:
            lost, first, _, until = outages[-1]
            outages[-1] = lost + 1, first, window, until
            stamps.append(-1)
        elif len(gone) - left >= depth:
            reopen = gone[len(gone) - depth // 2 - 1] + _REOPEN - _ROOM + 1
            outages.append((1, window, window, reopen))
            stamps.append(-1)
        else:
            last = max(window, last + 1)
            gone.append((last + 1) * span + _ROOM)
            stamps.append(last)
    return stamps


def _frames(nodes: list[_Node], values: list[_Column], geometry: Geometry) -> tuple[_Column, bytes]:
    """Stamps of the frames, and their bytes."""
    admitted = [node.stamp >= 0 for node in nodes]
    stamp = np.concatenate([node.stamp[ok] for node, ok in zip(nodes, admitted, strict=True)])
    which = np.repeat(np.arange(len(nodes)), [int(ok.sum()) for ok in admitted])
    value = np.concatenate([own[ok] for own, ok in zip(values, admitted, strict=True)])
    stamps, at = np.unique(stamp, return_inverse=True)
    words = np.zeros((len(stamps), frame_bytes(geometry.nodes) // 4), np.uint32)
    rows = words.shape[1] - 2       # of nibbles; those of the highest nodes come first
    np.bitwise_or.at(words, (at, rows - 1 - which // 8), (value << 4 * (which % 8)).astype(np.uint32))
    np.bitwise_or.at(words, (at, rows), (1 << which).astype(np.uint32))
    words[:, rows + 1] = stamps
    return stamps, words.astype("<u4").tobytes()


class _Blocks:
    """The blocks of a board."""

    def __init__(self, geometry: Geometry, window: Window, epoch: int):
        self.made: list[bytes] = []
        self._geometry, self._window, self._epoch = geometry, window, epoch

    def _add(self, kind: BlockType, payload: bytes, time: int) -> None:
        self.made.append(build_block(kind, payload, geometry=self._geometry, window=self._window, epoch=self._epoch,
                                     sequence=len(self.made), time=time))

    def frames(self, stamps: _Column, frames: bytes) -> None:
        size = frame_bytes(self._geometry.nodes)
        most = PAYLOAD_MAX // size
        for begin in range(0, len(stamps), most):
            self._add(BlockType.FRAMES, frames[begin * size:(begin + most) * size], int(stamps[begin]))

    def losses(self, nodes: list[_Node], end: int) -> None:
        # An outage is reported when a sweep, which visits a node per clock, finds its gate open again.
        sweep = next(rows for rows in (8, 16, 32) if self._geometry.nodes <= rows)
        rows = sorted((until, (number - until - _VISIT) % sweep, number, lost, first, last)
                      for number, node in enumerate(nodes) for lost, first, last, until in node.outages)
        records = b"".join(LOSS_RECORD.pack(node=number, causes=int(Cause.NODE_FIFO), zero_1=0, zero_2=0, lost=lost,
                                            first=first, last=last) for _, _, number, lost, first, last in rows)
        most = PAYLOAD_MAX // LOSS_RECORD.bytes * LOSS_RECORD.bytes
        for begin in range(0, len(records), most):
            self._add(BlockType.LOSS, records[begin:begin + most], end)

    def census(self, time: int, nodes: list[_Node], frames: int, flags: CensusFlag, before: bool = False) -> None:
        """``before``: nothing has come yet."""
        status = 2 if not before and any(node.outages for node in nodes) else 0
        parts = [CENSUS_BOARD.pack(frames=frames, frame_level=0, vector_level=0, flags=int(flags), status=status,
                                   discarded=0)]
        for node in nodes:
            counts = dict.fromkeys((counter.name.lower() for counter in COUNTERS), 0)
            if not before:
                counts |= self._counts(node)
            parts.append(CENSUS_NODE.pack(**counts))
        self._add(BlockType.CENSUS, b"".join(parts), time)

    @staticmethod
    def _counts(node: _Node) -> dict[str, int]:
        lag = (node.stamp - node.window)[node.stamp >= 0]
        lost = sum(count for count, *_ in node.outages)
        return {Counter.ACCEPTED.name.lower(): len(lag), Counter.DELIVERED.name.lower(): len(lag),
                Counter.LOST_NODE_FIFO.name.lower(): lost, Counter.CARRIED.name.lower(): int((lag > 0).sum()),
                Counter.LAG_MAX.name.lower(): int(lag.max(initial=0))}
