"""Bitstreams of regeneration boards: small FPGAs beside the nodes, which send the nodes' strobes over one pair and
receive the reference clock over another.

``python -m hypermon.boards.toolchain.regeneration icestick OUT`` builds one. ``docs/regeneration.md`` says what it
does.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io, wiring
from hypermon.hdl.layout import FRONT_WIRES, LINK_NODES, PORT_BITS, Front, front_period, front_span
from hypermon.hdl.regeneration.link_fronts import LINK_FRONTS, LinkFronts
from hypermon.hdl.regeneration.transmitter import Transmitter

from .families import FAMILIES
from .tools import tool

__all__ = ["REGENERATION_BOARDS", "RegenerationBoard", "RegenerationTop", "build", "main"]

_NAME = "hypermon_regeneration"


@dataclass(frozen=True)
class RegenerationBoard:
    """A dev board that can be a regeneration board.

    Members
    -------
    platform : module and class of its Amaranth platform.
    reference_hz : the reference clock that it is built for; the line has twice as many bits per second.
    nodes : five pins each, the strobe first, then the data from bit 0 on.
    fronted : number of nodes with fewer wires that it has cells for, by front end; their wires are at the same pins, in
        the same order, those of one node after those of the other.
    reference, line : pins of the reference clock, and of the line's two complementary outputs.
    both : pin of the strap: to ground: both edges of all strobes are active, and data are sampled after them; or data
        are sampled at falling edges of all clocks.
    """

    title: str
    platform: str
    reference_hz: int
    nodes: tuple[tuple[str, ...], ...]
    reference: str
    line: tuple[str, str]
    both: str
    fronted: dict[Front, int] = field(default_factory=dict, hash=False)

    def wires(self, front: Front = Front.PORT) -> tuple[tuple[str, ...], ...]:
        """The pins of each node."""
        if front is Front.PORT:
            return self.nodes
        pins, wide = [pin for node in self.nodes for pin in node], FRONT_WIRES[front]
        return tuple(tuple(pins[wide * n:wide * (n + 1)]) for n in range(self.fronted[front]))


def _ports(pins: list[str], nodes: int = 4) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pins[k:k + 5]) for k in range(0, 5 * nodes, 5))


#: iCEstick: connectors J1 and J3, and the PMOD J2, with the numbers of amaranth-boards.
_STICK = [*(f"j_1:{n}" for n in range(3, 11)), *(f"j_3:{n}" for n in range(3, 11)),
          *(f"pmod_0:{n}" for n in (1, 2, 3, 4, 7, 8, 9, 10))]
#: HX1K alone: banks 0 and 1 for the nodes.
_BARE = [str(n) for first, last in ((112, 122), (134, 139), (141, 144), (95, 99), (101, 102), (104, 107), (87, 88),
                                    (90, 91), (78, 81)) for n in range(first, last + 1)]
_BREAKER = [f"pmod_{p}:{n}" for p in range(3) for n in (1, 2, 3, 4, 7, 8, 9, 10)]

REGENERATION_BOARDS = {
    "icestick": RegenerationBoard(
        "iCEstick (iCE40HX1K)", "amaranth_boards.icestick:ICEStickPlatform", 100_000_000,
        _ports(_STICK), _STICK[20], (_STICK[21], _STICK[22]), _STICK[23],
        {Front.TWO_WIRE: 2, Front.SELECTED: 2, Front.UART: 3}),
    "hx1k": RegenerationBoard(
        "iCE40HX1K-TQ144", "hypermon.boards.toolchain.bare_hx1k:BareHX1K", 100_000_000,
        _ports(_BARE, 8), "21", ("1", "2"), "3", {Front.TWO_WIRE: 2, Front.SELECTED: 2, Front.UART: 3}),
    "icebreaker": RegenerationBoard(
        "iCEBreaker (iCE40UP5K)", "amaranth_boards.icebreaker:ICEBreakerPlatform", 50_000_000,
        _ports(_BREAKER), _BREAKER[20], (_BREAKER[21], _BREAKER[22]), _BREAKER[23],
        {Front.TWO_WIRE: 8, Front.SELECTED: 6, Front.UART: 8}),
}


#: What the items of all nodes are.
MODES = ("nibble", "word", "event")
#: Front ends that all nodes may have, by the option's value; and the rate that is built for without another one.
FRONTS = {front.name.lower().replace("_", "-"): front for front in (Front.PORT, *LINK_FRONTS)}
RATES = {Front.TWO_WIRE: 5_000_000, Front.SELECTED: 5_000_000, Front.UART: 1_000_000}


class RegenerationTop(Elaboratable):
    """Pads around a transmitter. Every input has its first flip-flop in its I/O cell, every output a DDR cell.

    Parameters
    ----------
    nodes : number of nodes.
    mode : of :data:`MODES`; with front ends, the nodes are in event mode.
    front, setting : see :class:`~hypermon.hdl.regeneration.link_fronts.LinkFronts`, or ports.
    """

    def __init__(self, nodes: int, mode: str = "nibble", front: Front = Front.PORT, setting: int = 0):
        self.nodes, self.front, self.setting = nodes, front, setting
        self.mode = mode if front is Front.PORT else "event"

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        m.submodules.reference = reference = io.Buffer("i", platform.request("reference", 0, dir="-"))
        m.submodules.net = Instance("SB_GB", i_USER_SIGNAL_TO_GLOBAL_BUFFER=reference.i,
                                    o_GLOBAL_BUFFER_OUTPUT=ClockSignal())
        m.submodules.transmitter = transmitter = Transmitter("ice40", limited=self.front is Front.PORT)
        strobes, levels = Signal(LINK_NODES), Signal(PORT_BITS * LINK_NODES)
        for number in range(self.nodes):
            port = platform.request("node", number, dir="-")
            m.submodules[f"strobe{number}"] = strobe = io.FFBuffer("i", port.strobe)
            m.d.comb += strobes[number].eq(strobe.i)
            if FRONT_WIRES[self.front] > 1:
                m.submodules[f"data{number}"] = data = io.FFBuffer("i", port.data)
                m.d.comb += levels.word_select(number, PORT_BITS).eq(data.i)
        m.submodules.both = strap = io.FFBuffer("i", platform.request("both", 0, dir="-"))
        both = Signal()
        m.d.sync += both.eq(strap.i)
        every = (1 << self.nodes) - 1
        m.d.comb += [
            transmitter.live.eq(every), transmitter.rising.eq(every),
            transmitter.words.eq(every if self.mode == "word" else 0),
            transmitter.events.eq(every if self.mode == "event" else 0),
        ]
        if self.front is Front.PORT:
            m.d.comb += [
                transmitter.strobe.eq(strobes), transmitter.data.eq(levels),
                transmitter.falling.eq(both.replicate(LINK_NODES)), transmitter.after.eq(both.replicate(LINK_NODES)),
            ]
        else:
            m.submodules.fronts = fronts = LinkFronts(self.front, self.setting, self.nodes)
            m.d.comb += [
                fronts.pad_strobe.eq(strobes), fronts.pad_data.eq(levels),
                fronts.falling.eq(both.replicate(LINK_NODES)),
                fronts.expired.eq(transmitter.expired), transmitter.abort.eq(fronts.abort),
                transmitter.strobe.eq(fronts.strobe), transmitter.data.eq(fronts.data), transmitter.falling.eq(every),
            ]
            for told, counted in zip(fronts.refused, transmitter.before, strict=True):
                wiring.connect(m, told, counted)
        for name in ("line_p", "line_n"):
            m.submodules[name] = pad = io.DDRBuffer("o", platform.request(name, 0, dir="-"))
            m.d.comb += [pad.o[0].eq(transmitter.bits[0]), pad.o[1].eq(transmitter.bits[1])]
        return m


def _resources(board: RegenerationBoard, front: Front) -> list[Resource]:
    level, pulled = Attrs(IO_STANDARD="SB_LVCMOS"), Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1)

    def pins(*names: str) -> str:
        return " ".join(names)

    return [
        Resource("reference", 0, Pins(board.reference, dir="i"), Clock(board.reference_hz), level),
        Resource("line_p", 0, Pins(board.line[0], dir="o"), level),
        Resource("line_n", 0, PinsN(board.line[1], dir="o"), level),
        Resource("both", 0, PinsN(board.both, dir="i"), pulled),
        *(Resource("node", n, Subsignal("strobe", Pins(strobe, dir="i"), pulled),
                   *([Subsignal("data", Pins(pins(*data), dir="i"), pulled)] if data else []))
          for n, (strobe, *data) in enumerate(board.wires(front))),
    ]


def build(board: RegenerationBoard, out: Path, seed: int = 1, reference_hz: int | None = None,
          mode: str = "nibble", front: Front = Front.PORT, rate: int | None = None) -> dict[str, object]:
    """Builds a bitstream into ``out``; returns MHz reached and requested, and the cells in use.

    ``mode`` : of :data:`MODES`. ``front`` : of :data:`FRONTS`; ``rate`` : of the nodes' clocks in Hz, or of their UARTs
    in baud.

    Raises
    ------
    SystemExit
        if a tool fails, the clock is too slow, or the nodes are too fast or too slow for it, with one line; no
        bitstream is written then.
    """
    hz = reference_hz or board.reference_hz
    setting = 0
    if front is not Front.PORT:
        try:
            setting = (front_period if front is Front.UART else front_span)(hz, rate or RATES[front])
        except ValueError as error:
            sys.exit(f"{board.title}: {error}")
    family = FAMILIES["ice40"]
    module, name = board.platform.split(":")
    platform = family.platform(getattr(import_module(module), name))()
    platform.add_resources(_resources(board, front))
    work = out / f"{_NAME}-work"
    shutil.rmtree(work, ignore_errors=True)
    overrides = family.overrides(_NAME, seed, hz / 1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        top = RegenerationTop(len(board.wires(front)), mode, front, setting)
        plan = platform.prepare(top, _NAME, **overrides)
    work.mkdir(parents=True)
    plan.extract(work)
    tools = {variable: tool(variable, program) for variable, program in family.tools.items()}
    with (work / "build.log").open("w") as log:
        status = subprocess.run(["sh", f"{plan.script}.sh"], cwd=work, env=os.environ | tools, stdout=log,
                                stderr=subprocess.STDOUT, check=False).returncode
    if status:
        sys.exit(f"{board.title}: the tools failed with status {status}; see {work / 'build.log'}")
    report = json.loads((work / "report.json").read_text())
    reached = min(clock["achieved"] for clock in report["fmax"].values())
    used = {cell: (n["used"], n["available"]) for cell, n in report["utilization"].items() if n["used"]}
    if reached * 1e6 < hz:
        sys.exit(f"{board.title}: {reached:.1f} MHz, not {hz / 1e6:g}; choose a slower --reference-hz. Cells: {used}")
    shutil.copyfile(work / f"{_NAME}.bin", out / f"{_NAME}.bin")
    return {"mhz": (round(reached, 1), hz / 1e6), "used": used}


def main(argv: list[str] | None = None) -> None:
    """The command in the module's first paragraph."""
    parser = argparse.ArgumentParser(description="Builds the bitstream of a regeneration board.")
    parser.add_argument("board", choices=sorted(REGENERATION_BOARDS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference-hz", type=int, help="default: the board's")
    parser.add_argument("--mode", choices=MODES, help="items of the nodes; default: nibble, or event with --front")
    parser.add_argument("--front", choices=sorted(FRONTS), default="port", help="how nodes are wired; default: port")
    parser.add_argument("--rate", type=int, help="baud of the nodes' UARTs, or Hz of their clocks; default: "
                        + ", ".join(f"{name} {RATES[front]}" for name, front in FRONTS.items() if front in RATES))
    options = parser.parse_args(argv)
    front = FRONTS[options.front]
    if front is not Front.PORT and options.mode not in (None, "event"):
        parser.error(f"--front {options.front}: its nodes are in event mode, not in {options.mode} mode")
    options.out.mkdir(parents=True, exist_ok=True)
    print(json.dumps(build(
        REGENERATION_BOARDS[options.board], options.out, options.seed, options.reference_hz, options.mode or MODES[0],
        front, options.rate)))


if __name__ == "__main__":
    main()
