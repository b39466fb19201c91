"""Converts the stream to single bytes, as links carry it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES
from ..stream.blocker import beat_layout

__all__ = ["BeatsToBytes", "byte_layout"]


def byte_layout() -> data.StructLayout:
    """A byte of the stream, and whether it is the last one of its block."""
    return data.StructLayout({"data": 8, "last": 1})


class BeatsToBytes(wiring.Component):
    """Beats to bytes: 16 bytes in 17 clocks, 2 in 3.

    It is upstream of the crossing, in the board's clock domain: 9 bits that cross need a fourteenth of the
    memory of 129, and no link accepts more bytes per second than a board has clocks.

    Parameters
    ----------
    beat_bytes : bytes per beat.

    Members
    -------
    i : beats.
    o : their bytes, the lowest first.
    """

    def __init__(self, beat_bytes: int = BEAT_BYTES):
        self.beat_bytes = beat_bytes
        super().__init__({
            "i": In(stream.Signature(beat_layout(beat_bytes))), "o": Out(stream.Signature(byte_layout()))})

    def elaborate(self, platform):
        m = Module()
        beat = Signal(8 * self.beat_bytes, reset_less=True)
        ends = Signal()                      # the beat is the last one of its block
        left = Signal(range(self.beat_bytes))     # bytes after this one
        final = Signal()                     # left == 0
        m.d.comb += [
            self.i.ready.eq(~self.o.valid), self.o.p.data.eq(beat[:8]), self.o.p.last.eq(ends & final)]
        with m.If(~self.o.valid):
            m.d.sync += [
                beat.eq(self.i.p.data), ends.eq(self.i.p.last), self.o.valid.eq(self.i.valid),
                left.eq(self.beat_bytes - 1), final.eq(0),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [beat.eq(beat[8:]), left.eq(left - 1), final.eq(left == 1), self.o.valid.eq(~final)]
        return m
