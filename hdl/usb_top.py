"""The board with a USB link as plain ports."""

from amaranth.hdl import ClockDomain, Module, Signal

from .layout import Geometry
from .stream.sdram_part import SdramPart
from .top import LinkedTop
from .transport.usb.link import Usb
from .transport.usb.phy import Phy, UsbBus

__all__ = ["UsbTop"]


class UsbTop(LinkedTop):
    """The board in two unrelated clock domains.

    Ports: in addition to those of :class:`~.top.LinkedTop`, ``usb_clk``, 60 MHz, or 12 MHz on D+ and D-, and then
    ``usb_io_clk``, 48 MHz; ``usb_rst``; those of :class:`~.phy.UsbBus`.

    Parameters
    ----------
    geometry, ram, build, pad_stage, sdram : see :class:`~.top.LinkedTop`.
    serial : letters and digits that distinguish this board from others.
    phy : see :class:`~.phy.Phy`.

    Raises
    ------
    ValueError
        as :class:`~.top.LinkedTop` does, and for an invalid serial number.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, serial: str = "0",
                 phy: Phy = Phy.UTMI, pad_stage: bool = True, sdram: SdramPart | None = None):
        super().__init__(geometry, ram, build, pad_stage, sdram)
        self.wires = UsbBus(phy)
        self.link = Usb(self.wires.bus, serial)
        self.usb_clk = Signal()
        self.usb_io_clk = Signal()
        self.usb_rst = Signal()

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        io = [self.usb_io_clk] if self.wires.phy is Phy.PINS else []
        return super().ports(self.usb_clk, *io, self.usb_rst, *self.wires.ports)

    def elaborate(self, platform):
        m = Module()
        m.domains.usb = usb = ClockDomain(local=True)
        m.submodules.usb = self.link
        m.d.comb += [usb.clk.eq(self.usb_clk), usb.rst.eq(self.usb_rst), *self.wires.connected()]
        if self.wires.phy is Phy.PINS:
            m.domains.usb_io = io = ClockDomain(local=True)
            m.d.comb += [io.clk.eq(self.usb_io_clk), io.rst.eq(self.usb_rst)]
        self.board(m, self.link, "usb")
        return m
