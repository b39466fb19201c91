"""Transmitter: the regeneration board's gateware, from the flip-flops of the pads to two bits a clock."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..input.strobe_synchronizer import StrobeSynchronizer
from ..layout import LINK_NODES, PORT_BITS
from .byte_coder import ByteCoder
from .frame_serializer import FrameSerializer
from .link_counts import LinkCounts
from .moment_gate import MomentGate

__all__ = ["Transmitter"]


class Transmitter(wiring.Component):
    """Sends the strobes of eight nodes. It has no reset and no settings but straps: it begins with the first clock.

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.

    Members
    -------
    strobe, data : levels after the first flip-flop, one bit and one nibble per node.
    rising, falling, after : see :class:`~..input.strobe_synchronizer.StrobeSynchronizer`.
    live : nodes whose strobes count.
    bits : to the line, see :class:`~.frame_serializer.FrameSerializer`.
    refused : items that the gate has refused; for benches.
    """

    def __init__(self, ram: str = "portable"):
        self.ram = ram
        super().__init__({
            "strobe": In(LINK_NODES), "data": In(PORT_BITS * LINK_NODES), "rising": In(LINK_NODES),
            "falling": In(LINK_NODES), "after": In(LINK_NODES), "live": In(LINK_NODES),
            "bits": Out(2), "refused": Out(LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.synchronizer = synchronizer = StrobeSynchronizer(LINK_NODES, False)
        m.submodules.gate = gate = MomentGate(self.ram)
        m.submodules.coder = coder = ByteCoder()
        m.submodules.counts = counts = LinkCounts(self.ram)
        m.submodules.serializer = serializer = FrameSerializer()
        now = Signal(len(counts.now))
        m.d.sync += now.eq(now + 1)
        wiring.connect(m, gate.o, coder.i)
        m.d.comb += [
            synchronizer.strobe.eq(self.strobe), synchronizer.data.eq(self.data),
            synchronizer.rising.eq(self.rising), synchronizer.falling.eq(self.falling),
            synchronizer.after.eq(self.after),
            gate.pulse.eq(synchronizer.pulse & self.live), gate.nibble.eq(synchronizer.nibble), gate.now.eq(now),
            coder.now.eq(now), coder.side.eq(counts.side),
            counts.now.eq(now), counts.refused.eq(gate.refused), counts.sent.eq(coder.sent), counts.node.eq(coder.node),
            serializer.now.eq(now), serializer.byte.eq(coder.byte),
            self.bits.eq(serializer.bits), self.refused.eq(gate.refused),
        ]
        return m
