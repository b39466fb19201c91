"""Each promise of docs/promises.md is held by a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "promises.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises(text):
    """Rows of the page's tables: what is promised, and the tests, as file and name."""
    rows = [line.strip("|").rsplit("|", 1) for line in text.splitlines() if line.startswith("|")]
    return [(promise.strip(), _TEST.findall(tests)) for promise, tests in rows
            if promise.strip() != "promise" and not set(promise) <= {"-", " "}]


@cache
def names_in(file):
    """Names of the tests in a file: functions, and names that something else gives tests to, as proofs do."""
    names = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in names if name.startswith("test_")}


def missing(text):
    """What is wrong with the page, a line each."""
    wrong = []
    for promise, tests in promises(text):
        if not tests:
            wrong.append(f"no test holds it: {promise}")
        wrong += [f"{file} has no {name}: {promise}" for file, name in tests
                  if not (ROOT / file).is_file() or name not in names_in(file)]
    return wrong


def test_each_promise_has_tests_that_exist():
    assert missing(PAGE.read_text()) == []
    assert len(promises(PAGE.read_text())) > 50


def test_everything_in_the_second_column_is_a_test():
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| promise", "| ---")):
            column = line.strip("|").rsplit("|", 1)[1]
            assert re.sub(_TEST, "", column).strip(" ,") == "", line


@pytest.mark.parametrize(("row", "said"), [
    ("| It is so. | |", "no test holds it: It is so."),
    ("| It is so. | `tests/test_promises.py::test_nothing` |", "tests/test_promises.py has no test_nothing: It is so."),
    ("| It is so. | `tests/no_file.py::test_nothing` |", "tests/no_file.py has no test_nothing: It is so."),
    ("| It is so. | `tests/test_promises.py::missing` |", "tests/test_promises.py has no missing: It is so.")])
def test_a_promise_without_one_is_noticed(row, said):
    assert missing(f"| promise | held by |\n| --- | --- |\n{row}\n") == [said]
