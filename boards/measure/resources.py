"""Size of the core on an ECP5, by nodes, sinks and depths: `make timing OF=resources` (synthesis only).

Rows are kept in docs/tools/resources.csv, the source of the table in docs/integrate.md.
"""

import argparse
import csv
import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from hypermon.hdl.layout import Geometry
from hypermon.hdl.top import PlainTop

from .core_timing import synthesize

__all__ = ["CELLS", "COLUMNS", "CORES", "Core", "main", "measure"]

_CLOCK_HZ = 100_000_000


@dataclass(frozen=True)
class Core:
    """A core to be measured: its sinks, nodes, and depths of strobe-vector FIFO, frame FIFO and store."""

    config: str
    nodes: int
    vectors: int = 1024
    frames: int = 1024
    store: int = 0

    def geometry(self) -> Geometry:
        """Geometry of a board with these depths."""
        made = Geometry(self.nodes, _CLOCK_HZ) if self.config == "classic" else Geometry.extended(self.nodes, _CLOCK_HZ)
        return replace(made, vector_depth=self.vectors, frame_depth=self.frames, store_depth=self.store)


#: In the order of the table.
CORES = (
    Core("classic", 2), Core("classic", 4), Core("classic", 8), Core("classic", 16), Core("classic", 16, 256, 64),
    Core("extended", 2, 512, 16), Core("extended", 8, 512, 16), Core("extended", 16, 512, 16),
    Core("extended", 16, 512, 16, 3072),
)
#: The kinds of cells that are counted, and the properties of a core that each row begins with.
CELLS = {"LUT4": ("LUT4",), "CCU2C": ("CCU2C",), "flip-flops": ("TRELLIS_FF",), "16 x 4 RAMs": ("TRELLIS_DPR16X4",),
          "block RAMs": ("DP16KD", "PDPW16KD")}
_KEY = ("config", "nodes", "vectors", "frames", "store")
COLUMNS = (*_KEY, *CELLS, "seconds")


def measure(core: Core, folder: Path) -> dict[str, object]:
    """Measures one row of the table; the files of the synthesis go into ``folder``."""
    begun = time.monotonic()
    synthesize(PlainTop(core.geometry(), "ecp5"), folder)
    cells = json.loads((folder / "core.json").read_text())["modules"]["top"]["cells"].values()
    count = Counter(cell["type"] for cell in cells)
    return ({name: getattr(core, name) for name in _KEY}
            | {name: sum(count[kind] for kind in kinds) for name, kinds in CELLS.items()}
            | {"seconds": round(time.monotonic() - begun)})


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="make timing OF=resources", description=__doc__)
    parser.add_argument("--only", type=int, nargs="+", metavar="ROW", help="rows of the table, from 0 (default: all)")
    parser.add_argument("--table", type=Path, default=Path("docs/tools/resources.csv"))
    parser.add_argument("--output", type=Path, default=Path(".build/resources"))
    args = parser.parse_args(argv)
    rows = {}
    if args.table.exists():
        with args.table.open(newline="") as file:
            rows = {tuple(row[name] for name in _KEY): row for row in csv.DictReader(file)}
    every = {tuple(str(getattr(core, name)) for name in _KEY): core for core in CORES}
    for number, (key, core) in enumerate(every.items()):
        if args.only and number not in args.only:
            continue
        rows[key] = measure(core, args.output / "-".join(key))
        print(", ".join(f"{name} {value}" for name, value in rows[key].items()), flush=True)
        with args.table.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[key] for key in every if key in rows)


if __name__ == "__main__":
    main()
