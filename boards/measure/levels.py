"""Logic levels and size of the core by stage, on an ECP5: `make timing OF=levels` (synthesis only, nothing is placed).

A path through more than four lookup tables misses 150 MHz on an ECP5 of speed 6 as soon as its wires are long. The
netlist of the synthesis shows such paths a minute after a change; place and route needs ten.
"""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import BEAT_BYTES, SLIM_BYTES, Geometry, Option, Sink

from .core_timing import SerialShell, synthesize

__all__ = ["AT_150_MHZ", "DeepPath", "Rooms", "deepest", "deepest_by_room", "main", "netlist", "size_by_room"]

#: Levels that fit into a clock of 150 MHz with wires of ordinary length.
AT_150_MHZ = 4
#: Blocks of the carry chain, two bits each, that cost as much as one more level.
_CARRY_BLOCKS = 8
_BLOCK_RAMS = ("DP16KD", "PDPW16KD")
#: Area of a cell in lookup tables of four inputs.
_AREA = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
#: Lookup tables of the part.
ECP5_25F = 24288
_CLOCKS = ("CLK", "WCK", "CLKA", "CLKB", "CLKR", "CLKW", "CLKI", "CLKO")

Cells = dict[str, dict[str, Any]]


@dataclass(frozen=True, order=True)
class DeepPath:
    """The deepest path to a register or memory: its levels; names of its cells, from the register where it starts."""

    levels: int
    cells: tuple[str, ...]


class Rooms:
    """The stages of a netlist. Yosys names a cell after a signal next to it and keeps the names of all stages."""

    def __init__(self, cells: Cells):
        self._stages = {name for name, cell in cells.items() if cell["type"] == "$scopeinfo"}

    def of(self, cell: str) -> str:
        """Path of the stage that contains a cell, without the numbers that make a name unique; ``top`` for the
        outermost one."""
        path = cell
        while path and path not in self._stages:
            path = path.rpartition(".")[0]
        return re.sub(r"[$][0-9]+", "", path) or "top"


def netlist(folder: Path) -> Cells:
    """Cells of a netlist that :func:`~.core_timing.synthesize` has written."""
    cells: Cells = json.loads((folder / "core.json").read_text())["modules"]["top"]["cells"]
    return cells


def _pins(cell: dict[str, Any], direction: str) -> Iterator[tuple[str, Any]]:
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            for bit in bits:
                if isinstance(bit, int):  # not a constant
                    yield port, bit


class _Walk:
    """Depth of every wire, and the wire before it on the deepest path.

    ``from_block_rams``: only paths that begin at a block RAM count; a wire that none reaches has no depth.
    """

    def __init__(self, cells: Cells, from_block_rams: bool = False):
        self.cells, self.from_block_rams = cells, from_block_rams
        self.driver = {bit: (name, port) for name, cell in cells.items() for port, bit in _pins(cell, "output")}
        self.known: dict[int, tuple[float, int | None]] = {}

    def depth(self, bit: int) -> float:
        """Levels from registers and pins to a wire. Not recursive, because carry chains are long."""
        todo = [bit]
        while todo:
            wire = todo[-1]
            sources = self._sources(wire)
            missing = [source for source, _ in sources if source not in self.known]
            if missing and wire not in self.known:
                todo.extend(missing)
                continue
            todo.pop()
            deepest_of = [(self.known[source][0] + cost, source) for source, cost in sources]
            self.known[wire] = max(deepest_of, default=(self._begins(wire), None))
        return self.known[bit][0]

    def _begins(self, wire: int) -> float:
        """Depth of a wire that depends on no other one in its clock. To read a distributed memory is a level."""
        kind = self.cells[self.driver[wire][0]]["type"] if wire in self.driver else ""
        if self.from_block_rams:
            return 0 if kind in _BLOCK_RAMS else -math.inf
        return float(kind in _AREA)

    def _sources(self, wire: int) -> list[tuple[int, float]]:
        """Wires that a wire depends on in the same clock, and the levels in between."""
        if wire not in self.driver:
            return []
        name, port = self.driver[wire]
        cell = self.cells[name]
        kind = cell["type"]
        if kind == "LUT4":
            return [(bit, 1) for _, bit in _pins(cell, "input")]
        if kind == "TRELLIS_DPR16X4":
            return [(bit, 1) for source, bit in _pins(cell, "input") if source == "RAD"]
        if kind == "CCU2C":  # S0 does not depend on the upper of the two bits
            return [
                (bit, 1 / _CARRY_BLOCKS if source == "CIN" else 1)
                for source, bit in _pins(cell, "input")
                if port != "S0" or not source.endswith("1")
            ]
        return []

    def path(self, bit: int, end: str) -> DeepPath:
        """The deepest path to a cell that a wire enters."""
        names, wire = [end], bit
        while True:
            if wire in self.driver:
                names.append(self.driver[wire][0])
            before = self.known[wire][1]
            if before is None:
                return DeepPath(int(self.depth(bit)), tuple(reversed(names)))
            wire = before


def deepest(cells: Cells, from_block_rams: bool = False) -> list[DeepPath]:
    """The deepest path to each register and memory, or the deepest one that begins at a block RAM, if any.

    A lookup table is a level; so is reading a distributed memory. A carry chain is one level, and another one for
    every 16 bits that a carry passes. Of paths of equal depth, one is returned.
    """
    walk, paths = _Walk(cells, from_block_rams), []
    for name, cell in cells.items():
        if cell["type"] in ("LUT4", "CCU2C"):
            continue
        entering = [
            bit
            for port, bit in _pins(cell, "input")
            if port not in _CLOCKS and (cell["type"], port) != ("TRELLIS_DPR16X4", "RAD")
        ]
        if entering:
            deep = max(entering, key=walk.depth)
            if walk.depth(deep) >= 0:
                paths.append(walk.path(deep, name))
    return paths


def deepest_by_room(cells: Cells, from_block_rams: bool = False) -> dict[str, DeepPath]:
    """The deepest path to each room, see :func:`deepest`."""
    rooms, found = Rooms(cells), dict[str, DeepPath]()
    for path in deepest(cells, from_block_rams):
        room = rooms.of(path.cells[-1])
        if room not in found or path > found[room]:
            found[room] = path
    return found


def size_by_room(cells: Cells) -> dict[str, tuple[int, int]]:
    """Lookup tables and flip-flops of each room. A carry block counts as two lookup tables, and 16 x 4 bits of
    distributed memory as six: four, and the two that its write port occupies."""
    rooms, area, registers = Rooms(cells), Counter[str](), Counter[str]()
    for name, cell in cells.items():
        room = rooms.of(name)
        area[room] += _AREA.get(cell["type"], 0)
        registers[room] += cell["type"] == "TRELLIS_FF"
    return {room: (area[room], registers[room]) for room in area if area[room] or registers[room]}


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make timing OF=levels", description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--config", choices=[sink.name.lower() for sink in Sink], default="extended")
    options = [option.name.lower() for option in Option]
    parser.add_argument("--without", nargs="+", default=(), choices=options, help="options left out (with extended)")
    parser.add_argument("--beat-bytes", type=int, choices=(BEAT_BYTES, SLIM_BYTES), default=BEAT_BYTES,
                        help="width from packer to checksum; 4 with extended")
    parser.add_argument("--bound", type=int, default=AT_150_MHZ, help="levels above which a stage is listed")
    parser.add_argument("--sizes", action="store_true", help="list the size of each stage, too")
    parser.add_argument(
        "--netlist",
        type=Path,
        help="folder of a netlist, for instance of `make timing`, to read instead of a synthesis",
    )
    parser.add_argument("--output", type=Path, default=Path(".build/levels"))
    args = parser.parse_args(argv)
    folder = args.netlist or args.output / "-".join(
        (args.config, str(args.nodes), *args.without, *(["slim"] if args.beat_bytes == SLIM_BYTES else [])))
    if not args.netlist:
        geometry = Geometry.extended(args.nodes) if args.config == "extended" else Geometry(args.nodes)
        try:
            geometry = replace(geometry, absent=tuple(Option[name.upper()] for name in args.without),
                               beat_bytes=args.beat_bytes)
        except ValueError as error:
            parser.error(str(error))
        synthesize(SerialShell(geometry, "ecp5"), folder)
    cells = netlist(folder)
    sizes = size_by_room(cells)
    area, registers = (sum(size[k] for size in sizes.values()) for k in (0, 1))
    print(f"{area} lookup tables of {ECP5_25F} of an ECP5-25F ({100 * area / ECP5_25F:.0f} %), {registers} flip-flops")
    depths = Counter(path.levels for path in deepest(cells))
    print("registers by levels:", ", ".join(f"{levels}: {depths[levels]}" for levels in sorted(depths)))
    for title, ram, bound in (
        ("rooms with deeper paths", False, args.bound),
        ("rooms with logic after a block RAM", True, 0),
    ):
        print(f"{title}:")
        for room, path in sorted(deepest_by_room(cells, ram).items(), key=lambda item: (-item[1].levels, item[0])):
            if path.levels > bound:
                print(f"  {path.levels}  {room}: {path.cells[0]} -> {path.cells[-1]}")
    for room, size in sorted(sizes.items(), key=lambda item: -item[1][0]) if args.sizes else ():
        print(f"  {size[0]:5} {size[1]:5}  {room}")


if __name__ == "__main__":
    main()
