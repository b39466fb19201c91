"""Plain Verilog of the board, for people who do not use Amaranth, and for the virtual board."""

import argparse
import hashlib
import warnings
from pathlib import Path

from amaranth.back import verilog as backend
from amaranth.hdl import UnusedElaboratable

from .layout import PORT_BITS, Geometry, Sink
from .top import LinkedTop, PlainTop, UartTop

__all__ = ["build_hash", "main", "uart_verilog", "usb_verilog", "verilog"]


#: Values of usb_phy.Phy, which needs LUNA.
_PHYS = ("utmi", "ulpi", "pins")


def build_hash(geometry: Geometry) -> int:
    """32 bits that name the gateware: its sources and its geometry."""
    digest = hashlib.sha256(repr(geometry).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return int.from_bytes(digest.digest()[:4], "little")


def verilog(geometry: Geometry, ram: str = "portable", pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon``; see :class:`~.top.PlainTop` for its ports.

    Raises
    ------
    ValueError
        for a memory kind that does not exist.
    """
    return _converted(PlainTop(geometry, ram, build_hash(geometry), pad_stage))


def uart_verilog(geometry: Geometry, link_hz: int, baud: int, ram: str = "portable", pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon`` behind a UART; see :class:`~.top.UartTop` for its ports, parameters and errors."""
    return _converted(UartTop(geometry, link_hz, baud, ram, build_hash(geometry), pad_stage))


def _converted(top: PlainTop | LinkedTop) -> str:
    return backend.convert(top, name="hypermon", ports=top.ports(), emit_src=False, strip_internal_attrs=True)


def usb_verilog(geometry: Geometry, phy: str = "utmi", serial: str = "0", ram: str = "portable",
                pad_stage: bool = True) -> str:
    """Verilog of module ``hypermon`` with a USB link; see :class:`~.usb_top.UsbTop` for its ports and errors.

    ``phy`` : a value of :class:`~.usb_phy.Phy`.
    """
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that will go.
        warnings.simplefilter("ignore", DeprecationWarning)
        from .usb_phy import Phy
        from .usb_top import UsbTop

        return _converted(UsbTop(geometry, ram, build_hash(geometry), serial, Phy(phy), pad_stage))


def main(argv: list[str] | None = None) -> None:
    """Command line: writes the Verilog to a file."""
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
                        help="beats that wait in external memory, behind ports memory_* (default 0)")
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="classic",
                        help="the classic sink alone, or the extended one too (default classic)")
    parser.add_argument("--half-clock", action="store_true",
                        help="strobes sampled twice a clock, by a port more: early (needs --config extended)")
    parser.add_argument("--no-pad-stage", action="store_true",
                        help="the first flip-flop of each port's wire is outside, in an I/O cell")
    parser.add_argument("--port-bits", type=int, default=PORT_BITS, metavar="4|8",
                        help="data bits of a port (default 4); with 8 --config extended has no classic sink beside it")
    parser.add_argument("--ram", choices=("portable", "ecp5"), default="portable",
                        help="inferred memories, or explicit ECP5 block RAMs (default portable)")
    parser.add_argument("--link", choices=("uart", *(f"usb-{phy}" for phy in _PHYS)),
                        help="the board with a link, instead of its bus and stream: a UART, or USB by a UTMI or ULPI "
                             "PHY or by D+ and D- alone (docs/links.md)")
    parser.add_argument("--link-clock", type=int, default=60_000_000, metavar="HZ",
                        help="clock of the UART (default 60 MHz)")
    parser.add_argument("--baud", type=int, default=3_000_000, help="of the UART (default 3000000)")
    parser.add_argument("--serial", default="0", help="serial number of the USB device: letters and digits (default 0)")
    args = parser.parse_args(argv)
    sinks = tuple(sink for sink in Sink if sink <= Sink[args.config.upper()])
    if args.port_bits == 8 and Sink.EXTENDED in sinks:
        sinks = (Sink.EXTENDED,)
    refused = ""
    with warnings.catch_warnings():
        # A board that is refused is not used.
        warnings.simplefilter("ignore", UnusedElaboratable)
        try:
            geometry = Geometry(args.nodes, args.clock, args.node_depth, args.vector_depth, args.frame_depth, sinks,
                                store_depth=args.store_depth, external_depth=args.external_depth,
                                half_clock=args.half_clock, port_bits=args.port_bits)
            if args.link == "uart":
                text = uart_verilog(geometry, args.link_clock, args.baud, args.ram,
                                    not args.no_pad_stage)
            elif args.link:
                text = usb_verilog(geometry, args.link.removeprefix("usb-"), args.serial, args.ram,
                                   not args.no_pad_stage)
            else:
                text = verilog(geometry, args.ram, not args.no_pad_stage)
        except ValueError as error:
            refused = str(error)
    if refused:
        parser.error(refused)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(text)
    print(f"{args.output}: module hypermon, {geometry.nodes} nodes, {geometry.clock_hz / 1e6:g} MHz, "
          f"{len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
