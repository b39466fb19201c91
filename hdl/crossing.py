"""Between the board and a link with a clock of its own: everything that crosses."""

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .async_fifo import AsyncFifo
from .blocker import beat_layout
from .initiator import Initiator, access_layout
from .narrow import Narrow, byte_layout
from .pbx import pbx_signature

__all__ = ["Crossing"]


class Crossing(wiring.Component):
    """The stream as bytes in domain ``link``, and register accesses from there.

    Blocks are whole: behind a byte marked ``last``, a link sends what it has at once, for the next
    may not come for long.

    Members
    -------
    stream : beats from the board, in ``sync``.
    bus : to the board, asynchronous.
    bytes : the stream, in ``link``; see :func:`~.narrow.byte_layout`.
    command, reply : register accesses, in ``link``; see :class:`~.initiator.Initiator`.
    """

    def __init__(self):
        super().__init__({
            "stream": In(stream.Signature(beat_layout())), "bus": Out(pbx_signature()),
            "bytes": Out(stream.Signature(byte_layout())),
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.narrow = narrow = Narrow()
        m.submodules.fifo = fifo = AsyncFifo(byte_layout())
        m.submodules.initiator = DomainRenamer("link")(initiator := Initiator())
        wiring.connect(m, wiring.flipped(self.stream), narrow.i)
        wiring.connect(m, narrow.o, fifo.i)
        wiring.connect(m, fifo.o, wiring.flipped(self.bytes))
        wiring.connect(m, wiring.flipped(self.command), initiator.command)
        wiring.connect(m, initiator.reply, wiring.flipped(self.reply))
        wiring.connect(m, initiator.bus, wiring.flipped(self.bus))
        return m
