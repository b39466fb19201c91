"""Packs beats of 2 or 4 bytes into beats of 16 bytes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, NARROW_BYTES
from .blocker import beat_layout

__all__ = ["BeatsTo16"]


class BeatsTo16(wiring.Component):
    """Collects several beats into one; blocks consist of whole beats of both sizes.

    Parameters
    ----------
    beat_bytes : bytes per beat that comes.

    Members
    -------
    i : beats of ``beat_bytes``.
    o : beats of 16 bytes; a short beat comes every clock if both sides are always ready.
    """

    def __init__(self, beat_bytes: int = NARROW_BYTES):
        self.beat_bytes = beat_bytes
        super().__init__({
            "i": In(stream.Signature(beat_layout(beat_bytes))), "o": Out(stream.Signature(beat_layout()))})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(BEAT_BYTES // self.beat_bytes), init=BEAT_BYTES // self.beat_bytes - 1)
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                self.o.p.data.eq(Cat(self.o.p.data[8 * self.beat_bytes:], self.i.p.data)),
                self.o.p.last.eq(self.i.p.last),
                left.eq(left - 1), self.o.valid.eq(left == 0),
            ]
        return m
