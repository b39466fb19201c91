"""Verdicts for people and for programs: a table, JSON, and a JUnit file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from hypermon.host.analysis.stats import duration_text
from hypermon.host.contracts.judged import Judged, Place, time_text
from hypermon.host.text.printable import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["STATUS", "as_dict", "junit", "overall", "print_verdicts", "verdict_lines"]

#: Exit statuses of `hypermon check` with rules.
STATUS = {"pass": 0, "fail": 1, "undecided": 4}
_COLOURS = {"pass": "green", "fail": "red", "undecided": "yellow"}
#: Where `hypermon view RUN` shows a time; and how much of the time around it.
_VIEW, _AROUND_PS = "http://127.0.0.1:8019/", 100 * 10**6
#: The kinds of rules whose measured times begin at the place.
_FROM_PLACE = ("response", "absence", "duration", "together")


def overall(judged: Sequence[Judged]) -> str:
    """The verdict on all rules: ``fail`` if one fails, else ``undecided`` if one is undecided, else ``pass``."""
    verdicts = {one.verdict for one in judged}
    return next((verdict for verdict in ("fail", "undecided") if verdict in verdicts), "pass")


def as_dict(judged: Sequence[Judged], reasons: bool = False) -> dict[str, Any]:
    """The output of `hypermon check RUN RULES --json`.

    Parameters
    ----------
    reasons : adds the notes on each rule, and for each place whether the rule is violated there, what was measured, or
        else why that is not decided.
    """
    return {"verdict": overall(judged), "rules": [
        {"name": one.rule.name, "kind": one.rule.kind, "verdict": one.verdict, "instances": one.instances,
         "failed": one.failed, "undecided": one.undecided, "worst_ps": one.worst_ps,
         "where": [{"time_ps": place.time_ps, "node": place.node, **(
             {"failed": place.failed, "why": place.why, "value_ps": place.value_ps} if reasons else {})}
                   for place in one.where],
         **({"notes": list(one.notes)} if reasons else {})} for one in judged]}


def _link(one: Judged, place: Place) -> str:
    """The address at which `hypermon view` shows a place: with the time that was measured, if it is one from there."""
    took = place.value_ps if one.rule.kind in _FROM_PLACE else None
    span, end = (_AROUND_PS, "") if not took else (_AROUND_PS + took, f"&b={place.time_ps + took}")
    return f"{_VIEW}#from={place.time_ps - _AROUND_PS // 2}&span={span}&a={place.time_ps}{end}"


def _counts(one: Judged) -> str:
    """How many places there are; a loss is a place, and may be none of the instances."""
    return (f"{one.failed:,} violated and {one.undecided:,} undecided {_plural('place', one.failed + one.undecided)}, "
            f"{one.instances:,} {_plural('instance', one.instances)}")


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _more(one: Judged) -> str | None:
    """How many places are not listed."""
    listed = sum(place.failed for place in one.where)
    failed, undecided = one.failed - listed, one.undecided - (len(one.where) - listed)
    left = [f"{count:,} {what}" for count, what in ((failed, "violated"), (undecided, "undecided")) if count > 0]
    return f"and {' and '.join(left)} {_plural('place', max(failed, 0) + max(undecided, 0))} more" if left else None


def _reasons(one: Judged) -> list[str]:
    """Notes, and what would decide the rule, each once."""
    return list(dict.fromkeys([*one.notes, *(place.why for place in one.where if not place.failed)]))


def verdict_lines(one: Judged) -> list[str]:
    """The verdict on a rule in lines: its name and kind, notes, and its first places with the reasons."""
    return [f"{visible(one.rule.name)} ({one.rule.kind}): {one.verdict}; {_counts(one)}",
            *(f"  {visible(note)}" for note in one.notes),
            *(f"  {time_text(place.time_ps)}  node {place.node}  {visible(place.why)}" for place in one.where),
            *(f"  {more}" for more in [_more(one)] if more)]


def print_verdicts(judged: Sequence[Judged], run: Path, console: "Console") -> None:
    """Prints a table of rules; then for each rule that fails or is undecided, where and why."""
    from hypermon.host.text.console import cell
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("rule", "kind", "verdict"):
        table.add_column(title)
    for title in ("instances", "failed", "undecided", "worst"):
        table.add_column(title, justify="right")
    table.add_column("first at")
    for one in judged:
        worst = "" if one.worst_ps is None else duration_text(one.worst_ps) if one.worst_ps >= 0 else "before"
        first = f"{time_text(one.where[0].time_ps)}, node {one.where[0].node}" if one.where else ""
        table.add_row(cell(one.rule.name), one.rule.kind, f"[{_COLOURS[one.verdict]}]{one.verdict}",
                      f"{one.instances:,}", f"{one.failed:,}", f"{one.undecided:,}", worst, first)
    console.print(table)
    for one in judged:
        if one.verdict == "pass" and not one.notes:
            continue
        console.print("", cell(f"{one.rule.name}: {one.verdict}"), sep="\n")
        for note in one.notes:
            console.print(cell(f"  {note}"))
        for place in one.where:
            console.print(cell(f"  {time_text(place.time_ps)}  node {place.node}  {place.why}  {_link(one, place)}"))
        if (more := _more(one)) is not None:
            console.print(f"  {more}")
    if any(one.where for one in judged):
        console.print("", cell(f"The addresses open the timeline while this runs: hypermon view {run}"), sep="\n")


def junit(judged: Sequence[Judged], run: Path) -> bytes:
    """The contents of a JUnit file: a test case for each rule; an undecided one is an error."""
    suite = ElementTree.Element("testsuite", name=f"hypermon check {visible(str(run))}", tests=str(len(judged)),
                                failures=str(sum(one.verdict == "fail" for one in judged)),
                                errors=str(sum(one.verdict == "undecided" for one in judged)))
    for one in judged:
        case = ElementTree.SubElement(suite, "testcase", classname=f"hypermon.{one.rule.kind}",
                                      name=visible(one.rule.name))
        if one.verdict == "pass":
            continue
        what = ElementTree.SubElement(case, "failure" if one.verdict == "fail" else "error", type=one.verdict,
                                      message=_counts(one))
        what.text = visible("; ".join(_reasons(one))) + "\n" + "\n".join(
            f"{time_text(place.time_ps)} node {place.node}: {visible(place.why)}" for place in one.where)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite) + b"\n"
