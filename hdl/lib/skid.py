"""Skid buffer: breaks a combinational chain of ready signals."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skid"]


class Skid(wiring.Component):
    """One-item skid buffer: holds the item that arrives while the consumer turns out not to be ready.

    An item passes in the same clock, one per clock. The producer's ``ready`` comes from a register, so the consumer's
    ``ready`` reaches only one bit upstream of it.

    Parameters
    ----------
    shape : shape of the payload.

    Members
    -------
    i, o : streams of ``shape``. ``i.ready`` does not depend on ``o.ready`` of the same clock.
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self.shape = shape

    def elaborate(self, platform):
        m = Module()
        kept = Signal(self.shape, reset_less=True)
        keeps = Signal()
        m.d.comb += [
            self.i.ready.eq(~keeps), self.o.valid.eq(self.i.valid | keeps), self.o.p.eq(Mux(keeps, kept, self.i.p)),
        ]
        m.d.sync += keeps.eq(self.o.valid & ~self.o.ready)
        with m.If(self.i.valid & ~keeps):
            m.d.sync += kept.eq(self.i.p)
        return m
