"""Packs 2-byte beats into 16-byte beats."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, NARROW_BYTES
from .blocker import beat_layout

__all__ = ["BeatsTo16"]


class BeatsTo16(wiring.Component):
    """Collects eight beats into one; blocks consist of whole beats of both sizes.

    Members
    -------
    i : beats of 2 bytes.
    o : beats of 16 bytes; one every eight clocks if both sides are always ready.
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(beat_layout(NARROW_BYTES))), "o": Out(stream.Signature(beat_layout()))})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(BEAT_BYTES // NARROW_BYTES), init=BEAT_BYTES // NARROW_BYTES - 1)
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                self.o.p.data.eq(Cat(self.o.p.data[8 * NARROW_BYTES:], self.i.p.data)), self.o.p.last.eq(self.i.p.last),
                left.eq(left - 1), self.o.valid.eq(left == 0),
            ]
        return m
