"""Skid: ends a chain of stages each of which is ready only if the next one is."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skid"]


class Skid(wiring.Component):
    """A place for the one item that comes while the consumer turns out not to be ready.

    An item passes in the same clock, one in and one out every clock. Whether it is taken, the producer learns from a
    register, so that the consumer's ``ready`` reaches nothing before it but one bit.

    Parameters
    ----------
    shape : of the payload.

    Members
    -------
    i, o : streams of ``shape``. ``i.ready`` does not look at ``o.ready`` of its own clock.
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
        with m.If(~keeps):
            m.d.sync += kept.eq(self.i.p)
        return m
