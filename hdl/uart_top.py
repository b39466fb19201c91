"""The board with a UART link as plain ports."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module, Signal
from amaranth.lib.cdc import ResetSynchronizer

from .layout import Geometry
from .stream.sdram_part import SdramPart
from .top import LinkedTop
from .transport.uart.link import UartLink

__all__ = ["UartTop"]


class UartTop(LinkedTop):
    """The board with a UART link, which has its own clock.

    Ports: in addition to those of :class:`~.top.LinkedTop`, ``link_clk`` of the UART, of any rate and phase (it may be
    the board's); ``rx``, ``tx``.

    Parameters
    ----------
    link_hz, baud : rates of ``link_clk`` and of the line.
    geometry, ram, build, pad_stage, sdram : see :class:`~.top.LinkedTop`.

    Raises
    ------
    ValueError
        as :class:`~.top.LinkedTop` does, and for a rate that the clock cannot generate.
    """

    def __init__(self, geometry: Geometry, link_hz: int, baud: int, ram: str = "portable", build: int = 0,
                 pad_stage: bool = True, sdram: SdramPart | None = None):
        super().__init__(geometry, ram, build, pad_stage, sdram)
        self.link = UartLink(link_hz, baud, ram)
        self.link_clk = Signal()
        self.rx = Signal(init=1)
        self.tx = Signal(init=1)

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return super().ports(self.link_clk, self.rx, self.tx)

    def elaborate(self, platform):
        m = Module()
        m.domains.link = link = ClockDomain(local=True)
        m.submodules.uart = DomainRenamer("link")(uart := self.link)
        m.submodules.link_reset = ResetSynchronizer(self.rst, domain="link")
        m.d.comb += [link.clk.eq(self.link_clk), uart.rx.eq(self.rx), self.tx.eq(uart.tx)]
        self.board(m, uart, "link", marked=False)
        return m
