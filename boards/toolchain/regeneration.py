"""Bitstreams of regeneration boards: small FPGAs beside the nodes, which send their strobes over two pairs.

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
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from hypermon.hdl.layout import LINK_NODES, PORT_BITS
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
    reference, line : pins of the reference clock, and of the line's two complementary outputs.
    both : pin of the strap: to ground: both edges of all strobes are active, and data are sampled after them.
    """

    title: str
    platform: str
    reference_hz: int
    nodes: tuple[tuple[str, ...], ...]
    reference: str
    line: tuple[str, str]
    both: str


def _ports(pins: list[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pins[k:k + 5]) for k in range(0, 20, 5))


#: iCEstick: connectors J1 and J3, and the PMOD J2, with the numbers of amaranth-boards.
_STICK = [*(f"j_1:{n}" for n in range(3, 11)), *(f"j_3:{n}" for n in range(3, 11)),
          *(f"pmod_0:{n}" for n in (1, 2, 3, 4, 7, 8, 9, 10))]
_BREAKER = [f"pmod_{p}:{n}" for p in range(3) for n in (1, 2, 3, 4, 7, 8, 9, 10)]

REGENERATION_BOARDS = {
    "icestick": RegenerationBoard(
        "iCEstick (iCE40HX1K)", "amaranth_boards.icestick:ICEStickPlatform", 100_000_000,
        _ports(_STICK), _STICK[20], (_STICK[21], _STICK[22]), _STICK[23]),
    "icebreaker": RegenerationBoard(
        "iCEBreaker (iCE40UP5K)", "amaranth_boards.icebreaker:ICEBreakerPlatform", 50_000_000,
        _ports(_BREAKER), _BREAKER[20], (_BREAKER[21], _BREAKER[22]), _BREAKER[23]),
}


class RegenerationTop(Elaboratable):
    """Pads around a transmitter. Every input has its first flip-flop in its I/O cell, every output a DDR cell."""

    def __init__(self, nodes: int):
        self.nodes = nodes

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        m.submodules.reference = reference = io.Buffer("i", platform.request("reference", 0, dir="-"))
        m.submodules.net = Instance("SB_GB", i_USER_SIGNAL_TO_GLOBAL_BUFFER=reference.i,
                                    o_GLOBAL_BUFFER_OUTPUT=ClockSignal())
        m.submodules.transmitter = transmitter = Transmitter("ice40")
        for number in range(self.nodes):
            port = platform.request("node", number, dir="-")
            m.submodules[f"strobe{number}"] = strobe = io.FFBuffer("i", port.strobe)
            m.submodules[f"data{number}"] = data = io.FFBuffer("i", port.data)
            m.d.comb += [
                transmitter.strobe[number].eq(strobe.i),
                transmitter.data.word_select(number, PORT_BITS).eq(data.i)]
        m.submodules.both = strap = io.FFBuffer("i", platform.request("both", 0, dir="-"))
        both = Signal()
        m.d.sync += both.eq(strap.i)
        every = (1 << self.nodes) - 1
        m.d.comb += [
            transmitter.live.eq(every), transmitter.rising.eq(every),
            transmitter.falling.eq(both.replicate(LINK_NODES)), transmitter.after.eq(both.replicate(LINK_NODES)),
        ]
        for name in ("line_p", "line_n"):
            m.submodules[name] = pad = io.DDRBuffer("o", platform.request(name, 0, dir="-"))
            m.d.comb += [pad.o[0].eq(transmitter.bits[0]), pad.o[1].eq(transmitter.bits[1])]
        return m


def _resources(board: RegenerationBoard) -> list[Resource]:
    level, pulled = Attrs(IO_STANDARD="SB_LVCMOS"), Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1)

    def pins(*names: str) -> str:
        return " ".join(names)

    return [
        Resource("reference", 0, Pins(board.reference, dir="i"), Clock(board.reference_hz), level),
        Resource("line_p", 0, Pins(board.line[0], dir="o"), level),
        Resource("line_n", 0, PinsN(board.line[1], dir="o"), level),
        Resource("both", 0, PinsN(board.both, dir="i"), pulled),
        *(Resource("node", n, Subsignal("strobe", Pins(strobe, dir="i"), pulled),
                   Subsignal("data", Pins(pins(*data), dir="i"), pulled))
          for n, (strobe, *data) in enumerate(board.nodes)),
    ]


def build(board: RegenerationBoard, out: Path, seed: int = 1, reference_hz: int | None = None) -> dict[str, object]:
    """Builds a bitstream into ``out``; returns MHz reached and requested, and the cells in use.

    Raises
    ------
    SystemExit
        if a tool fails or the clock is too slow, with one line; no bitstream is written then.
    """
    hz = reference_hz or board.reference_hz
    family = FAMILIES["ice40"]
    module, name = board.platform.split(":")
    platform = family.platform(getattr(import_module(module), name))()
    platform.add_resources(_resources(board))
    work = out / f"{_NAME}-work"
    shutil.rmtree(work, ignore_errors=True)
    overrides = family.overrides(_NAME, seed, hz / 1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        plan = platform.prepare(RegenerationTop(len(board.nodes)), _NAME, **overrides)
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
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    print(json.dumps(build(REGENERATION_BOARDS[options.board], options.out, options.seed, options.reference_hz)))


if __name__ == "__main__":
    main()
