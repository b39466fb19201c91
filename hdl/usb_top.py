"""The board with a USB link as plain ports: on a UTMI bus, as a PHY inside an FPGA or a simulation has it."""

from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Module, Signal
from amaranth.lib import wiring
from luna.gateware.interface.utmi import UTMIInterface

from .capture import Capture
from .crossing import Crossing
from .layout import Geometry
from .usb import Usb

__all__ = ["UsbTop"]

#: Of the UTMI bus: what the device drives, and what the PHY does.
_DEVICE = ("tx_data", "tx_valid", "xcvr_select", "term_select", "op_mode")
_PHY = ("rx_data", "rx_active", "rx_valid", "tx_ready", "line_state", "session_end")


class UsbTop(Elaboratable):
    """The board in two clock domains that know nothing of each other.

    Ports: ``clk``, ``rst``, ``data``, ``strobe``, ``early``, ``running`` as of :class:`~.top.PlainTop`; ``usb_clk``,
    60 MHz, ``usb_rst``; ``utmi_*``, an 8-bit UTMI bus.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable", build: int = 0, serial: str = "0"):
        self.capture, self.serial = Capture(geometry, ram, build), serial
        self.clk = Signal()
        self.rst = Signal()
        self.usb_clk = Signal()
        self.usb_rst = Signal()
        self.data = Signal(geometry.port_bits * geometry.nodes)
        self.strobe = Signal(geometry.nodes)
        self.early = Signal(geometry.nodes)
        self.running = Signal()
        self.utmi = UTMIInterface()
        self._utmi = {name: Signal.like(self.utmi[name], name=f"utmi_{name}") for name in (*_DEVICE, *_PHY)}

    def ports(self) -> list[Signal]:
        """All ports, in the order in which they appear in the Verilog."""
        return [self.clk, self.rst, self.usb_clk, self.usb_rst, self.data, self.strobe,
                *([self.early] if self.capture.geometry.half_clock else []), self.running, *self._utmi.values()]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.domains.usb = usb = ClockDomain()
        m.domains.por = por = ClockDomain(reset_less=True)
        reset = Signal(init=1)
        m.d.por += reset.eq(self.rst)
        m.submodules.capture = capture = self.capture
        m.submodules.crossing = crossing = DomainRenamer({"link": "usb"})(Crossing())
        m.submodules.usb = link = Usb(self.utmi, self.serial)
        wiring.connect(m, capture.stream, crossing.stream)
        wiring.connect(m, crossing.bus, capture.bus)
        wiring.connect(m, crossing.bytes, link.bytes)
        wiring.connect(m, link.command, crossing.command)
        wiring.connect(m, crossing.reply, link.reply)
        m.d.comb += [
            sync.clk.eq(self.clk), por.clk.eq(self.clk), sync.rst.eq(reset),
            usb.clk.eq(self.usb_clk), usb.rst.eq(self.usb_rst),
            capture.data.eq(self.data), capture.strobe.eq(self.strobe), self.running.eq(capture.running),
            *(self._utmi[name].eq(self.utmi[name]) for name in _DEVICE),
            *(self.utmi[name].eq(self._utmi[name]) for name in _PHY),
        ]
        if self.capture.geometry.half_clock:
            m.d.comb += capture.early.eq(self.early)
        return m
