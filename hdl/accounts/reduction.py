"""Reduction on the fly: statistics of a run before the host has read its data.

It counts passing items by the time since the last item of their node, and windows by the number of
items that share them. (The paper's authors had megabytes of frames to read before they knew that.)
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import (
    COUNTER_BITS,
    REDUCTION_GAPS,
    REDUCTION_NODE_HIGH,
    REDUCTION_SHARED,
    REDUCTION_STORE_HIGH,
    REDUCTION_VECTOR_HIGH,
    Geometry,
)
from .counters import counter_rows
from .gap_bins import GAP_BINS, Gaps
from .high_water import HighWater, NodeHighWater
from .tally import Tally

__all__ = ["Reduction"]


class Reduction(wiring.Component):
    """Histograms and high-water marks of a run, which the host can read during the run.

    Parameters
    ----------
    geometry : the board's geometry.
    ram : kind of the large memories, see :class:`~.ram.Ram`.

    Members
    -------
    clear, clearing : a reset, to be held until everything is zeroed.
    item : an item passes: its node, its stamp, whether it is the last of its window ...
    nibble : ... or one of its further nibbles, of which only ``last`` counts. Never both.
    node, time, last : node and stamp of the item; it is the last of its window.
    level, enters : of the node FIFOs, see :class:`~.node_fifo.NodeFifos`.
    vector_level, store_level : number of vectors and of beats in the other FIFOs.
    latch, latched : a pulse copies all histograms, each with the counts of one clock; see :class:`~.tally.Tally`.
    free : high for one clock at intervals, during a latch: for each, one clock must be left without an item.
    address : word to read, see :data:`~.layout.REDUCTION_GAPS` and the definitions after it ...
    word : ... three clocks later.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        nodes = geometry.nodes
        self.level_bits = {"vector": geometry.vector_depth.bit_length(), "store": geometry.compact_depth.bit_length()}
        super().__init__({
            "clear": In(1), "clearing": Out(1),
            "item": In(1), "nibble": In(1), "node": In(max(1, (nodes - 1).bit_length())), "time": In(64), "last": In(1),
            "level": In(nodes).array(geometry.node_depth.bit_length()), "enters": In(nodes),
            "vector_level": In(self.level_bits["vector"]), "store_level": In(self.level_bits["store"]),
            "latch": In(1), "latched": Out(1), "free": Out(1),
            "address": In(13), "word": Out(COUNTER_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        nodes = geometry.nodes
        m.submodules.gaps = gaps = Gaps(nodes)
        m.submodules.gap_counts = gap_counts = Tally(GAP_BINS * counter_rows(nodes), self.ram)
        bins = 32 if nodes < 32 else 64     # windows are counted by items, 0 to the number of nodes
        m.submodules.shared_counts = shared_counts = Tally(bins)
        m.submodules.node_high = node_high = NodeHighWater(nodes, geometry.node_depth)
        m.submodules.vector_high = vector_high = HighWater(self.level_bits["vector"])
        m.submodules.store_high = store_high = HighWater(self.level_bits["store"])

        # A window is complete with its last nibble.
        items = Signal(range(bins))
        sum_up = Signal()
        m.d.sync += [sum_up.eq((self.item | self.nibble) & self.last)]
        with m.If(sum_up | self.clear):
            m.d.sync += items.eq(self.item)
        with m.Elif(self.item):
            m.d.sync += items.eq(items + 1)
        m.d.comb += [
            gaps.clear.eq(self.clear), gaps.item.eq(self.item), gaps.node.eq(self.node), gaps.time.eq(self.time),
            gap_counts.up.eq(gaps.valid), gap_counts.at.eq(Cat(gaps.bin, gaps.of)),
            shared_counts.up.eq(sum_up), shared_counts.at.eq(items),
            node_high.enters.eq(self.enters), *(h.eq(n) for h, n in zip(node_high.level, self.level, strict=True)),
            vector_high.level.eq(self.vector_level), store_high.level.eq(self.store_level),
            *(part.clear.eq(self.clear) for part in (gap_counts, shared_counts, node_high, vector_high, store_high)),
            *(part.latch.eq(self.latch) for part in (gap_counts, shared_counts)),
            self.clearing.eq(gap_counts.clearing | shared_counts.clearing),
            self.latched.eq(gap_counts.latched & shared_counts.latched),
            self.free.eq(gap_counts.free | shared_counts.free),
        ]

        # The word that is read.
        address = self.address
        m.d.comb += [gap_counts.address.eq(address), shared_counts.address.eq(address), node_high.node.eq(address)]
        marks = Signal(COUNTER_BITS)
        m.d.sync += [
            marks.eq(Mux(address[5], Mux(address[0], store_high.high, vector_high.high), node_high.high)),
            self.word.eq(Mux(address[12], marks, Mux(
                address[11], shared_counts.word, gap_counts.word))),
        ]
        assert (REDUCTION_GAPS, REDUCTION_SHARED, REDUCTION_NODE_HIGH) == (0, 1 << 11, 1 << 12)
        assert (REDUCTION_VECTOR_HIGH, REDUCTION_STORE_HIGH) == (REDUCTION_NODE_HIGH + 32, REDUCTION_NODE_HIGH + 33)
        return m
