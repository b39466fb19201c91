"""The links of a board's top: pads and clocks of each, and the gateware with that link."""

import warnings

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from hypermon.hdl.layout import Geometry
from hypermon.hdl.stream.sdram_part import SdramPart
from hypermon.hdl.top import LinkedTop
from hypermon.hdl.uart_top import UartTop

from ..model.links import BoardLink

__all__ = ["attach"]

_ULPI_HZ = 60_000_000


def attach(m: Module, platform, link: BoardLink, clocks, ready: Signal, geometry: Geometry, ram: str, build: int,
           serial: str, sdram: SdramPart | None = None) -> LinkedTop:
    """Creates the gateware with that link, and connects the link to its clocks and pads.

    ``clocks`` : the board's PLL, with a member for each of ``link.clocks``. ``ready`` : clocks and supplies are stable.
    ``serial`` : of a USB device. ``sdram`` : its external memory. The other parameters are those of
    :class:`~hypermon.hdl.top.LinkedTop`. The caller adds the gateware to ``m``, and connects the board's own ports.
    """
    port = platform.request(link.resource, 0, dir="-")
    if link.kind == "uart":
        top = UartTop(geometry, link.clocks["link"], link.baud, ram, build, pad_stage=False, sdram=sdram)
        m.submodules.rx = rx = io.Buffer("i", port.rx)
        m.submodules.tx = tx = io.Buffer("o", port.tx)
        m.d.comb += [top.link_clk.eq(clocks.link), top.rx.eq(rx.i), tx.o.eq(top.tx)]
        return top
    # LUNA uses parts of Amaranth that are deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from hypermon.hdl.transport.usb.phy import Phy
    from hypermon.hdl.usb_top import UsbTop

    phy = Phy(link.kind.removeprefix("usb-"))
    top = UsbTop(geometry, ram, build, serial, phy, pad_stage=False, sdram=sdram)
    m.domains.phy = ClockDomain(local=True)
    m.submodules.phy_reset = ResetSynchronizer(~ready, domain="phy")
    m.d.comb += [top.usb_clk.eq(ClockSignal("phy")), top.usb_rst.eq(ResetSignal("phy"))]
    wires = {wire.name: wire for wire in top.wires.ports}
    if phy is Phy.PINS:
        m.d.comb += [ClockSignal("phy").eq(clocks.usb), top.usb_io_clk.eq(clocks.usb_io)]
        _both_ways(m, wires, "usb", d_p=port.d_p, d_n=port.d_n)
        _outward(m, wires["usb_pullup_o"], "pullup", port.pullup)
        return top
    if link.clocks:
        m.d.comb += ClockSignal("phy").eq(clocks.usb)
        m.submodules.phy_clock = phy_clock = io.DDRBuffer("o", port.clk, o_domain="phy")
        m.d.comb += phy_clock.o.eq(0b01)
    else:
        m.submodules.phy_clock = phy_clock = io.Buffer("i", port.clk)
        m.d.comb += ClockSignal("phy").eq(phy_clock.i)
        platform.add_clock_constraint(port.clk.io, _ULPI_HZ)
    # Not by the domain's own reset, which waits for two clocks of a PHY that may supply none while it is reset.
    _outward(m, ~ready, "phy_held", port.rst)
    _outward(m, wires["ulpi_stp_o"], "stp", port.stp)
    _both_ways(m, wires, "ulpi", data=port.data)
    for name in ("dir", "nxt"):
        m.submodules[name] = pad = io.Buffer("i", getattr(port, name))
        m.d.comb += wires[f"ulpi_{name}_i"].eq(pad.i)
    return top


def _outward(m: Module, value, name: str, port) -> None:
    m.submodules[name] = pad = io.Buffer("o", port)
    m.d.comb += pad.o.eq(value)


def _both_ways(m: Module, wires: dict[str, Signal], prefix: str, **ports) -> None:
    for name, port in ports.items():
        m.submodules[name] = pad = io.Buffer("io", port)
        of = f"{prefix}_{name}"
        m.d.comb += [pad.o.eq(wires[f"{of}_o"]), pad.oe.eq(wires[f"{of}_oe"]), wires[f"{of}_i"].eq(pad.i)]
