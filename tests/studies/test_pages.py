"""The committed pages of the studies: text of their templates, rows of their claims, and only drawings that they show.

Their tables are a build product of `make paper` and `make machines`, so that a page cannot be made anew here.
"""

import re
from pathlib import Path
from string import Formatter

import pytest
from hypermon.studies.ipsc.paper.claims import NOT_REPRODUCED, PARAMETERS
from hypermon.studies.machine.page.page import all_rows
from hypermon.studies.machine.page.rows import CLASSES, Data

ROOT = Path(__file__).parents[2]
PAPER, MACHINES = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("paper", "machines"))
TEMPLATES = {"paper": ROOT / "studies" / "ipsc" / "paper" / "page.md",
             "machines": ROOT / "studies" / "machine" / "page" / "page.md"}


def literals(template: str) -> list[str]:
    """The text between the values of a template; empty at the end if it ends with a value."""
    parts = list(Formatter().parse(template))
    return [*(text for text, *_ in parts if text), *([""] if parts[-1][1] else [])]


def missing(texts: list[str], page: str) -> list[str]:
    """Texts that do not follow one another on the page; the first begins it and the last ends it."""
    at, lacking = 0, []
    for text in texts[:-1]:
        found = page.find(text, at)
        if found < 0 or (text == texts[0] and found):
            lacking.append(text)
        else:
            at = found + len(text)
    return lacking if page[at:].endswith(texts[-1]) else [*lacking, texts[-1]]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_page_has_the_text_of_its_template(name):
    assert missing(literals(TEMPLATES[name].read_text()), (ROOT / "docs" / f"{name}.md").read_text()) == []


def test_a_text_that_was_changed_is_found():
    template = "It took {minutes} minutes.\n\n{table}\n\nThe end.\n"
    assert missing(literals(template), "It took 3 minutes.\n\n| a |\n\nThe end.\n") == []
    assert missing(literals(template), "It took 3 minutes.\n\n| a |\n\nThe End.\n") == ["\n\nThe end.\n"]
    assert missing(literals(template), "It took 3 hours.\n\n| a |\n\nThe end.\n") == [" minutes.\n\n"]
    assert missing(literals(template), "It took 3 minutes.\n\n| a |\n\nThe end.\nMore.\n") == ["\n\nThe end.\n"]


def test_the_paper_has_a_row_for_each_parameter_and_each_figure_that_is_not_reproduced():
    for parameter in PARAMETERS:
        assert f"| {parameter.what} | {parameter.values} | " in PAPER
    for what, why in NOT_REPRODUCED:
        assert re.search(rf"^\| {re.escape(what)} \| .* \| {re.escape(why)} \|$", PAPER, re.M), what


def test_the_machines_have_a_row_for_each_figure_with_its_class_and_tolerance():
    rows = [row for own in all_rows(Data({"made": []})).values() for row in own]
    assert len(rows) > 60
    for row in rows:
        cells = (cell.replace("|", "/") for cell in (row.what, row.paper, row.kind, row.accept))
        assert f"\n| {' | '.join(cells)} | " in MACHINES, row.what
    assert all(f"| **{kind}** | {meaning} | " in MACHINES for kind, meaning in CLASSES.items())


@pytest.mark.parametrize("name", TEMPLATES)
def test_only_drawings_that_the_page_shows_are_committed(name):
    shown = set(re.findall(rf"\]\({name}/([^)]+)\)", (ROOT / "docs" / f"{name}.md").read_text()))
    assert {path.name for path in (ROOT / "docs" / name).iterdir()} == shown
