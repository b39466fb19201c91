"""Static timing of the links on an ECP5-25F: `make timing OF=links`.

Each link and its crossing are placed between the link's pins and a shell of shift registers in place of the board,
which needs only minutes. With ``--board`` the whole board of 16 nodes takes the place of the shell, with its ports at
pins. The printed figures are nextpnr's maximum frequencies of each clock, not measurements on silicon. It fails if a
link's clock does not exceed the frequency that the link needs by a tenth, or if the capture clock of a whole board is
below 150 MHz.
"""

import argparse
import sys
import warnings
from pathlib import Path

from amaranth.hdl import Cat, ClockDomain, DomainRenamer, Elaboratable, Module, Signal
from amaranth.lib import wiring
from hypermon.boards.measure.core_timing import ASKED, place, synthesize, used
from hypermon.hdl.layout import Geometry, Sink
from hypermon.hdl.top import LinkedTop
from hypermon.hdl.transport.crossing import Crossing
from hypermon.hdl.transport.uart.link import UartLink
from hypermon.hdl.uart_top import UartTop

__all__ = ["main"]

#: Clock frequencies that each link needs, in MHz; the target is a tenth higher.
NEEDED = {
    "usb-ulpi": {"usb_clk": 60.0}, "usb-utmi": {"usb_clk": 60.0}, "usb-pins": {"usb_clk": 12.0, "usb_io_clk": 48.0},
    "uart": {"link_clk": 60.0},
}
_SPARE = 1.1
#: MHz of the capture clock below which this fails.
_CAPTURE_LEAST = 150.0
_BAUD, _LINK_HZ = 3_000_000, 60_000_000


class LinkShell(Elaboratable):
    """A link and its crossing; the board's side is on shift registers at ``clk``."""

    def __init__(self, name: str):
        self.name = name
        self.clk = Signal()
        self.serial_in = Signal()
        self.serial_out = Signal()
        self.clocks = {clock: Signal(name=clock) for clock in NEEDED[name]}
        if name == "uart":
            self.rx, self.tx = Signal(), Signal()
            self.wires = [self.rx, self.tx]
        else:
            from hypermon.hdl.transport.usb.phy import Phy, UsbBus

            self.bus = UsbBus(Phy(name.removeprefix("usb-")))
            self.wires = self.bus.ports

    def ports(self) -> list[Signal]:
        return [self.clk, self.serial_in, self.serial_out, *self.clocks.values(), *self.wires]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.d.comb += sync.clk.eq(self.clk)
        for name, clock in self.clocks.items():
            domain = ClockDomain(name.removesuffix("_clk"))
            m.domains += domain
            m.d.comb += domain.clk.eq(clock)
        link, domain = self._link(m)
        m.submodules.crossing = DomainRenamer({"link": domain})(crossing := Crossing())
        wiring.connect(m, crossing.bytes, link.bytes)
        wiring.connect(m, link.command, crossing.command)
        wiring.connect(m, crossing.reply, link.reply)
        bus, stream = crossing.bus, crossing.stream
        fed = Cat(stream.p.data, stream.p.last, stream.valid, bus.rdata, bus.ack)
        shown = Cat(bus.req, bus.write, bus.addr, bus.wdata, stream.ready)
        shift_in, shift_out = Signal(len(fed)), Signal(len(shown))
        m.d.comb += [fed.eq(shift_in), self.serial_out.eq(shift_out[0])]
        m.d.sync += [shift_in.eq(Cat(self.serial_in, shift_in)), shift_out.eq(shift_out[1:] ^ shown)]
        return m

    def _link(self, m: Module):
        """The link, and its clock domain."""
        if self.name == "uart":
            link = UartLink(_LINK_HZ, _BAUD, "ecp5")
            m.submodules.link = DomainRenamer("link")(link)
            m.d.comb += [link.rx.eq(self.rx), self.tx.eq(link.tx)]
            return link, "link"
        from hypermon.hdl.transport.usb.link import Usb

        m.submodules.link = link = Usb(self.bus.bus, "0")
        m.d.comb += self.bus.connected()
        return link, "usb"


def whole_board(link: str, config: str) -> LinkedTop:
    """The board of 16 nodes with a link."""
    make = Geometry.extended if config == "extended" else Geometry
    geometry = make(nodes=16, clock_hz=180_000_000)
    if link == "uart":
        return UartTop(geometry, _LINK_HZ, _BAUD, "ecp5")
    from hypermon.hdl.transport.usb.phy import Phy
    from hypermon.hdl.usb_top import UsbTop

    return UsbTop(geometry, "ecp5", phy=Phy(link.removeprefix("usb-")))


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make timing OF=links", description=__doc__)
    parser.add_argument("--links", nargs="+", choices=NEEDED, default=list(NEEDED))
    parser.add_argument("--board", choices=[sink.name.lower() for sink in Sink],
                        help="The whole board, not the link alone.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=Path(".build/timing"))
    args = parser.parse_args(argv)
    # LUNA uses parts of Amaranth that are deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    slow = []
    for name in args.links:
        asked = {clock: _SPARE * mhz for clock, mhz in NEEDED[name].items()}
        least = dict(asked)
        folder = args.output / (f"{name}-{args.board}" if args.board else name)
        if args.board:
            asked["clk"], least["clk"] = ASKED[args.board], _CAPTURE_LEAST
        synthesize(whole_board(name, args.board) if args.board else LinkShell(name), folder)
        for seed in args.seeds:
            figures = place(folder, seed, max(asked.values()), **asked)
            reached = {clock: next((fmax["achieved"] for net, fmax in figures["fmax"].items()
                                    if net.removeprefix("$glbnet$").removesuffix("$TRELLIS_IO_IN") == clock), 0.0)
                       for clock in asked}
            print(f"{name}, seed {seed}: " + "  ".join(f"{clock} {mhz:.1f} MHz" for clock, mhz in reached.items())
                  + f"  {used(figures)}", flush=True)
            slow += [f"{name}, seed {seed}: {clock} {mhz:.1f} MHz" for clock, mhz in reached.items()
                     if mhz < least[clock]]
    if slow:
        sys.exit("too slow: " + "; ".join(slow))


if __name__ == "__main__":
    main()
