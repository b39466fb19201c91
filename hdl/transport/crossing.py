"""Clock-domain crossing between the board and a link: contains every signal that crosses."""

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..control.initiator import Initiator, access_layout
from ..control.pbx import pbx_signature
from ..layout import BEAT_BYTES
from ..stream.blocker import beat_layout
from .async_fifo import AsyncFifo
from .beats_to_bytes import BeatsToBytes, byte_layout

__all__ = ["Crossing"]


class Crossing(wiring.Component):
    """The stream as bytes in domain ``link``, and register accesses from there.

    Blocks are whole: after a byte marked ``last``, a link sends what it holds at once, because the next block
    may be a long time coming.

    Parameters
    ----------
    beat_bytes : bytes per beat.
    marked : False if the link does not need the mark of a block's last byte, and accepts less than one byte in four
        clocks: its FIFO is so small that it is not worth a block RAM.

    Members
    -------
    stream : beats from the board, in ``sync``.
    bus : to the board, asynchronous.
    bytes : the stream, in ``link``; see :func:`~.beats_to_bytes.byte_layout`. ``last`` is 0 if not ``marked``.
    command, reply : register accesses, in ``link``; see :class:`~.initiator.Initiator`.
    """

    def __init__(self, beat_bytes: int = BEAT_BYTES, marked: bool = True):
        self.beat_bytes, self.marked = beat_bytes, marked
        super().__init__({
            "stream": In(stream.Signature(beat_layout(beat_bytes))), "bus": Out(pbx_signature()),
            "bytes": Out(stream.Signature(byte_layout())),
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.to_bytes = to_bytes = BeatsToBytes(self.beat_bytes)
        m.submodules.fifo = fifo = AsyncFifo(byte_layout()) if self.marked else AsyncFifo(8, depth=8)
        m.submodules.initiator = DomainRenamer("link")(initiator := Initiator())
        wiring.connect(m, wiring.flipped(self.stream), to_bytes.i)
        if self.marked:
            wiring.connect(m, to_bytes.o, fifo.i)
            wiring.connect(m, fifo.o, wiring.flipped(self.bytes))
        else:
            m.d.comb += [
                fifo.i.valid.eq(to_bytes.o.valid), fifo.i.p.eq(to_bytes.o.p.data), to_bytes.o.ready.eq(fifo.i.ready),
                self.bytes.valid.eq(fifo.o.valid), self.bytes.p.data.eq(fifo.o.p), fifo.o.ready.eq(self.bytes.ready),
            ]
        wiring.connect(m, wiring.flipped(self.command), initiator.command)
        wiring.connect(m, initiator.reply, wiring.flipped(self.reply))
        wiring.connect(m, initiator.bus, wiring.flipped(self.bus))
        return m
