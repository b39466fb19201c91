"""From a bitstream's netlist to the virtual board's top: which package pin is what, and which clock a PLL gives.

A family's unpacker gives Verilog of a module ``chip`` whose ports are package pins, ``pin_BALL``, and ``clk`` and
``link_clk``, which are what its PLL puts out; :func:`wrapped` puts the pins of :class:`Wiring` around it. Where nodes
are comes from the pinout page's data, the rest from the board's platform.
"""

import hashlib
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from amaranth.build import Resource
from hypermon.boards.clocks.ice40_pll import made_hz
from hypermon.boards.model.board import Board
from hypermon.boards.model.links import BoardLink
from hypermon.boards.pinout.pinout import kept, wires
from hypermon.boards.registry import find
from hypermon.boards.toolchain.top import platform_of
from hypermon.hdl.layout import PORT_BITS, Geometry
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.uart_board import HARNESS

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.sim.gates import Family, with_models

__all__ = ["LAMP_CLOCKS", "BitstreamError", "Clocks", "Family", "Wiring", "ball", "ports", "shell", "with_models",
           "wrapped"]

#: The clock of a lamp's flip-flop comes after the one that starts time.
LAMP_CLOCKS = 1
_PORT = re.compile(r"\b(input|output|inout)\s+(?:wire\s+)?((?:pin|out|oe)_\w+|clk|link_clk|usb_clk)\b")


class BitstreamError(Exception):
    """A bitstream is not what its board says, before anything is simulated; the message says where."""


@dataclass(frozen=True)
class Wiring:
    """The package pins of a board, by ball.

    Parameters
    ----------
    clock : of the oscillator.
    rx, tx : of the serial port, as the FPGA sees it.
    lamp : lit while time runs; ``lamp_low``: at the low level.
    nodes : of each, its strobe and its data, lowest bit first; or the fewer wires of a node with a front end.
    """

    clock: str
    rx: str
    tx: str
    lamp: str
    lamp_low: bool
    nodes: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, board: Board, link: BoardLink, nodes: int) -> "Wiring":
        """Those of the first nodes of a board with that link."""
        platform = platform_of(board, nodes)
        name, _, number = board.lamps[0].partition(":")
        lamp = platform.lookup(name, int(number))
        uart = {sub.name: sub.ios[0].names[0] for sub in platform.lookup(link.resource, 0).ios}
        every = wires(board, kept(board, find(board.name)))
        return cls(
            clock=ball(platform, platform.lookup(platform.default_clk, 0)), rx=ball(platform, uart["rx"]),
            tx=ball(platform, uart["tx"]), lamp=ball(platform, lamp), lamp_low=lamp.ios[0].invert,
            nodes=tuple(tuple(wire.ball for wire in every if wire.node == n) for n in range(nodes)))

    def swapped(self, one: tuple[int, int], other: tuple[int, int]) -> "Wiring":
        """With two pins of nodes exchanged, each a node and its place among the five."""
        table = [list(pins) for pins in self.nodes]
        (a, i), (b, j) = one, other
        table[a][i], table[b][j] = table[b][j], table[a][i]
        return replace(self, nodes=tuple(map(tuple, table)))


def ball(platform, of: Resource | str) -> str:
    """The package pin of a resource of one, or of a connector's pin."""
    name = of if isinstance(of, str) else of.ios[0].names[0]
    while name in platform._conn_pins:
        name = platform._conn_pins[name]
    return name


@dataclass(frozen=True)
class Clocks:
    """What a board's PLL is to make, and what it makes.

    Parameters
    ----------
    oscillator_hz, capture_hz : of the board.
    link_hz : of its link.
    usb_hz : of the other clock of a link at D+ and D-; 0 if there is none.
    """

    oscillator_hz: int
    capture_hz: int
    link_hz: int
    usb_hz: int = 0

    @classmethod
    def of(cls, board: Board, link: BoardLink, geometry: Geometry) -> "Clocks":
        return cls(board.oscillator_hz, geometry.clock_hz, *link.clocks.values())

    def input_of(self, family: str, multiplier: int, divider: int) -> tuple[str, int]:
        """Which input of the top a PLL's output is, ``multiplier / divider`` times the oscillator, and its Hz.

        Raises
        ------
        BitstreamError
            for a clock that this board is not to have.
        """
        hz, rest = divmod(self.oscillator_hz * multiplier, divider)
        if not rest and hz == self.capture_hz:
            return "clk", hz
        doubled = family == "ice40" and hz == made_hz({"capture": self.capture_hz})
        if not rest and (hz == self.link_hz or doubled):
            return "link_clk", hz
        if not rest and hz == self.usb_hz:
            return "usb_clk", hz
        raise BitstreamError(
            f"a PLL in these bits makes {multiplier}/{divider} of the oscillator, {hz / 1e6:g} MHz; the board's clocks "
            f"are {self.capture_hz / 1e6:g} MHz for capture and {self.link_hz / 1e6:g} MHz for the link")


def ports(chip: str) -> dict[str, str]:
    """Ports of module ``chip`` in that text: name to direction."""
    header = re.search(r"^module chip\s*\((.*?)\);", chip, re.MULTILINE | re.DOTALL)
    if not header:
        raise BitstreamError("the unpacker gave no module of the name chip")
    return {name: way for way, name in _PORT.findall(header[1])}


def wrapped(chip: str, wiring: Wiring) -> str:
    """The chip in a module with the ports of the virtual board of :mod:`hypermon.sim.virtual.uart_board`.

    The oscillator's pin is held high: it is the model of the PLL that says what that clock is good for.

    Raises
    ------
    BitstreamError
        for a pin of the board that the bits do not have, or have the other way round.
    """
    there = ports(chip)
    nodes = len(wiring.nodes)
    wanted = {wiring.clock: ("input", "1'b1"), wiring.rx: ("input", "rx"), wiring.tx: ("output", "tx"),
              wiring.lamp: ("output", "lamp")}
    for number, (strobe, *data) in enumerate(wiring.nodes):
        wanted[strobe] = ("input", f"strobe[{number}]")
        wanted |= {ball: ("input", f"data[{PORT_BITS * number + bit}]") for bit, ball in enumerate(data)}
    if wrong := [f"{ball} ({net}) is {there.get(f'pin_{ball}', 'unused')}, not {way}"
                 for ball, (way, net) in wanted.items() if there.get(f"pin_{ball}") != way]:
        raise BitstreamError(f"pins of the board that are otherwise in the bits: {'; '.join(wrong)}")
    known = {f"pin_{ball}": net for ball, (_, net) in wanted.items()} | {"clk": "clk", "link_clk": "link_clk"}
    spare = [name for name, way in there.items() if way == "input" and name not in known]
    if spare:
        raise BitstreamError(f"pins that the bits read, and the board does not name: {', '.join(sorted(spare))}")
    connected = ", ".join(f".{name}({known[name]})" for name in there if name in known)
    return (f"{chip}\nmodule hypermon(input clk, link_clk, rst, rx, output tx, running, "
            f"input [{PORT_BITS * nodes - 1}:0] data, input [{nodes - 1}:0] strobe);\n"
            f"wire lamp;\nassign running = {'~' * wiring.lamp_low}lamp;\nchip chip({connected});\nendmodule\n")


def shell(name: str, verilog: str, other_hz: int, baud: int) -> Shell:
    """The virtual board of a wrapped chip.

    ``name`` : of the library. ``other_hz`` : of ``link_clk``. ``baud`` : of the far end of the line.
    """
    digest = hashlib.sha256(verilog.encode()).hexdigest()
    return Shell(name, HARNESS, lambda geometry: verilog, (
        ("LINK_HZ", other_hz), ("BAUD", baud), ("RUNNING_LATE", LAMP_CLOCKS), ("BITS", f"0x{digest[:16]}")))
