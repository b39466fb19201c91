"""Options that several commands share, with their help texts."""

from collections.abc import Callable
from typing import Any

import click
from hypermon.hdl.layout import FRAME_WINDOW, PORT_BITS, Geometry, Sink, Window
from hypermon.host import link
from hypermon.host.blocks.item_modes import TIMEOUT_MS
from hypermon.host.cli.complete import boards_like
from hypermon.host.device.device import Device
from hypermon.host.errors import HypermonError
from hypermon.host.text.numbers import finite, whole

__all__ = ["BOARD", "EDGES", "MASKS", "MODES", "SAMPLES", "WINDOW", "nodes_of", "open_device", "settings_options",
           "virtual_geometry", "warn_of_the_bus", "window_of"]

Function = Callable[..., Any]
BOARD = click.option("-b", "--board", default="sim:", show_default=True, metavar="BOARD", shell_complete=boards_like,
                     help="The board, as `hypermon devices` lists it: sim: (virtual, idle), sim:FILE (virtual, "
                          "plays a stimulus), usb: or usb:SERIAL, uart:DEVICE (at a serial port), pcie: or "
                          "pcie:BDF (in a PCIe slot), tcp:HOST:PORT (on another machine).")
WINDOW = click.option("--window", type=click.Choice(list(FRAME_WINDOW)), default=None,
                      help="Synchronization window in ns; 1 is one clock. Default: 800; extended: 1.")
EDGES = click.option("--edge", "edges", multiple=True, metavar="[NODE=]EDGE",
                     help="Active edge of the strobes: rising (default), falling or both. NODE= sets one node.")
SAMPLES = click.option("--sample", "samples", multiple=True, metavar="[NODE=]POINT",
                       help="Sample the data before or after the edge (default: before; after with both edges).")
MODES = click.option("--mode", "modes", multiple=True, metavar="[NODE=]MODE",
                     help="What an item is: a nibble (default), a word (8 nibbles) or an event (its length, then "
                          "bytes). Of a node with fewer wires than a port also a byte (default), a line of text, or, "
                          "of SWO, a packet: itm (default). NODE= sets one node. All but nibbles need --config "
                          "extended.")
MASKS = click.option("--mask", "masks", multiple=True, metavar="WHAT=MASK",
                     help="Keep only items whose bit is set: nodes=0x00ff (nodes 0 to 7), nibbles=0x8001 (nibbles 0 "
                          "and 15; needs --config extended). Or only events with the given ids: "
                          "events=1,3,0x80-0xff (needs --mode event).")
_GLITCH = click.option("--glitch", type=click.IntRange(0, 15), default=0, metavar="CLOCKS",
                       help="A strobe level counts only if it lasts the given number of clocks, 2 to 15. Runts and "
                            "ringing are rejected and counted. 0 (default) or 1: no filter. Needs --config extended.")
_RATE_LIMIT = click.option("--rate-limit", metavar="ITEMS/WINDOWS",
                           help="Per node, accept at most ITEMS (1 to 255) in each interval of WINDOWS (a power of "
                                "two). Further items are rejected and counted. Protects against a floating strobe. "
                                "Needs --config extended.")
_RATES = click.option("--front-rate", "rates", multiple=True, metavar="LINE=RATE",
                      help="Rate of nodes that have fewer wires than a port: spi=HZ (two or three wires), uart=BAUD, "
                           "swo=BAUD. Repeatable. Default: spi, a thirteenth of the board's clock; uart, 1000000; swo, "
                           "2000000. Needs --config extended.")
_ORDERS = click.option("--bit-order", "orders", multiple=True, metavar="[NODE=]msb|lsb",
                       help="Which bit of a byte comes first, of nodes with two or three wires: the highest (msb, "
                            "default) or the lowest. NODE= sets one node.")
_START = click.option("--start", metavar="MATCH",
                      help="Keep nothing until an item matches: [node=N,]nibble=V (byte=V with ports of 8 bits) or "
                           "[node=N,]event=ID. Append /MASK to a number to compare only some of its bits. V is the "
                           "first nibble of the item. Needs --config extended.")
_STOP = click.option("--stop", metavar="MATCH", help="Keep nothing after the window of the first item that matches.")
_PRETRIGGER = click.option("--pretrigger", type=int, default=0, show_default=True, metavar="N",
                           help="Also keep the N port writes before the start, and the whole window of the first one.")


def settings_options(function: Function) -> Function:
    """The options that `sim` and `record` share."""
    for option in reversed([
        click.option("--config", type=click.Choice([sink.name.lower() for sink in Sink]), default="classic",
                     show_default=True, help="Which board: that of 1990, or the extended one."),
        WINDOW,
        click.option("--drain", type=click.Choice(["stream", "registers"]), default="stream", show_default=True,
                     help="How data leave the board: over the link's stream, or through registers as in 1990."),
        click.option("--flush-ms", type=click.FloatRange(0), callback=finite, default=1.0, show_default=True,
                     metavar="F", help="Longest time in ms that an item waits for others to fill its block."),
        EDGES, SAMPLES, _GLITCH, _RATE_LIMIT, MODES, _RATES, _ORDERS, MASKS, _START, _STOP, _PRETRIGGER,
        click.option("--item-timeout-ms", type=click.FloatRange(0, min_open=True), callback=finite,
                     default=TIMEOUT_MS, show_default=True, metavar="T",
                     help="Abort a word or event that waits longer than T for its next nibble."),
    ]):
        function = option(function)
    return function


def open_device(uri: str, geometry: Geometry | None = None) -> Device:
    """Opens a board. ``geometry`` is what a virtual board gets; a real one has its own."""
    return Device(link.open_link(uri, geometry))


def virtual_geometry(sink: Sink, nodes: int = 16, clock_hz: int = 100_000_000, phases: int = 1,
              port_bits: int = PORT_BITS) -> Geometry:
    """What a virtual board is built as: with the classic sink alone, or with both and larger buffers."""
    if sink is Sink.CLASSIC:
        return Geometry(nodes, clock_hz)
    return Geometry.extended(nodes, clock_hz, phases=phases, port_bits=port_bits)


def window_of(name: str | None, sink: Sink) -> Window:
    """The window by its name; without one, 800 ns as in 1990, or one clock in the extended configuration."""
    return FRAME_WINDOW[name or ("800" if sink is Sink.CLASSIC else "1")]


def nodes_of(option: str, text: str, count: int) -> list[int]:
    """Nodes from ``0,3,8-15``. Raises HypermonError, which names the option."""
    nodes: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last if dash else "0").isdecimal()):
            raise HypermonError(f"{option} {text}: expected numbers and ranges, such as 0,3,8-15")
        begin, end = whole(first), whole(last if dash else first)
        if end < begin < count:
            raise HypermonError(f"{option} {text}: the range {part} begins with its larger number; write {end}-{begin}")
        if not begin <= end < count:
            raise HypermonError(f"{option} {text}: there are nodes 0 to {count - 1}")
        nodes |= set(range(begin, end + 1))
    return sorted(nodes)


def warn_of_the_bus(drain_rate: float, geometry: Geometry) -> None:
    """Says that the host bus does not carry a rate, in one line on stderr."""
    if drain_rate > geometry.bus_rate:
        click.echo(f"hypermon: --drain-rate {drain_rate:g}: the board's bus does not carry that; at "
                   f"{geometry.clock_hz / 1e6:g} MHz it carries {geometry.bus_rate / 1e6:.1f}e6 bytes/s, and the host "
                   "reads no faster", err=True)
