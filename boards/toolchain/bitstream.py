"""Bitstreams: runs a board's top through Yosys, nextpnr and a packer, and writes a report next to the result."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import FORMAT_VERSION, FRONT_WIRES, REGISTER_VERSION, Front, Geometry
from hypermon.hdl.transport.usb.descriptors import descriptors
from hypermon.hdl.verilog import build_hash

from ..model.board import Board
from ..model.links import BoardLink
from ..model.mixture import stated
from .crossing_check import clock_names, crossings, late, undeclared
from .families import DELAYS, FAMILIES, Family
from .skew import skews_ps, tolerated_ps
from .tools import tool
from .top import BoardTop, platform_of

__all__ = ["BuildError", "Built", "ToolMissingError", "build", "step"]

#: Nets at which paths from one clock to another may end: the crossing itself; the bus's own synchronizer; the
#: registers that receive its bundle, which is held for the handshake; and the crossing's outputs, under the name that
#: Yosys keeps of those that one net has: the crossing's, its wrapper's, or that of the link's input.
DECLARED = (
    "hypermon.crossing.", "hypermon.capture.pbx.", "hypermon.capture.registers.access__", "hypermon.capture.access__",
    "hypermon.capture.registers.intake__emulator__", "hypermon.capture.intake.settings__emulator__",
    "hypermon.capture.sinks.extended.event_mask.entry",
    "hypermon.bytes__", "hypermon.reply__", "hypermon.uart.bytes__", "hypermon.uart.reply__",
    "hypermon.uart.server.reply__", "hypermon.uart.server.ram.w_data", "hypermon.uart.server.ram.di",
    "hypermon.uart.server.w_data", "hypermon.usb.bytes__", "hypermon.usb.reply__", "hypermon.usb.device.i__payload",
    "hypermon.usb.device.reply__payload")
#: Likewise on a board with regeneration boards: registers that take the samples of a line, whose clock is in phase; by
#: their own name or that of the core's input.
_LINE = ("taken", "hypermon.line")
#: Domains that a PHY clocks.
_PHYS = ("usb",)
#: Base name of a build's files in its folder.
_NAME = "hypermon_board"
#: A line of nextpnr's list of cells: kind, those used, those of the part.
_UTILISATION = re.compile(r"^Info:\s+(\w+): +(\d+)/ *(\d+) +\d+%$", re.MULTILINE)
#: The last lines of a log, which show why a tool failed.
_TAIL = 12


class BuildError(Exception):
    """A tool failed, or a clock is too slow; the message names it, and its log."""


class ToolMissingError(BuildError):
    """A tool is not installed; the message names it. The extra ``boards`` installs all of them."""


@dataclass(frozen=True)
class Built:
    """Result of a build, as stored in ``NAME.json`` next to the bitstream.

    ``clocks`` : clocks of the design: MHz reached and MHz requested. ``skews_ps`` : skew of each node's wires inside
    the FPGA, see :mod:`.skew`. ``used`` and ``there`` are cells of the part. ``commit`` : of the sources, "" outside of
    a checkout. If a ``vendor``'s tool does the rest, ``bitstream`` is the file that it will write, ``sha256`` that of
    its input, ``used`` the cells that Yosys makes of that, and there are no ``clocks`` and no ``skews_ps``.
    ``reference_hz`` : of the clock that feeds the PLL in place of the oscillator, or 0. ``ports`` : how its nodes are
    wired, as the option says it; empty without that option, and then not in the file.
    """

    board: str
    config: str
    link: str
    nodes: int
    capture_hz: int
    format_version: int
    register_version: int
    build: str
    seed: int
    bitstream: str
    vendor: str
    sha256: str
    clocks: dict[str, tuple[float, float]]
    skews_ps: list[int]
    used: dict[str, int]
    there: dict[str, int]
    seconds: int
    tools: dict[str, str]
    commit: str
    reference_hz: int = 0
    ports: str = ""


def build(board: Board, out: Path, *, config: str | None = None, nodes: int | None = None, link: str | None = None,
          serial: str | None = None, seed: int = 1, say: Callable[[str], None] = lambda text: None) -> Built:
    """Builds a bitstream into ``out``; the same sources, tools and seed give the same bytes.

    For a family that no open tool supports, the result is a project for the vendor's tool. Yosys maps it as a check.

    ``board`` : may be one that is fed by a reference clock, see :meth:`~.board.Board.fed`, and one with nodes of
    several kinds, see :meth:`~.board.Board.mixed`.
    ``link`` : a kind that the board has, or its first. ``serial`` : of a USB device: letters and digits, or "0".

    Raises
    ------
    ToolMissingError
        if a tool is missing.
    BuildError
        if a tool fails, a clock does not reach its frequency or is not checked, the wires of a port
        differ too much, or a path leads from one clock to another that is not among :data:`DECLARED`. No new file has
        the bitstream's name then.
    ValueError
        for nodes, a configuration or a link that the board does not have, for an invalid serial number, or for one on
        a link that is no USB device.
    """
    begun = time.monotonic()
    config = board.config(config)
    geometry, chosen, family = board.geometry(config, nodes, link), board.link(link), FAMILIES[board.family]
    if serial is not None:
        if chosen.kind == "uart":
            raise ValueError(f"--serial {serial}: a board at a serial port has no serial number")
        descriptors(serial, high=True)      # rejects an invalid one before anything is made
    tools = {variable: tool(variable, name) for variable, name in family.tools.items()}
    if missing := [name for name in tools.values() if shutil.which(name) is None]:
        raise ToolMissingError(f"{', '.join(missing)} not found")
    identity = build_hash(geometry)
    top = BoardTop(board, geometry, identity, chosen, serial or "0")
    stem = board.stem(config, chosen)
    work = _work(board, out, stem)
    script = _prepared(top, work, seed)
    fed = f" from {board.reference_hz / 1e6:g} MHz" if board.reference_hz else ""
    kinds = f" ({stated(board.ports)})" if board.ports else ""
    say(f"{board.title}, {geometry.nodes} nodes{kinds}, {config}, {geometry.clock_hz / 1e6:g} MHz{fed}, {chosen.text}: "
        f"gateware {identity:08x}; {'synthesis' if family.vendor else 'synthesis, place and route'} (minutes)")
    if family.vendor:
        came = _mapped(board.name, work, family.check, tools)
        came["bitstream"] = f"{work.name}/{_NAME}{family.packed}"
    else:
        _run(board.name, script, work, tools)
        named = clock_names(work / f"{_NAME}{family.netlist}", _NAME, {"capture": geometry.clock_hz, **top.clocks},
                            _PHYS)
        try:
            came = _placed(work, family, _several(geometry), named)
        except ValueError as error:
            raise BuildError(f"{board.name}: {error}") from None
        came["bitstream"] = f"{stem}{family.packed}"
    built = Built(
        board=board.name, config=config, link=chosen.kind, nodes=geometry.nodes, capture_hz=geometry.clock_hz,
        format_version=FORMAT_VERSION, register_version=REGISTER_VERSION, build=f"{identity:08x}", seed=seed,
        vendor=family.vendor, **came, seconds=round(time.monotonic() - begun),
        tools={tool: version(tool) for tool in family.versions}, commit=_commit(), reference_hz=board.reference_hz,
        ports=stated(board.ports[:geometry.nodes]))
    if not family.vendor:
        _check(built, chosen, named, work, family.netlist, (*DECLARED, *_LINE) if geometry.links else DECLARED)
        shutil.copyfile(work / f"{_NAME}{family.packed}", out / built.bitstream)
    said = {name: value for name, value in asdict(built).items() if value or name != "ports"}
    (out / f"{stem}.json").write_text(json.dumps(said, indent=1) + "\n")
    return built


def _work(board: Board, out: Path, stem: str) -> Path:
    return out / f"{stem}-{FAMILIES[board.family].vendor.lower() or 'work'}"


def step(board: Board, out: Path, config: str | None, link: str | None, since_s: float) -> str:
    """What :func:`build` with these arguments does now, and the last line of its log; empty before the tools run.

    ``since_s`` : when the build began, seconds since 1970: older logs are those of an earlier build.
    """
    work = _work(board, out, board.stem(board.config(config), board.link(link)))
    for log, name in ((f"{_NAME}.tim", "place and route"), (f"{_NAME}.rpt", "synthesis")):
        if (work / log).exists() and (work / log).stat().st_mtime >= since_s:
            with (work / log).open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - 500, 0))
                last = file.read().decode(errors="replace").strip().rpartition("\n")[2]
            return f"{name}: {last}" if last else name
    return ""


def _several(geometry: Geometry) -> list[int]:
    """The wired nodes that have several wires; the skew of one wire is none."""
    wires = [FRONT_WIRES[front] for front in geometry.fronts]
    wires += [FRONT_WIRES[Front.PORT]] * (geometry.nodes - len(wires))
    return [node for node, count in enumerate(wires[geometry.linked_nodes:]) if count > 1]


def _placed(work: Path, family: Family, nodes: list[int], named: dict[str, str]) -> dict[str, Any]:
    """nextpnr's report, and the hash of its packed result."""
    report = json.loads((work / "report.json").read_text())
    used = {cell: n for cell, n in report["utilization"].items() if n["used"]}
    skews = dict(zip(nodes, skews_ps(work / f"{_NAME}{family.routed}", work / DELAYS, _NAME, nodes), strict=True))
    return {
        "sha256": _sha256(work / f"{_NAME}{family.packed}"), "clocks": _clocks(report, named),
        "skews_ps": [skews.get(node, 0) for node in range(max(skews, default=-1) + 1)],
        "used": {cell: n["used"] for cell, n in used.items()},
        "there": {cell: n["available"] for cell, n in used.items()},
    }


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _mapped(board: str, work: Path, check: str, tools: dict[str, str]) -> dict[str, Any]:
    """Cells of each kind that Yosys makes of a vendor tool's input, and the hash of that input."""
    (work / "check.ys").write_text(f"read_verilog {_NAME}.v\n{check}\ncheck -assert\ntee -q -o check.json stat -json\n")
    (work / "check.sh").write_text('"$YOSYS" -q check.ys\n')
    _run(board, "check.sh", work, tools)
    cells = json.loads((work / "check.json").read_text())["design"]["num_cells_by_type"]
    return {"sha256": _sha256(work / f"{_NAME}.v"), "clocks": {}, "skews_ps": [], "there": {},
            "used": {kind: cells[kind] for kind in sorted(cells) if not kind.startswith("$")}}


def _prepared(top: BoardTop, work: Path, seed: int) -> str:
    """Writes all inputs of the tools into an empty folder; returns the script that runs them."""
    geometry = top.geometry
    links = top.board.regeneration_pins(f"links{geometry.links}")
    front = geometry.fronts[0] if geometry.fronts else Front.PORT
    timed = top.board.time_pins() if geometry.extras else {}
    platform = platform_of(top.board, geometry.nodes - geometry.linked_nodes, links, front, timed)
    overrides = FAMILIES[top.board.family].overrides(_NAME, seed, max(top.link.clocks.values(), default=0) / 1e6)
    clocks = {"capture_clk": top.geometry.clock_hz}
    platform.add_file(f"{_NAME}.sdc", "".join(
        f"create_clock -period {1e9 / hz:.3f} [get_nets {{{net}}}]\n" for net, hz in clocks.items()))
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that are deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        plan = platform.prepare(top, _NAME, **overrides)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    plan.extract(work)
    return f"{plan.script}.sh"


def _run(board: str, script: str, work: Path, tools: dict[str, str]) -> None:
    log = work / "build.log"
    with log.open("w") as output:
        status = subprocess.run(["sh", script], cwd=work, env=os.environ | tools, stdout=output,
                                stderr=subprocess.STDOUT, check=False).returncode
    if status:
        if lacking := _lacking(work / f"{_NAME}.tim"):
            raise BuildError(f"{board}: does not fit the FPGA: {lacking}; choose fewer nodes (--nodes), nodes of other "
                             "kinds (--ports), another configuration (--config), or a larger board")
        tail = "\n".join(log.read_text().splitlines()[-_TAIL:])
        raise BuildError(f"{board}: the tools failed with status {status}; {log} ends:\n{tail}")
    if ignored := [line for line in log.read_text().splitlines() if "ignoring clock constraint" in line]:
        raise BuildError(f"{board}: a clock would not be checked: {ignored[0]}")


def _lacking(log: Path) -> str:
    """The cells of which nextpnr's log counts more than the part has; empty if it has enough, or there is no log."""
    counts = _UTILISATION.findall(log.read_text(errors="replace")) if log.exists() else []
    return ", ".join(f"{used} {cell} of {there}" for cell, used, there in counts if int(used) > int(there))


def _commit() -> str:
    here = Path(__file__).parent
    git = ["git", "-C", str(here), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _clocks(report: dict[str, Any], named: dict[str, str]) -> dict[str, tuple[float, float]]:
    """MHz reached and requested for each clock, by its own name, or that of its net."""
    nets = {clock: clock.removeprefix("$glbnet$").removesuffix("_$glb_clk") for clock in report["fmax"]}
    names = {clock: f"{named[net]}_clk" if net in named else net.rpartition(".")[2].removesuffix("$TRELLIS_IO_IN")
             for clock, net in nets.items()}
    return {names[clock]: (round(f["achieved"], 1), round(f["constraint"], 3)) for clock, f in report["fmax"].items()}


def _check(built: Built, link: BoardLink, named: dict[str, str], work: Path, netlist: str,
           declared: tuple[str, ...]) -> None:
    """Rejects a result that misses timing, or has paths between clocks that are neither declared nor timed.

    ``declared`` : see :data:`DECLARED`. ``named`` : see :func:`~.crossing_check.clock_names`.
    """
    strays = undeclared(crossings(work / f"{_NAME}{netlist}", _NAME, declared), declared)
    in_phase = {net: clock for net, clock in named.items() if clock in ("line", "capture")}
    if "line" in in_phase.values() and (slow := late(
            json.loads((work / "report.json").read_text()), in_phase, 2 * built.capture_hz)):
        raise BuildError(f"{built.board}: too slow from clock to clock: {slow}; try another --seed")
    if link.related:
        timed = {net: clock for net, clock in named.items() if clock in link.clocks}
        strays = [stray for stray in strays if not {stray.source, stray.target} <= timed.keys()]
        if slow := late(json.loads((work / "report.json").read_text()), timed, max(link.clocks.values())):
            raise BuildError(f"{built.board}: too slow from clock to clock: {slow}; try another --seed")
    if strays:
        raise BuildError(f"{built.board}: from one clock to another without a crossing: "
                         + "; ".join(f"{s.source} to {s.into} ({s.target})" for s in strays))
    if slow := [f"{clock} {reached} of {asked:g} MHz" for clock, (reached, asked) in built.clocks.items()
                if reached < asked]:
        raise BuildError(f"{built.board}: too slow: {', '.join(slow)}; try another --seed")
    if (most := max(built.skews_ps, default=0)) > (tolerated := tolerated_ps(built.capture_hz)):
        raise BuildError(f"{built.board}: the wires of node {built.skews_ps.index(most)} differ by {most} ps inside "
                         f"the FPGA, and {tolerated} are tolerated; try another --seed")
