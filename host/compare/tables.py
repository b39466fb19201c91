"""A comparison for people and for programs: a table, Markdown, JSON."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hypermon.host.analysis.stats import duration_text
from hypermon.host.compare.comparison import THRESHOLDS, Figure, Interval
from hypermon.host.compare.limits import Broken
from hypermon.host.text.numbers import significant
from hypermon.host.text.printable import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["STATUS", "TITLES", "as_dict", "markdown", "overall", "print_comparison", "row_of", "sentences"]

#: Exit statuses of `hypermon compare`, which are those of `hypermon check`.
STATUS = {"pass": 0, "fail": 1, "undecided": 4}
#: The columns of :func:`row_of`.
TITLES = ("figure", "A", "B", "difference", "interval", "p", "verdict")
_COLOURS = {"higher": "red", "lower": "red", "undecided": "yellow", "same": "green", "few": "dim"}
_SAID = {"few": "too few samples"}


def overall(broken: Sequence[Broken]) -> str:
    """``fail`` if a limit is exceeded, else ``undecided`` if one may be, else ``pass``."""
    verdicts = {one.verdict for one in broken}
    return next((verdict for verdict in ("fail", "undecided") if verdict in verdicts), "pass")


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [end if math.isfinite(end) else None for end in (interval.low, interval.high)]


def as_dict(figures: Sequence[Figure], broken: Sequence[Broken]) -> dict[str, Any]:
    """The output of `hypermon compare A B --json`; an end of an interval that is not known is null.

    ``thresholds``: the limits that the figures depend on, see docs/thresholds.md.
    """
    return {"verdict": overall(broken), "figures": [
        {"name": one.name, "unit": one.unit, "a": one.first, "b": one.second, "difference": _ends(one.difference),
         "relative": _ends(one.relative), "p": one.p, "verdict": one.verdict} for one in figures],
        "limits": [{"limit": one.limit.text, "name": one.figure.name, "verdict": one.verdict} for one in broken],
        "thresholds": THRESHOLDS}


def _value(value: float | None, unit: str, sign: str = "") -> str:
    if value is None:
        return ""
    if math.isinf(value):
        return "-inf" if value < 0 else f"{sign}inf"
    sign = "-" if value < 0 else sign
    if unit == "ps":
        return sign + duration_text(round(abs(value)))
    return f"{sign}{significant(float(f'{abs(value):.4g}'), 4)}{f' {unit}' if unit else ''}"


def row_of(one: Figure) -> list[str]:
    """A figure as the cells of a table."""
    change = ""
    if one.first is not None and one.second is not None:
        change = _value(one.second - one.first, one.unit, "+")
        if one.first > 0:
            change += f" ({100 * (one.second / one.first - 1):+.2f} %)"
    interval = "" if one.difference is None else (f"{_value(one.difference.low, one.unit, '+')} to "
                                                  f"{_value(one.difference.high, one.unit, '+')}")
    p = "" if one.p is None else f"{one.p:.2g}" if one.p >= 1e-6 else "< 1e-6"
    return [visible(one.name), _value(one.first, one.unit), _value(one.second, one.unit), change, interval, p,
            _SAID.get(one.verdict, one.verdict)]


def sentences(broken: Sequence[Broken]) -> list[str]:
    """A sentence about each limit that is exceeded, or may be."""
    return [f"{visible(one.figure.name)}: {one.verdict}: {visible(one.limit.text)}" for one in broken]


def print_comparison(figures: Sequence[Figure], broken: Sequence[Broken], console: "Console") -> None:
    """Prints a table of the figures, then the limits that are exceeded, or may be."""
    from hypermon.host.text.console import cell
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in TITLES:
        table.add_column(title, justify="left" if title in ("figure", "verdict") else "right")
    for one in figures:
        *cells, verdict = row_of(one)
        table.add_row(*map(cell, cells), f"[{_COLOURS[one.verdict]}]{verdict}")
    console.print(table)
    for line in sentences(broken):
        console.print(cell(line))


def markdown(figures: Sequence[Figure], broken: Sequence[Broken]) -> str:
    """A comment for a pull request: what differs, the limits, and all figures folded."""
    def rows(chosen: Sequence[Figure]) -> list[str]:
        lines = [TITLES, ["---"] + ["--:"] * 5 + ["---"], *(map(_escaped, row_of(one)) for one in chosen)]
        return [f"| {' | '.join(line)} |" for line in lines]

    changed = [one for one in figures if one.verdict in ("higher", "lower", "undecided")]
    lines = [f"**hypermon compare: {overall(broken)}**, {len(changed)} of {len(figures)} figures differ", ""]
    lines += [f"- {_escaped(line)}" for line in sentences(broken)] + [""] * bool(broken)
    lines += [*rows(changed), ""] if changed else []
    return "\n".join([*lines, f"<details><summary>All {len(figures)} figures</summary>", "", *rows(figures), "",
                      "</details>", ""])


def _escaped(text: str) -> str:
    for character in "\\`*_|<>":
        text = text.replace(character, f"\\{character}")
    return text
