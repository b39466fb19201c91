"""Named tables of measured values, whose rows are plain values, as CSV files."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError

__all__ = ["Row", "Tables", "load", "save"]

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def save(tables: Mapping[str, list[Row]], folder: Path, digits: int | None = None) -> None:
    """Writes a CSV file of each table that has rows into the folder, which is created if necessary.

    ``digits`` : of a number that is no integer; None: all that it has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        if not columns:
            continue
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: f"{value:.{digits}g}" if digits and isinstance(value, float) else value
                              for key, value in row.items()} for row in rows)


def load(folder: Path) -> Tables:
    """Reads all CSV files of a folder back.

    Raises
    ------
    HypermonError
        if there is none.
    """
    found = sorted(folder.glob("*.csv"))
    if not found:
        raise HypermonError(f"{folder}: no tables there; without --again they are made")
    tables = {}
    for path in found:
        with open(path, newline="", encoding="utf-8") as file:
            tables[path.stem] = [{key: _value(text) for key, text in row.items() if text not in ("", None)}
                                 for row in csv.DictReader(file)]
    return tables


def _value(text: str) -> int | float | str | bool:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
