"""The device on Verilator at full speed, behind a PHY and on the bare cable, see ``benches/usb.py``."""

import pytest
from amaranth.back import verilog
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal

from ...harness.runner import build, run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SERIAL, BLOCK = "X5", 150


class Device(Elaboratable):
    """The link, and a board that answers reads with their address and streams one block."""

    def __init__(self, phy: str):
        from hypermon.hdl.transport.usb.link import Usb
        from hypermon.hdl.transport.usb.phy import Phy, UsbBus

        self.wires = UsbBus(Phy(phy))
        self.link = Usb(self.wires.bus, SERIAL)
        self.domains = {name: ClockDomain(name) for name in ("usb", *(["usb_io"] if phy == "pins" else []))}
        self.usb_rst = Signal()

    def ports(self) -> list[Signal]:
        return [*(domain.clk for domain in self.domains.values()), self.usb_rst, *self.wires.ports]

    def elaborate(self, platform):
        m = Module()
        m.domains += list(self.domains.values())
        m.submodules.link = link = self.link
        at = Signal(range(BLOCK + 1))
        m.d.comb += [
            *(domain.rst.eq(self.usb_rst) for domain in self.domains.values()), *self.wires.connected(),
            link.command.ready.eq(1), link.reply.valid.eq(1), link.reply.p.eq(link.command.p.addr),
            link.bytes.valid.eq(at != BLOCK), link.bytes.p.data.eq(at), link.bytes.p.last.eq(at == BLOCK - 1),
        ]
        with m.If(link.bytes.valid & link.bytes.ready):
            m.d.usb += at.eq(at + 1)
        return m


@pytest.mark.parametrize("phy", ["utmi", pytest.param("pins", marks=pytest.mark.slow)])
def test_enumeration(phy):
    device = Device(phy)
    text = verilog.convert(device, name="device", ports=device.ports(), emit_src=False, strip_internal_attrs=True)
    run(build(f"usb_{phy}", text, "device"), "usb", "enumeration", 0, phy=phy, serial=SERIAL, block=BLOCK)
