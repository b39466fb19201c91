"""Mutants of the board's netlist, and the Verilog of a board that can be any of them.

Yosys's ``mutate`` draws bits of cells and ways to break them: inverted, stuck, or crossed with a
neighbour. Each stage gets its share. All mutants stand in one Verilog text, switched by a register
that takes the number of its mutant from the environment when simulation begins; 0 is the board as
it should be.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from amaranth.back import rtlil
from hypermon.hdl.layout import Geometry
from hypermon.hdl.top import PlainTop
from hypermon.hdl.verilog import build_hash

__all__ = ["VARIABLE", "Mutant", "Netlist"]

#: The environment variable with the number of the mutant.
VARIABLE = "HYPERMON_MUTANT"
#: Mutants of a stage at least.
_LEAST = 3
_BITS = 12
#: What of memories and flip-flops is mutated; all of other cells. A clock is no logic.
_PORTS = {"$dff": ("D", "Q"), "$memrd_v2": ("ADDR", "DATA", "EN"), "$memwr_v2": ("ADDR", "DATA", "EN"),
          "$meminit": (), "$meminit_v2": ()}
_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.stdin.read().splitlines():
    libyosys.run_pass(command, design)
"""


@dataclass(frozen=True)
class Mutant:
    """A mutant: number from 1, stage it is in, options of ``mutate``, source lines."""

    number: int
    stage: str
    options: str
    source: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number} {self.stage} {' '.join(self.source)}: {self.options}"


def yosys(folder: Path, *commands: str) -> str:
    """Runs commands; returns what was said."""
    done = subprocess.run([sys.executable, "-c", _YOSYS], cwd=folder, input="\n".join(commands), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"Yosys failed:\n{done.stdout[-3000:]}")
    return done.stdout


def stage_of(module: str) -> str | None:
    """``gate``, ``compact_sink.encoder``; ``capture`` for what connects them; None outside."""
    match module.split("."):
        case "\\hypermon", "capture":
            return "capture"
        case "\\hypermon", "capture", "compact_sink" | "intake" as stage, inner, *_:
            return f"{stage}.{inner.split('$')[0]}"
        case "\\hypermon", "capture", stage, *_:
            return stage.split("$")[0]
    return None


class Netlist:
    """A board's netlist and mutants of it: ``count`` of them, drawn with ``seed``.

    Attributes
    ----------
    mutants : by number, from 1.
    verilog : of module ``hypermon`` with all of them.
    key : a hash of the netlist and the mutants.
    """

    def __init__(self, geometry: Geometry, count: int, seed: int):
        self.geometry = geometry
        top = PlainTop(geometry, "portable", build_hash(geometry))
        text = rtlil.convert(top, name="hypermon", ports=top.ports())
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "board.il").write_text(text)
            yosys(folder, "read_rtlil board.il", "hierarchy -top hypermon", "proc -norom", "opt_expr",
                  "opt_clean -purge", "write_rtlil cells.il")
            self.cells = (folder / "cells.il").read_text()
            self.mutants = list(self._draw(folder, count, seed))
            commands = [f"mutate {m.options} -ctrl mutant {_BITS} {m.number}" for m in self.mutants]
            yosys(folder, "read_rtlil cells.il", *commands, "delete -input hypermon/w:mutant",
                  "write_verilog -noattr all.v")
            self.verilog = _switched((folder / "all.v").read_text())
        logic = re.sub(r"^\s*(attribute \\src .*|#.*)\n", "", self.cells, flags=re.MULTILINE)
        drawn = json.dumps([m.options for m in self.mutants])
        self.key = hashlib.sha256((logic + drawn).encode()).hexdigest()[:16]

    def _draw(self, folder: Path, count: int, seed: int) -> Iterator[Mutant]:
        kinds, modules, widths = {}, defaultdict(list), {}
        sizes: Counter[str] = Counter()
        for module, text in re.findall(r"^module (\S+)\n(.*?)^end\n", self.cells, re.MULTILINE | re.DOTALL):
            cells = re.findall(r"^  cell (\$\S+) (\S+)\n(.*?)^  end\n", text, re.MULTILINE | re.DOTALL)
            kinds |= {(module, name): (kind, body) for kind, name, body in cells}
            widths[module.removeprefix("\\")] = {
                name: int(width or 1) for width, name in
                re.findall(r"^  wire (?:width (\d+) )?.*?([\\$]\S+)$", text, re.MULTILINE)}
            if stage := stage_of(module):
                modules[stage].append(module.removeprefix("\\"))
                sizes[stage] += len(cells)

        def logic(line: str) -> bool:
            module, cell, port = re.search(r"-module (\S+) -cell (\S+) -port \\?(\S+)", line).groups()
            if (found := kinds.get((f"\\{module}", cell))) is None:
                return False    # an instance of another module
            kind, body = found
            if port not in _PORTS.get(kind, (port,)):
                return False
            signal = re.search(rf"^    connect \\{port} (.*)$", body, re.MULTILINE)[1]
            # A memory that is read without a clock has no enable.
            return (kind, port, signal) != ("$memrd_v2", "EN", "1'1") and not _idle(line, _bits(signal, widths[module]))

        shares = _shares({stage: sqrt(size) for stage, size in sorted(sizes.items()) if size}, count)
        number = 0
        for stage, share in shares.items():
            # More than needed, because some fall out.
            yosys(folder, "read_rtlil cells.il", f"select {' '.join(modules[stage])}",
                  f"mutate -list {3 * share + 8} -seed {seed} -o drawn")
            drawn = [line for line in (folder / "drawn").read_text().splitlines() if logic(line)]
            for line in drawn[:share]:
                number += 1
                source = tuple(Path(path).name for path in re.findall(r"-src (\S+)", line) if "amaranth" not in path)
                options = re.sub(r" -src \S+", "", line.removeprefix("mutate "))
                yield Mutant(number, stage, options, source)


def _idle(line: str, bits: str) -> bool:
    """Would it change nothing, because that bit of ``bits`` (lowest first) is constant and has that value?"""
    mode, bit = re.search(r"-mode (\S+) .* -portbit (\d+)", line).groups()
    if mode.startswith("cnot"):
        other = bits[int(re.search(r"-ctrlbit (\d+)", line)[1])]
        return other == str(1 - int(mode[-1]))      # it is never crossed
    return bits[int(bit)] in (mode.removeprefix("const"), "x")


def _bits(signal: str, widths: dict[str, int]) -> str:
    """Bits of a signal as RTLIL writes it, lowest first: 0, 1, x, and ? for what is not constant."""
    found = ""
    part = r"([\\$]\S+)(?: \[([\d:]+)\])?|(\d+)'([01xz-]*)|(-?\d+)"
    for name, index, width, constant, integer in re.findall(part, signal):
        if name:
            high, _, low = index.partition(":")
            count = int(high) - int(low) + 1 if low else 1 if high else widths[name]
            found += "?" * count
        elif integer:
            found += f"{int(integer) % 2**32:032b}"
        else:
            found += constant.rjust(int(width), "0") if constant else "0" * int(width)
    # The highest part stands first.
    return found[::-1]


def _shares(weights: dict[str, float], count: int) -> dict[str, int]:
    """``count`` in whole parts like ``weights``, at least three each."""
    total = sum(weights.values())
    return {stage: max(_LEAST, round(count * weight / total)) for stage, weight in weights.items()}


def _switched(verilog: str) -> str:
    """The control signal takes its value from the environment."""
    # Of the top module alone it is no input.
    declared = f"(?<!  input \\[{_BITS - 1}:0\\] mutant;\n)  wire \\[{_BITS - 1}:0\\] mutant;\n"
    value = f'std::getenv(\\"{VARIABLE}\\") ? std::atoi(std::getenv(\\"{VARIABLE}\\")) : 0'
    taken = f'  reg [{_BITS - 1}:0] mutant;\n  initial mutant = $c32("({value})");\n'
    switched, times = re.subn(declared, lambda _: taken, verilog)
    assert times == 1, "the control signal is not where it should be"
    return switched
