"""Size and clock rate of the core on an ECP5-25F, by the kind of its nodes: `make timing OF=kinds`.

Rows are kept in docs/tools/kinds.csv, the source of the table in docs/attach.md. Each is a core with the extended
configuration, 16 nodes of one kind and no store, wrapped as :mod:`.core_timing` does.
"""

import argparse
import csv
import json
import time
from collections import Counter
from pathlib import Path

from hypermon.hdl.layout import FRONT_WIRES, Front, Geometry

from ..model.mixture import kind
from .core_timing import ASKED, SerialShell, place, synthesize
from .resources import CELLS

__all__ = ["COLUMNS", "NODES", "geometry", "main", "measure"]

#: Nodes of each core.
NODES = 16
_CLOCK_HZ = 100_000_000
COLUMNS = ("kind", "wires", *CELLS, "MHz", "seconds")


def geometry(front: Front) -> Geometry:
    """Geometry of a core whose nodes are all of that kind."""
    fronts = () if front is Front.PORT else (front,) * NODES
    return Geometry.extended(NODES, _CLOCK_HZ, store_depth=0, fronts=fronts)


def measure(front: Front, folder: Path, placed: bool) -> dict[str, object]:
    """Measures one row of the table; the files of the tools go into ``folder``. ``placed`` : with place and route, by
    seed 1, which takes longer than the synthesis."""
    begun = time.monotonic()
    synthesize(SerialShell(geometry(front), "ecp5"), folder)
    cells = json.loads((folder / "core.json").read_text())["modules"]["top"]["cells"].values()
    count = Counter(cell["type"] for cell in cells)
    row: dict[str, object] = {"kind": kind(front), "wires": NODES * FRONT_WIRES[front]}
    row |= {name: sum(count[cell] for cell in cells) for name, cells in CELLS.items()}
    if placed:
        figures = place(folder, 1, ASKED["extended"])
        row["MHz"] = round(min(clock["achieved"] for clock in figures["fmax"].values()), 1)
    return row | {"seconds": round(time.monotonic() - begun)}


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make timing OF=kinds", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[kind(front) for front in Front], metavar="KIND",
                        help="kinds to measure (default: all)")
    parser.add_argument("--unplaced", action="store_true", help="synthesis alone, and no MHz")
    parser.add_argument("--table", type=Path, default=Path("docs/tools/kinds.csv"))
    parser.add_argument("--output", type=Path, default=Path(".build/kinds"))
    args = parser.parse_args(argv)
    for front in Front:
        if args.only and kind(front) not in args.only:
            continue
        row = measure(front, args.output / kind(front), not args.unplaced)
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        rows = {}
        if args.table.exists():
            with args.table.open(newline="") as file:
                rows = {row["kind"]: row for row in csv.DictReader(file)}
        rows[kind(front)] = row
        with args.table.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[kind(one)] for one in Front if kind(one) in rows)


if __name__ == "__main__":
    main()
