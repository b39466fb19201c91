"""Size, depth and clock rate of the core on an ECP5-25F, by the kind of its nodes: `make timing OF=kinds`.

Rows are kept in docs/tools/kinds.csv, the source of the tables in docs/front-ends.md. Each is a core with the extended
configuration and no store, wrapped as :mod:`.core_timing` does.
"""

import argparse
import csv
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hypermon.hdl.layout import FRONT_WIRES, SLIM_BYTES, Front, Geometry, Option
from hypermon.hdl.verilog import build_hash

from ..model.mixture import kind
from .core_timing import ASKED, SerialShell, place, synthesize
from .levels import deepest_by_room, netlist
from .resources import CELLS

__all__ = ["COLUMNS", "CORES", "LARGE", "SMALL", "Core", "front_rooms", "main", "measure", "read"]

#: Nodes of the large and of the small cores.
LARGE, SMALL = 16, 4
_CLOCK_HZ = 100_000_000
_KEY = ("kind", "nodes", "of the kind")
COLUMNS = (*_KEY, "wires", *CELLS, "levels", "front levels", "MHz", "seconds", "build")


@dataclass(frozen=True)
class Core:
    """A core to be measured: the kind of its first nodes, the number of nodes, and how many of them are of that kind;
    the others have ports. A core with fewer nodes than :data:`LARGE` lacks all options and has beats of 4 bytes."""

    front: Front
    nodes: int
    of: int

    @property
    def key(self) -> tuple[str, ...]:
        """Values of a row's first columns."""
        return kind(self.front), str(self.nodes), str(self.of)

    def geometry(self) -> Geometry:
        """Geometry of the core."""
        fronts = () if self.front is Front.PORT else (self.front,) * self.of
        if self.nodes >= LARGE:
            return Geometry.extended(self.nodes, _CLOCK_HZ, store_depth=0, fronts=fronts)
        return Geometry.extended(self.nodes, _CLOCK_HZ, store_depth=0, absent=tuple(Option), beat_bytes=SLIM_BYTES,
                                 fronts=fronts)


#: In the order of the table. The differences between the small ones are the costs of a node and of a board.
CORES = (
    *(Core(front, LARGE, LARGE) for front in Front),
    Core(Front.PORT, SMALL // 2, SMALL // 2),
    *(Core(front, SMALL, SMALL) for front in Front),
    Core(Front.UART, SMALL, 1),
)
#: Those that are placed.
_PLACED = (Core(Front.PORT, SMALL, SMALL), Core(Front.UART, SMALL, 1))


def front_rooms(rooms: Iterable[str]) -> list[str]:
    """The stages of front ends among those of a netlist, see :class:`~.levels.Rooms`."""
    return [room for room in rooms if "fronts" in room.split(".")]


def measure(core: Core, folder: Path, seeds: list[int]) -> dict[str, object]:
    """Measures one row of the table; the files of the tools go into ``folder``. ``seeds`` : of place and route, which
    takes longer than the synthesis; none for the synthesis alone."""
    begun = time.monotonic()
    synthesize(SerialShell(core.geometry(), "ecp5"), folder)
    cells = netlist(folder)
    count = Counter(cell["type"] for cell in cells.values())
    row: dict[str, object] = dict(zip(_KEY, core.key, strict=True))
    row["wires"] = core.of * FRONT_WIRES[core.front] + (core.nodes - core.of) * FRONT_WIRES[Front.PORT]
    row |= {name: sum(count[cell] for cell in cells) for name, cells in CELLS.items()}
    rooms = deepest_by_room(cells)
    row["levels"] = max((path.levels for path in rooms.values()), default=0)
    row["front levels"] = max((rooms[room].levels for room in front_rooms(rooms)), default="")
    if seeds:
        reached = [min(clock["achieved"] for clock in place(folder, seed, ASKED["extended"])["fmax"].values())
                   for seed in seeds]
        row["MHz"] = "; ".join(f"{mhz:.1f}" for mhz in reached)
    return row | {"seconds": round(time.monotonic() - begun), "build": f"{build_hash(core.geometry()):08x}"}


def read(table: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of a table, by the values of their first columns; none if there is no such file."""
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        return {tuple(row[name] for name in _KEY): row for row in csv.DictReader(file)}


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make timing OF=kinds", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[kind(front) for front in Front], metavar="KIND",
                        help="kinds to measure (default: all)")
    parser.add_argument("--nodes", type=int, nargs="+", choices=sorted({core.nodes for core in CORES}),
                        help="cores with these numbers of nodes (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3],
                        help=f"of place and route, of two cores with {SMALL} nodes")
    parser.add_argument("--unplaced", action="store_true", help="synthesis alone, and no MHz")
    parser.add_argument("--table", type=Path, default=Path("docs/tools/kinds.csv"))
    parser.add_argument("--output", type=Path, default=Path(".build/kinds"))
    args = parser.parse_args(argv)
    for core in CORES:
        if core.key[0] not in (args.only or core.key) or core.nodes not in (args.nodes or [core.nodes]):
            continue
        seeds = args.seeds if core in _PLACED and not args.unplaced else []
        row = measure(core, args.output / "-".join(core.key), seeds)
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        rows = read(args.table)
        before = rows.get(core.key, {})
        if "MHz" not in row and before.get("build") == row["build"]:
            row["MHz"] = before["MHz"]
        every: dict[tuple[str, ...], Mapping[str, object]] = {**rows, core.key: row}
        with args.table.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(every[one.key] for one in CORES if one.key in every)


if __name__ == "__main__":
    main()
