"""The evaluation's measurements as tables: stored as CSV, and read back."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import HypermonError
from hypermon.studies.page.tables import Row, Tables, load, save

__all__ = ["TABLES", "Evaluation", "Row"]

Series = npt.NDArray[np.float64]

#: Name of each table, and the columns by which it is sorted.
TABLES = {
    "bandwidth": ("nodes", "delay"),
    "events": ("how", "nodes"),
    "programs": ("program", "nodes", "how"),
    "rates": ("program", "nodes", "interval"),
    "volumes": ("nodes", "ms"),
    "tried": ("question",),
    "seeds": ("program", "nodes", "seed"),
    "bench_seeds": ("nodes", "delay", "seed"),
    "order": ("program", "nodes", "seed"),
    "bursts": ("nodes", "seed"),
    "bus": ("rate",),
    "waves": ("figure", "clock"),
    "made": (),
}


class Evaluation:
    """The evaluation's results.

    Members
    -------
    tables : rows of each of :data:`TABLES`. ``bandwidth``: one row per run of that test. ``events``: likewise, on
        boards that stamp events. ``programs``: one row per run of a program. ``rates``: frames per second in intervals
        of a whole program. ``volumes``: bytes and events in each millisecond of Place (none is left out). ``tried``:
        variations tried where the paper is not explained. Without a board, for several seeds: ``seeds``, whole
        programs; ``bench_seeds``, the bandwidth test; ``order``, causality; ``bursts``, Place's volume. ``bus``: what a
        host reads at most. ``waves``: signals of the gateware. ``made``: the command, and how long it took.
    """

    def __init__(self) -> None:
        self.tables: Tables = {name: [] for name in TABLES}

    def sort(self) -> None:
        """Sorts the rows into an order that does not depend on which run ended first."""
        for name, columns in TABLES.items():
            self.tables[name].sort(key=lambda row, by=columns: [row[column] for column in by])  # type: ignore[misc]

    def row(self, program: str, nodes: int, how: str) -> Row:
        """A run of a program."""
        return next(row for row in self.tables["programs"]
                    if (row["program"], row["nodes"], row["how"]) == (program, nodes, how))

    def whole(self, program: str, nodes: int) -> list[Row]:
        """The whole program without a board, a row for each seed."""
        return [row for row in self.tables["seeds"] if (row["program"], row["nodes"]) == (program, nodes)]

    def bench_row(self, nodes: int, delay: int) -> Row:
        """A run of the bandwidth test."""
        return next(row for row in self.tables["bandwidth"] if (row["nodes"], row["delay"]) == (nodes, delay))

    def rates(self, program: str) -> dict[int, tuple[Series, float]]:
        """By nodes, frames per second in intervals, and the seconds that they span."""
        curves: dict[int, list[Row]] = {}
        for row in self.tables["rates"]:
            if row["program"] == program:
                curves.setdefault(row["nodes"], []).append(row)
        return {nodes: (np.array([row["frames_per_second"] for row in rows]), sum(row["seconds"] for row in rows))
                for nodes, rows in curves.items()}

    def volumes(self, column: str = "bytes") -> dict[int, Series]:
        """By nodes, bytes or events in each millisecond, including the silent ones."""
        curves: dict[int, Series] = {}
        for nodes in sorted({row["nodes"] for row in self.tables["volumes"]}):
            rows = [row for row in self.tables["volumes"] if row["nodes"] == nodes]
            curves[nodes] = np.zeros(max(row["ms"] for row in rows) + 1)
            curves[nodes][[row["ms"] for row in rows]] = [row[column] for row in rows]
        return curves

    def save(self, folder: Path) -> None:
        """Writes a CSV file of each table into the folder, which is created if necessary."""
        save(self.tables, folder)

    @classmethod
    def load(cls, folder: Path) -> "Evaluation":
        """Reads them back.

        Raises
        ------
        HypermonError
            if one does not exist.
        """
        done, there = cls(), load(folder)
        if missing := [name for name in TABLES if name not in there]:
            raise HypermonError(f"{folder / missing[0]}.csv: not there; without --again it is made")
        done.tables = {name: there[name] for name in TABLES}
        return done
