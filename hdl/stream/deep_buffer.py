"""Deep buffer: blocks wait in an SDRAM while the host is away for seconds."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry
from .blocker import beat_layout
from .external_fifo import BURST, ExternalFifo
from .sdram_controller import Sdram, sdram_signature
from .sdram_part import SdramPart

__all__ = ["DeepBuffer"]


class DeepBuffer(wiring.Component):
    """The FIFO in external memory, with the memory's controller, between a board's stream and its link.

    It is in the board's clock domain: links can be slower than a memory can be (a UART's clock, 12 MHz of full-speed
    USB). Its level is a register of the board, so neither the memory nor the level crosses clock domains.

    Parameters
    ----------
    geometry : the board's geometry; with external memory.
    part : the memory.
    ram : kind of memory for head and tail, see :class:`~.ram.Ram`.

    Members
    -------
    i, o, level, high : see :class:`~.external_fifo.ExternalFifo`.
    pins : see :func:`~.sdram_controller.sdram_signature`.

    Raises
    ------
    ValueError
        as :class:`~.external_fifo.ExternalFifo` and :class:`~.sdram_controller.Sdram` do.
    """

    def __init__(self, geometry: Geometry, part: SdramPart, ram: str = "portable"):
        self.fifo = ExternalFifo(geometry.external_depth, ram=ram)
        self.sdram = Sdram(part, geometry.clock_hz, geometry.external_depth // BURST)
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(stream.Signature(beat_layout())),
            "level": Out(self.fifo.level.shape()), "high": Out(self.fifo.high.shape()),
            "pins": Out(sdram_signature(part)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        m.submodules.sdram = sdram = self.sdram
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        wiring.connect(m, fifo.memory, sdram.memory)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        wiring.connect(m, sdram.pins, wiring.flipped(self.pins))
        m.d.comb += [self.level.eq(fifo.level), self.high.eq(fifo.high)]
        return m
