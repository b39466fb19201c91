"""Gate and FIFO of a regeneration board: the only place on it where items are refused."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_LAG_BITS, LINK_MOMENTS, LINK_NODES, PORT_BITS
from ..lib.fifo import StreamFifo
from .link_code import MOMENT

__all__ = ["MomentGate"]


class MomentGate(wiring.Component):
    """Queues the items of each clock as one moment.

    An item is admitted if the gate is open and the FIFO has room. The gate closes with the first refusal, for all
    nodes, and reopens when the FIFO is at most half full, so that an outage is one and not a thousand.

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.
    depth : moments in the FIFO, a power of two of at least 4.

    Members
    -------
    pulse, nibble : items, one bit and one nibble per node.
    now : number of the clock.
    o : stream of moments, in order; ``mask`` is never 0.
    refused : items that are refused, one bit per node; combinational with ``pulse``.
    """

    def __init__(self, ram: str = "portable", depth: int = LINK_MOMENTS):
        self.ram, self.depth = ram, depth
        super().__init__({
            "pulse": In(LINK_NODES), "nibble": In(PORT_BITS * LINK_NODES), "now": In(LINK_LAG_BITS),
            "o": Out(stream.Signature(MOMENT)), "refused": Out(LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = StreamFifo(MOMENT, self.depth, self.ram)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        closed, half = Signal(), Signal(init=1)
        offered, barred = Signal(), Signal()
        m.d.comb += [
            offered.eq(self.pulse.any()), barred.eq(closed | ~fifo.i.ready),
            self.refused.eq(self.pulse & barred.replicate(LINK_NODES)),
            fifo.i.valid.eq(offered & ~closed),
            fifo.i.p.mask.eq(self.pulse), fifo.i.p.nibbles.eq(self.nibble), fifo.i.p.stamp.eq(self.now),
        ]
        m.d.sync += [
            half.eq(fifo.level <= self.depth // 2),
            closed.eq((closed & ~half) | (~closed & offered & ~fifo.i.ready)),
        ]
        return m
