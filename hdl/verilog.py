"""Plain Verilog of the board, for users without Amaranth and for the virtual board."""

import argparse
import functools
import hashlib
import shlex
import sys
import warnings
from pathlib import Path

from amaranth.back import rtlil
from amaranth.back import verilog as backend
from amaranth.hdl import ClockDomain, Module, Signal, UnusedElaboratable

from .axi_stream import AXI_BYTES
from .bus_top import BusTop
from .capture import Capture
from .layout import BEAT_BYTES, PORT_BITS, SLIM_BYTES, Extra, Front, Geometry, Option, Sink
from .lib.ram import RAM_KINDS
from .onchip_port import OnchipPort
from .pcie_top import PCIE_BLOCKS, PcieTop
from .stream.sdram_part import SdramPart
from .top import LinkedTop, PlainTop
from .uart_top import UartTop
from .verilog_header import headed

__all__ = [
    "build_hash", "bus_verilog", "main", "onchip_verilog", "pcie_verilog", "uart_verilog", "usb_verilog", "verilog"]


#: Values of usb_phy.Phy, which needs LUNA.
_PHYS = ("utmi", "ulpi", "pins")


@functools.cache
def build_hash(geometry: Geometry) -> int:
    """32 bits that identify the gateware: a hash of the capture core as it is elaborated for ``geometry``.

    A change of logic changes it. A comment, or the file that a module is in, does not. The kind of memory, the link and
    the pads are not part of it. Needs one or two seconds for each geometry.
    """
    text = rtlil.convert(Capture(geometry, build=0), name="capture", emit_src=False)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def verilog(geometry: Geometry, ram: str = "portable", pad_stage: bool = True, sdram: SdramPart | None = None,
            skips: bool = False, link_front: tuple[Front, int] = (Front.PORT, 0)) -> str:
    """Verilog of module ``hypermon``; see :class:`~.top.PlainTop` for its ports, and for ``skips`` and ``link_front``.

    Raises
    ------
    ValueError
        for a memory kind that does not exist.
    """
    return _converted(PlainTop(geometry, ram, build_hash(geometry), pad_stage, sdram, skips, link_front))


def uart_verilog(geometry: Geometry, link_hz: int, baud: int, ram: str = "portable", pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon`` with a UART link; see :class:`~.uart_top.UartTop` for its ports, parameters and
    errors.
    """
    return _converted(UartTop(geometry, link_hz, baud, ram, build_hash(geometry), pad_stage))


def pcie_verilog(geometry: Geometry, block: str = "us", ram: str = "portable", pad_stage: bool = True,
                 link_hz: int | None = None) -> str:
    """Verilog of module ``hypermon`` with a PCIe link; see :class:`~.pcie_top.PcieTop` for its ports, parameters and
    errors.
    """
    return _converted(PcieTop(geometry, block, ram, build_hash(geometry), pad_stage, link_hz=link_hz))


def bus_verilog(geometry: Geometry, axi_bytes: int = BEAT_BYTES, ram: str = "portable", pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon`` with Wishbone and AXI-Stream; see :class:`~.bus_top.BusTop` for ports and errors.
    """
    return _converted(BusTop(geometry, ram, build_hash(geometry), pad_stage, axi_bytes))


def onchip_verilog(port_bits: int = PORT_BITS, hold: int = 1) -> str:
    """Verilog of module ``hypermon_port``; see :class:`~.onchip_port.OnchipPort`: members of its bus as ``wb_*``, and
    ``clk``, ``rst``."""
    m = Module()
    m.submodules.port = port = OnchipPort(port_bits, hold)
    m.domains.sync = sync = ClockDomain()
    clk, rst = Signal(name="clk"), Signal(name="rst")
    m.d.comb += [sync.clk.eq(clk), sync.rst.eq(rst)]
    ports = [clk, rst]
    for name, member in port.bus.signature.members.items():
        ports.append(outer := Signal(member.shape, name=f"wb_{name}"))
        inner = getattr(port.bus, name)
        m.d.comb += outer.eq(inner) if member.flow.name == "Out" else inner.eq(outer)
    for name in ("strobe", "data"):
        ports.append(outer := Signal.like(getattr(port, name), name=name))
        m.d.comb += outer.eq(getattr(port, name))
    return backend.convert(m, name="hypermon_port", ports=ports, emit_src=False, strip_internal_attrs=True)


def _converted(top: PlainTop | LinkedTop) -> str:
    return backend.convert(top, name="hypermon", ports=top.ports(), emit_src=False, strip_internal_attrs=True)


def usb_verilog(geometry: Geometry, phy: str = "utmi", serial: str = "0", ram: str = "portable",
                pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon`` with a USB link; see :class:`~.usb_top.UsbTop` for its ports and errors.

    ``phy`` : a value of :class:`~.phy.Phy`.
    """
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that are deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        from .transport.usb.phy import Phy
        from .usb_top import UsbTop

        return _converted(UsbTop(geometry, ram, build_hash(geometry), serial, Phy(phy), pad_stage))


def main(argv: list[str] | None = None, what: str = "") -> None:
    """Command line: writes the Verilog to a file. ``what``: the configuration, in words, for its header."""
    parser = argparse.ArgumentParser(prog="hypermon-verilog", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="file to write")
    parser.add_argument("--nodes", type=int, default=16, help="1..32 (default 16)")
    parser.add_argument("--clock", type=int, default=100_000_000, metavar="HZ",
                        help="capture clock, a multiple of 5 MHz (default 100 MHz)")
    parser.add_argument("--node-depth", type=int, default=64, help="nibbles a node FIFO holds (default 64)")
    parser.add_argument("--vector-depth", type=int, default=1024, help="strobe vectors queued (default 1024)")
    parser.add_argument("--frame-depth", type=int, default=1024, help="event frames queued (default 1024)")
    parser.add_argument("--store-depth", type=int, default=0, metavar="BEATS",
                        help="beats of 16 bytes that wait for the link in block RAM (default 0)")
    parser.add_argument("--external-depth", type=int, default=0, metavar="BEATS",
                        help="capacity of the external memory at the ports memory_*, in beats (default 0)")
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="classic",
                        help="the classic sink alone, or the extended one too (default classic)")
    parser.add_argument("--without", nargs="+", default=(), choices=[option.name.lower() for option in Option],
                        help="options left out, in favour of size and clock rate (needs --config extended)")
    parser.add_argument("--beat-bytes", type=int, choices=(BEAT_BYTES, SLIM_BYTES), default=BEAT_BYTES,
                        help="bytes per clock from packer to checksum; 4 makes the board smaller, with the same ports "
                             "(default 16)")
    parser.add_argument("--with", nargs="+", default=(), choices=[extra.name.lower() for extra in Extra], dest="extras",
                        help="parts in addition (docs/several-boards.md; needs --config extended): the echo of "
                             "sync_out, and the pins pps_in and trigger_in")
    fine = parser.add_mutually_exclusive_group()
    fine.add_argument("--half-clock", action="store_const", const=2, default=1, dest="phases",
                      help="strobes sampled twice a clock, by a port more: early (needs --config extended)")
    fine.add_argument("--quarter-clock", action="store_const", const=4, dest="phases",
                      help="strobes sampled four times a clock, with a wider port early")
    parser.add_argument("--no-pad-stage", action="store_true",
                        help="the first flip-flop of each port's wire is outside, in an I/O cell")
    parser.add_argument("--port-bits", type=int, default=PORT_BITS, metavar="4|8",
                        help="data bits of a port (default 4); with 8, --config extended has no classic sink")
    parser.add_argument("--ram", choices=RAM_KINDS, default="portable",
                        help="inferred memories, or explicit block RAMs of a family (default portable)")
    parser.add_argument("--link", choices=("bus", "uart", *(f"usb-{phy}" for phy in _PHYS),
                                           *(f"pcie-{block}" for block in PCIE_BLOCKS)),
                        help="the board with a link, instead of its bus and stream: Wishbone and AXI-Stream "
                             "(docs/integrate.md); a UART, or USB by a UTMI or ULPI PHY or by D+ and D- alone "
                             "(docs/links.md); PCIe by the block of an UltraScale+ or a 7-series device (docs/pcie.md)")
    parser.add_argument("--axi-bytes", type=int, choices=AXI_BYTES, default=BEAT_BYTES,
                        help="width of the AXI-Stream (default 16)")
    parser.add_argument("--onchip-port", action="store_true",
                        help="not the board but module hypermon_port: a node's port as a register on Wishbone, for a "
                             "soft core beside the board (--port-bits, --hold)")
    parser.add_argument("--hold", type=int, default=1, metavar="CLOCKS",
                        help="how long each level of its strobe lasts (default 1)")
    parser.add_argument("--link-clock", type=int, metavar="HZ",
                        help="clock of the UART (default 60 MHz), or of the PCIe block, 62.5 to 250 MHz (default 250 "
                             "MHz for UltraScale+, 62.5 MHz for 7 series)")
    parser.add_argument("--baud", type=int, default=3_000_000, help="of the UART (default 3000000)")
    parser.add_argument("--serial", default="0", help="serial number of the USB device: letters and digits (default 0)")
    args = parser.parse_args(argv)
    refused = ""
    with warnings.catch_warnings():
        # A board that the command line rejects is not used.
        warnings.simplefilter("ignore", UnusedElaboratable)
        try:
            said, text = _asked(args)
        except ValueError as error:
            refused = str(error)
    if refused:
        parser.error(refused)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    options = _without_output(sys.argv[1:] if argv is None else argv)
    args.output.write_text(headed(text, args.output.name, f"{what} ({said})" if what else said, options))
    print(f"{args.output}: {said}, {len(text.splitlines())} lines")


def _without_output(options: list[str]) -> str:
    """The options as they are typed, but for the name of the file."""
    kept, skip = [], False
    for option in options:
        if not skip and option not in ("-o", "--output") and not option.startswith("--output="):
            kept.append(option)
        skip = option in ("-o", "--output")
    return shlex.join(kept)


def _asked(args: argparse.Namespace) -> tuple[str, str]:
    """Description of the requested configuration, and its Verilog."""
    if args.onchip_port:
        return f"module hypermon_port, {args.port_bits} bits", onchip_verilog(args.port_bits, args.hold)
    sinks = tuple(sink for sink in Sink if sink <= Sink[args.config.upper()])
    if args.port_bits == 8 and Sink.EXTENDED in sinks:
        sinks = (Sink.EXTENDED,)
    geometry = Geometry(args.nodes, args.clock, args.node_depth, args.vector_depth, args.frame_depth, sinks,
                        store_depth=args.store_depth, external_depth=args.external_depth,
                        phases=args.phases, port_bits=args.port_bits,
                        absent=tuple(Option[name.upper()] for name in args.without), beat_bytes=args.beat_bytes,
                        extras=tuple(Extra[name.upper()] for name in args.extras))
    pad_stage = not args.no_pad_stage
    if args.link == "bus":
        text = bus_verilog(geometry, args.axi_bytes, args.ram, pad_stage)
    elif args.link == "uart":
        text = uart_verilog(geometry, args.link_clock or 60_000_000, args.baud, args.ram, pad_stage)
    elif args.link and args.link.startswith("pcie-"):
        text = pcie_verilog(geometry, args.link.removeprefix("pcie-"), args.ram, pad_stage, args.link_clock)
    elif args.link:
        text = usb_verilog(geometry, args.link.removeprefix("usb-"), args.serial, args.ram, pad_stage)
    else:
        text = verilog(geometry, args.ram, pad_stage)
    return (f"module hypermon, {geometry.nodes} nodes, {geometry.clock_hz / 1e6:g} MHz, "
            f"build {build_hash(geometry):08x}"), text


if __name__ == "__main__":
    main()
