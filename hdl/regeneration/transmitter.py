"""Transmitter: the regeneration board's gateware, from the flip-flops of the pads to two bits per clock."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..input.item_framer import ItemFramer
from ..input.strobe_synchronizer import StrobeSynchronizer
from ..layout import (
    LINK_AGE,
    LINK_FRAME_CLOCKS,
    LINK_LAG_BITS,
    LINK_NODES,
    LINK_SILENT,
    LINK_SUPERFRAME,
    PORT_BITS,
)
from .byte_coder import ByteCoder
from .frame_serializer import FrameSerializer
from .item_silence import TICK_CLOCKS, ItemSilence
from .link_counts import LinkCounts
from .moment_gate import MomentGate

__all__ = ["Transmitter"]

#: The last value of the part of a clock's number that the stamps of moments do not have.
_LAST = (LINK_SUPERFRAME * LINK_FRAME_CLOCKS >> LINK_LAG_BITS) - 1
assert (_LAST + 1) << LINK_LAG_BITS == LINK_SUPERFRAME * LINK_FRAME_CLOCKS


class Transmitter(wiring.Component):
    """Sends the strobes of eight nodes. It has no reset, and no settings other than its configuration pins (straps). It
    begins with the first clock, and sends frames after the time of ``LINK_SILENT`` of them. Until then its line is low.

    It knows the items of nodes in word and in event mode: it admits or refuses them whole, counts them, and reports to
    the receiver for each nibble whether it begins an item. An item is cut short if the FIFO is full before its end, or
    if its node falls silent (see :class:`~.item_silence.ItemSilence`).

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.
    tick_clocks : see :class:`~.item_silence.ItemSilence`.
    limited : see :class:`~.moment_gate.MomentGate`.

    Members
    -------
    strobe, data : levels after the first flip-flop, one bit and one nibble per node.
    rising, falling, after : see :class:`~..input.strobe_synchronizer.StrobeSynchronizer`.
    live : nodes whose strobes count.
    words, events : see :class:`~..input.item_framer.ItemFramer`.
    abort : nodes whose items are cut short, if one is open; see :class:`~.link_fronts.LinkFronts`.
    expired : nodes whose items are cut short because they are silent.
    before : events that a node's :class:`~..store_port.StorePort` refused, or pieces that were none (see
        :class:`~.link_fronts.LinkFronts`), one stream per node; they are counted as refused items. One is taken in each
        clock in which the gate refuses nothing of that node.
    bits : to the line, see :class:`~.frame_serializer.FrameSerializer`.
    refused : items that the gate has refused; for benches.
    """

    def __init__(self, ram: str = "portable", tick_clocks: int = TICK_CLOCKS, limited: bool = True):
        self.ram, self.tick_clocks, self.limited = ram, tick_clocks, limited
        super().__init__({
            "strobe": In(LINK_NODES), "data": In(PORT_BITS * LINK_NODES), "rising": In(LINK_NODES),
            "falling": In(LINK_NODES), "after": In(LINK_NODES), "live": In(LINK_NODES),
            "words": In(LINK_NODES), "events": In(LINK_NODES), "abort": In(LINK_NODES),
            "expired": Out(LINK_NODES), "bits": Out(2), "refused": Out(LINK_NODES),
            "before": In(stream.Signature(0)).array(LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.synchronizer = synchronizer = StrobeSynchronizer(LINK_NODES, False)
        m.submodules.framer = framer = ItemFramer(LINK_NODES)
        m.submodules.silence = silence = ItemSilence(self.tick_clocks)
        m.submodules.gate = gate = MomentGate(self.ram, limited=self.limited)
        m.submodules.coder = coder = ByteCoder()
        m.submodules.counts = counts = LinkCounts(self.ram)
        m.submodules.serializer = serializer = FrameSerializer()
        # The first frame that is sent is the first one of the age.
        high, low = divmod((16 * LINK_AGE - LINK_SILENT) * LINK_FRAME_CLOCKS, 1 << LINK_LAG_BITS)
        high = Signal(len(counts.now) - LINK_LAG_BITS, init=high)
        low = Signal(LINK_LAG_BITS, init=low)
        carry, begun = Signal(), Signal()
        now, framed = Cat(low, high), (self.words | self.events).any()
        m.d.sync += [low.eq(low + 1), carry.eq(low == (1 << LINK_LAG_BITS) - 2), begun.eq(begun | high[-1])]
        with m.If(carry):
            m.d.sync += high.eq(Mux(high == _LAST, 0, high + 1))
        wiring.connect(m, gate.o, coder.i)
        m.d.comb += [
            *(before.ready.eq(~gate.refused[n]) for n, before in enumerate(self.before)),
            counts.refused.eq(gate.refused | Cat(before.valid for before in self.before)),
        ]
        m.d.comb += [
            synchronizer.strobe.eq(self.strobe), synchronizer.data.eq(self.data),
            synchronizer.rising.eq(self.rising), synchronizer.falling.eq(self.falling),
            synchronizer.after.eq(self.after),
            framer.pulse.eq(synchronizer.pulse & self.live), framer.data.eq(synchronizer.nibble),
            framer.words.eq(self.words), framer.events.eq(self.events),
            silence.pulse.eq(framer.pulse), framer.expired.eq(silence.expired | self.abort),
            self.expired.eq(silence.expired & framer.open & ~framer.pulse),
            gate.start.eq(framer.start), framer.admit.eq(gate.admit), framer.clear.eq(gate.outage),
            gate.further.eq(framer.goes & ~framer.cut), gate.nibble.eq(framer.nibble), gate.now.eq(now),
            gate.framed.eq(framed), coder.framed.eq(framed),
            coder.now.eq(now), coder.side.eq(counts.side),
            counts.now.eq(now), counts.sent.eq(coder.sent), counts.node.eq(coder.node),
            serializer.now.eq(now), serializer.byte.eq(coder.byte),
            self.bits.eq(Mux(begun, serializer.bits, 0)), self.refused.eq(gate.refused),
        ]
        return m
