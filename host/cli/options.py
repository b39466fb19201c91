"""Options that several commands share, and what they say."""

from collections.abc import Callable
from typing import Any

import click
from hypermon.hdl.layout import FRAME_WINDOW, PORT_BITS, Geometry, Sink, Window
from hypermon.host import link
from hypermon.host.cli.complete import boards_like
from hypermon.host.device.device import Device
from hypermon.host.text.numbers import finite
from hypermon.host.wire.item_modes import TIMEOUT_MS

__all__ = ["BOARD", "EDGES", "MASKS", "MODES", "SAMPLES", "WINDOW", "open_device", "settings_options",
           "virtual_geometry", "window_of"]

Function = Callable[..., Any]
BOARD = click.option("-b", "--board", default="sim:", show_default=True, metavar="BOARD", shell_complete=boards_like,
                     help="The board, as `hypermon devices` lists it: sim: (virtual, idle), sim:FILE (virtual, "
                          "plays a stimulus), usb: or usb:SERIAL, uart:DEVICE (at a serial port), tcp:HOST:PORT "
                          "(at another machine).")
WINDOW = click.option("--window", type=click.Choice(list(FRAME_WINDOW)), default=None,
                      help="Synchronization window in ns; 1 is one clock. Default: 800; extended: 1.")
EDGES = click.option("--edge", "edges", multiple=True, metavar="[NODE=]EDGE",
                     help="Active edge of the strobes: rising (default), falling or both; of one node with NODE=.")
SAMPLES = click.option("--sample", "samples", multiple=True, metavar="[NODE=]POINT",
                       help="Data are taken before or after the edge (default: before; after with both edges).")
MODES = click.option("--mode", "modes", multiple=True, metavar="[NODE=]MODE",
                     help="What an item of a node is: nibble (default), word (8 nibbles) or event (its length, then "
                          "bytes); of one node with NODE=. Words and events need --config extended.")
MASKS = click.option("--mask", "masks", multiple=True, metavar="WHAT=MASK",
                     help="Keep only what has its bit set: nodes=0x00ff (nodes 0 to 7), nibbles=0x8001 (items of one "
                          "nibble, 0 and 15 here; needs --config extended). Or only the events with these ids: "
                          "events=1,3,0x80-0xff (needs --mode event).")
_GLITCH = click.option("--glitch", type=click.IntRange(0, 15), default=0, metavar="CLOCKS",
                       help="A level of a strobe counts only if it lasts so many clocks, 2 to 15: runts and ringing "
                            "are rejected, and counted. Needs --config extended.")
_RATE_LIMIT = click.option("--rate-limit", metavar="ITEMS/WINDOWS",
                           help="At most so many items of a node, 1 to 255, in so many windows, a power of two; "
                                "others are rejected, and counted: against a strobe that floats. Needs --config "
                                "extended.")
_START = click.option("--start", metavar="MATCH",
                      help="Keep nothing until an item matches: [node=N,]nibble=V (byte=V with ports of 8 bits) or "
                           "[node=N,]event=ID, each with /MASK if some of its bits count only; the nibble is the "
                           "first of its item. Needs --config extended.")
_STOP = click.option("--stop", metavar="MATCH", help="Keep nothing behind the window of the first item that matches.")
_PRETRIGGER = click.option("--pretrigger", type=int, default=0, show_default=True, metavar="N",
                           help="Keep N writes before the start, too, and the window of the first of them whole.")


def settings_options(function: Function) -> Function:
    """The options that `sim` and `record` share."""
    for option in reversed([
        click.option("--config", type=click.Choice([sink.name.lower() for sink in Sink]), default="classic",
                     show_default=True, help="Which board: the one of 1990, or the extended one."),
        WINDOW,
        click.option("--drain", type=click.Choice(["stream", "registers"]), default="stream", show_default=True,
                     help="How events leave the board: by the link's stream, or read through registers as in 1990."),
        click.option("--flush-ms", type=click.FloatRange(0), callback=finite, default=1.0, show_default=True,
                     metavar="F", help="How long an event waits at most for others to share its block."),
        EDGES, SAMPLES, _GLITCH, _RATE_LIMIT, MODES, MASKS, _START, _STOP, _PRETRIGGER,
        click.option("--item-timeout-ms", type=click.FloatRange(0, min_open=True), callback=finite,
                     default=TIMEOUT_MS, show_default=True, metavar="T",
                     help="A word or event that waits longer for its next nibble is aborted."),
    ]):
        function = option(function)
    return function


def open_device(uri: str, geometry: Geometry | None = None) -> Device:
    """Opens a board. ``geometry`` is what a virtual board gets; a real one has its own."""
    return Device(link.open_link(uri, geometry))


def virtual_geometry(sink: Sink, nodes: int = 16, clock_hz: int = 100_000_000, half_clock: bool = False,
              port_bits: int = PORT_BITS) -> Geometry:
    """What a virtual board is built as: with the classic sink alone, or with both and larger buffers."""
    if sink is Sink.CLASSIC:
        return Geometry(nodes, clock_hz)
    return Geometry.extended(nodes, clock_hz, half_clock=half_clock, port_bits=port_bits)


def window_of(name: str | None, sink: Sink) -> Window:
    """The window by its name; without one, 800 ns as in 1990, or one clock in the extended configuration."""
    return FRAME_WINDOW[name or ("800" if sink is Sink.CLASSIC else "1")]
