"""Every figure of the page: its paper's value, its class, its tolerance, and the value from the recordings."""

from collections.abc import Iterable, Iterator
from math import floor, inf, log10
from typing import Any, NamedTuple

import numpy as np
from hypermon.studies.page.tables import Tables

__all__ = ["CLASSES", "LEAST", "Data", "Row", "beside", "judged", "shown", "spread", "text", "within"]

#: A verdict needs this number of repetitions in each of the runs that its figure is from.
LEAST = 30
#: The tables whose rows say of how many repetitions they are, and the column.
_COUNTED = {"bsp": "count", "all_to_all": "count", "ratios": "count", "latency": "count", "hotspot": "count",
            "single": "exchange_count"}

#: The classes, and what each proves.
CLASSES = {
    "R": "round trip: planted in the model, recovered from the recording. It proves the monitor and the analysis, and "
         "nothing about the machine",
    "F": "fitted: a parameter was set with it. It proves nothing",
    "P": "predicted: comes out of the model, and no parameter was set with it. It proves the model",
    "C": "arithmetic: follows from other printed figures. It proves the paper's consistency",
    "N": "not reproduced: not possible, or the result differs",
}


class Row(NamedTuple):
    """A figure.

    Members
    -------
    what, paper : its name and the printed value. ``kind``: one of :data:`CLASSES`.
    accept : the tolerance, as text. ``ours``: what was found; empty: there is no run yet.
    deviation : from the printed value, as text. ``met``: None if nothing is to be met.
    note : why.
    """

    what: str
    paper: str
    kind: str
    accept: str = "-"
    ours: str = ""
    deviation: str = "-"
    met: bool | None = None
    note: str = ""


class Data:
    """The tables of all runs.

    Members
    -------
    least : repetitions of the shortest run of which rows were asked for, since it was set to infinity.
    """

    def __init__(self, tables: Tables):
        self._tables = tables
        self.least: float = inf

    def rows(self, table: str, **match: object) -> list[dict[str, Any]]:
        """The rows of a table with these values; ``task`` is the beginning of a name."""
        task = match.pop("task", "")
        found = [row for row in self._tables.get(table, []) if str(row["task"]).startswith(str(task))
                 and all(row.get(key) == value for key, value in match.items())]
        column = _COUNTED.get(table)
        self.least = min([self.least, *(float(row[column]) for row in found if row.get(column) is not None)])
        return found

    def values(self, table: str, column: str, **match: object) -> list[float]:
        """A column of these rows."""
        return [float(row[column]) for row in self.rows(table, **match) if row.get(column) is not None]


def judged(data: Data, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, without the verdicts of those that are from a run of fewer than :data:`LEAST` repetitions."""
    walk = iter(rows)
    while True:
        data.least = inf
        row = next(walk, None)
        if row is None:
            return
        if row.met is not None and data.least < LEAST:
            row = row._replace(met=None, note="; ".join(part for part in (
                row.note, f"no verdict: a run of {data.least:.0f} repetitions") if part))
        yield row


def spread(value: float) -> str:
    """A standard deviation: two digits, and never an exponent."""
    if not value:
        return "0"
    places = 1 - floor(log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}"


def text(values: list[float], form: str = ".3g", unit: str = "") -> str:
    """Mean, and standard deviation of several, each with the unit."""
    if not values:
        return ""
    mean = f"{np.mean(values):{form}}{unit}"
    if len(values) == 1:
        return mean
    return f"{mean} (sd {spread(float(np.std(values, ddof=1)))}{unit}, {len(values)} seeds)"


def beside(what: str, kind: str, paper: float, values: list[float], *, part: float, form: str = ".4g", unit: str = "",
           note: str = "", printed: str = "") -> Row:
    """A figure that is to be within a share of the printed one."""
    accept, shown = f"{100 * part:g} %", printed or f"{paper:g}{unit}"
    if not values:
        return Row(what, shown, kind, accept, note=note)
    off = float(np.mean(values)) / paper - 1
    return Row(what, shown, kind, accept, text(values, form, unit), f"{100 * off:+.2f} %", abs(off) <= part, note)


def within(what: str, kind: str, paper: str, values: list[float], low: float, high: float, *, form: str = ".4g",
           unit: str = "", note: str = "", to: float | None = None) -> Row:
    """A figure that is to be in a range; ``to``: the printed value, for the deviation."""
    accept = f"at least {low:g}{unit}" if high == np.inf else f"at most {high:g}{unit}" if low == -np.inf else \
        f"{low:g} to {high:g}{unit}"
    if not values:
        return Row(what, paper, kind, accept, note=note)
    mean = float(np.mean(values))
    off = "-" if to is None else f"{100 * (mean / to - 1):+.1f} %"
    return Row(what, paper, kind, accept, text(values, form, unit), off, low <= mean <= high, note)


def shown(what: str, kind: str, paper: str, ours: str, note: str = "") -> Row:
    """A figure with nothing to be met."""
    return Row(what, paper, kind, ours=ours, note=note)

