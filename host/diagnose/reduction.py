"""Statistics that a board counts itself: histograms, rates, high-water marks; readable during capture."""

import struct
from dataclasses import dataclass
from typing import Any

from hypermon.hdl.layout import (
    COUNTERS_BASE,
    COUNTERS_STRIDE,
    REDUCTION_BASE,
    REDUCTION_GAP_BINS,
    REDUCTION_GAPS,
    REDUCTION_GROUP,
    REDUCTION_NODE_HIGH,
    REDUCTION_SHARED,
    REDUCTION_STORE_HIGH,
    REDUCTION_VECTOR_HIGH,
    Counter,
    Option,
    Sink,
)
from hypermon.host.blocks.times import TimeScale
from hypermon.host.device.device import Device
from hypermon.host.errors import HypermonError

__all__ = ["Reduction", "read_reduction"]

_LOST = (Counter.LOST_FRAME_FIFO, Counter.LOST_NODE_FIFO, Counter.LOST_VECTOR_FIFO)


@dataclass(frozen=True)
class Reduction:
    """A run up to one moment, as the board has counted it.

    Attributes
    ----------
    windows : windows since time 0, when it was latched.
    scale : length of a window.
    accepted, lost : items of every node.
    gaps : of every node, in 64 bins: items that came ``2**bin`` stamps (windows, or parts of a clock) and more, but
        fewer than twice that, after the previous one of that node. An item that is still on its way through the
        board, and the first one of a node, are in no bin.
    shared : windows (or parts of a clock) that have k items, k = 0 to nodes; none has 0.
    node_high, vector_high, store_high : the highest levels, since the reset, of the FIFOs of the nodes, of that of the
        strobe vectors and of the memory of the COMPACT blocks: nibbles, vectors, beats of 16 bytes.
    """

    windows: int
    scale: TimeScale
    accepted: list[int]
    lost: list[int]
    gaps: list[list[int]]
    shared: list[int]
    node_high: list[int]
    vector_high: int
    store_high: int

    @property
    def seconds(self) -> float:
        return float(self.scale.clocks_ps(self.windows * self.scale.window_clocks)) / 1e12

    @property
    def window_ps(self) -> float:
        return float(self.scale.clocks_ps(1_000_000 * self.scale.window_clocks)) / 1e6

    @property
    def stamp_ps(self) -> float:
        """The unit of a stamp: a window, half or a quarter of a clock."""
        return self.window_ps / self.scale.stamp_window

    @property
    def merged_percent(self) -> float:
        """Share of items that share their window; 0 without items."""
        items = sum(k * count for k, count in enumerate(self.shared))
        return 100 * (items - self.shared[1]) / items if items else 0.0

    @property
    def merged_windows_percent(self) -> float:
        """Share of windows that have more than one item; 0 without any."""
        windows = sum(self.shared)
        return 100 * sum(self.shared[2:]) / windows if windows else 0.0

    def rates(self, before: "Reduction | None" = None) -> list[float]:
        """Items per second of every node, since ``before`` or since the start."""
        span = self.seconds - (before.seconds if before else 0.0)
        earlier = before.accepted if before else [0] * len(self.accepted)
        return [(now - then) / span if span > 0 else 0.0 for now, then in zip(self.accepted, earlier, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "seconds": self.seconds, "windows": self.windows, "window_ps": self.window_ps, "stamp_ps": self.stamp_ps,
            "accepted_per_node": self.accepted, "lost_per_node": self.lost, "rate_per_node": self.rates(),
            "gap_bins_per_node": self.gaps, "windows_by_items": self.shared,
            "merged_percent": self.merged_percent, "merged_windows_percent": self.merged_windows_percent,
            "node_fifo_high": self.node_high, "vector_fifo_high": self.vector_high,
            "compact_store_high": self.store_high,
        }


def read_reduction(device: Device) -> Reduction:
    """Latches the board's counts, and reads them. Capture continues meanwhile.

    Time, counters and each histogram are each of one moment, a few clocks apart; all bins of a histogram are of one
    clock.

    Raises
    ------
    HypermonError
        if the board is not in the extended configuration, or lacks the reduction.
    """
    if Sink.EXTENDED not in device.geometry.sinks or device.read("MODE") != Sink.EXTENDED:
        raise HypermonError(f"{device.link.uri}: only an extended board has these counters")
    if not device.geometry.has(Option.REDUCTION):
        raise HypermonError(f"{device.link.uri} is an extended board without these counters (the reduction)")
    nodes = device.identity.nodes
    windows = device.windows()
    rows = [struct.unpack(f"<{COUNTERS_STRIDE // 8}Q", device.link.read_burst(
        COUNTERS_BASE + COUNTERS_STRIDE * node, COUNTERS_STRIDE // 4)) for node in range(nodes)]
    return Reduction(
        windows=windows, scale=device.scale,
        accepted=[row[Counter.ACCEPTED] for row in rows], lost=[sum(row[c] for c in _LOST) for row in rows],
        gaps=[_words(device, REDUCTION_GAPS + REDUCTION_GAP_BINS * node, REDUCTION_GAP_BINS) for node in range(nodes)],
        shared=_words(device, REDUCTION_SHARED, nodes + 1),
        node_high=_words(device, REDUCTION_NODE_HIGH, nodes),
        vector_high=_words(device, REDUCTION_VECTOR_HIGH, 1)[0], store_high=_words(device, REDUCTION_STORE_HIGH, 1)[0])


def _words(device: Device, first: int, count: int) -> list[int]:
    """The given number of words of the reduction."""
    words: list[int] = []
    for index in range(first // REDUCTION_GROUP, (first + count - 1) // REDUCTION_GROUP + 1):
        device.write("REDUCTION_INDEX", index)
        words += struct.unpack(f"<{REDUCTION_GROUP}Q", device.link.read_burst(REDUCTION_BASE, 2 * REDUCTION_GROUP))
    return words[first % REDUCTION_GROUP:][:count]
