"""Clock-domain crossing between the board and a link that carries whole beats."""

from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..control.initiator import Initiator, access_layout
from ..control.pbx import pbx_signature
from ..layout import BEAT_BYTES
from ..stream.beats_to_16 import BeatsTo16
from ..stream.blocker import beat_layout
from .async_fifo import AsyncFifo

__all__ = ["BeatCrossing"]


class BeatCrossing(wiring.Component):
    """The stream as beats of 16 bytes in domain ``link``, and register accesses from there.

    Like :class:`~.crossing.Crossing`, for a link that is faster than a byte per clock of the board.

    Parameters
    ----------
    beat_bytes : bytes per beat of the board.

    Members
    -------
    stream : beats from the board, in ``sync``.
    bus : to the board, asynchronous.
    beats : the stream, in ``link``, in beats of 16 bytes.
    command, reply : register accesses, in ``link``; see :class:`~.initiator.Initiator`.
    """

    def __init__(self, beat_bytes: int = BEAT_BYTES):
        self.beat_bytes = beat_bytes
        super().__init__({
            "stream": In(stream.Signature(beat_layout(beat_bytes))), "bus": Out(pbx_signature()),
            "beats": Out(stream.Signature(beat_layout())),
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = AsyncFifo(beat_layout())
        m.submodules.initiator = DomainRenamer("link")(initiator := Initiator())
        if self.beat_bytes == BEAT_BYTES:
            wiring.connect(m, wiring.flipped(self.stream), fifo.i)
        else:
            m.submodules.to_16 = to_16 = BeatsTo16()
            wiring.connect(m, wiring.flipped(self.stream), to_16.i)
            wiring.connect(m, to_16.o, fifo.i)
        wiring.connect(m, fifo.o, wiring.flipped(self.beats))
        wiring.connect(m, wiring.flipped(self.command), initiator.command)
        wiring.connect(m, initiator.reply, wiring.flipped(self.reply))
        wiring.connect(m, initiator.bus, wiring.flipped(self.bus))
        return m
