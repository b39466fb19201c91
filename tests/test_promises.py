"""Each promise of docs/promises.md is held by a test that exists, and each strong word of other pages by a promise."""

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
            if promise.strip() not in ("promise", "statement") and not set(promise) <= {"-", " "}]


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
        if line.startswith("| ") and not line.startswith(("| promise", "| statement", "| ---")):
            column = line.strip("|").rsplit("|", 1)[1]
            assert re.sub(_TEST, "", column).strip(" ,") == "", line


@pytest.mark.parametrize(("row", "said"), [
    ("| It is so. | |", "no test holds it: It is so."),
    ("| It is so. | `tests/test_promises.py::test_nothing` |", "tests/test_promises.py has no test_nothing: It is so."),
    ("| It is so. | `tests/no_file.py::test_nothing` |", "tests/no_file.py has no test_nothing: It is so."),
    ("| It is so. | `tests/test_promises.py::missing` |", "tests/test_promises.py has no missing: It is so.")])
def test_a_promise_without_one_is_noticed(row, said):
    assert missing(f"| promise | held by |\n| --- | --- |\n{row}\n") == [said]


# ---------------------------------------------------------------------------------------- other pages

_STRONG = re.compile(r"\b(always|never|tested|verified)\b", re.IGNORECASE)
#: What says that something was not done, or only in part.
_HONEST = re.compile(r"\b(not|never) (been )?(tested|tried|run)\b|tested in simulation only", re.IGNORECASE)
_STATEMENT = re.compile(r"\| \[([\w/-]+\.md)\]\(\1\): (.+?) \| `tests/")
#: Pages that a program writes from what is elsewhere, and this one.
_WRITTEN = {"commands.md", "machines.md", "paper.md", "promises.md"}


def sentences(text):
    """The sentences of a page without its code, each in one line; a row of a table is one."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"\n\s*\n", text):
        lines = part.strip().splitlines()
        if lines and lines[0].startswith("|"):
            yield from lines
        else:
            yield from re.split(r"(?<=[.:;!?])\s+(?=[A-Z`*\[(-])", " ".join(line.strip() for line in lines))


def strong(text):
    """Sentences that promise something, without a test beside them."""
    return [sentence for sentence in sentences(text)
            if _STRONG.search(_HONEST.sub("", sentence)) and "tests/" not in sentence]


def statements():
    """The statements of the page's last table, by the name of their page."""
    found = {}
    for page, words in _STATEMENT.findall(PAGE.read_text()):
        found.setdefault(page, []).append(words)
    return found


def test_strong_words_of_other_pages_have_a_test():
    pages = [ROOT / "README.md", *sorted(PAGE.parent.glob("*.md")), *sorted((PAGE.parent / "boards").glob("*.md"))]
    held = statements()
    for page in pages:
        if page.name not in _WRITTEN:
            own = held.get(page.name, [])
            for sentence in strong(page.read_text()):
                assert any(words in sentence for words in own), f"{page.name}: no test is named for: {sentence}"


def test_each_statement_is_on_its_page():
    for page, own in statements().items():
        there = list(sentences((PAGE.parent / page).read_text()))
        for words in own:
            assert any(words in sentence for sentence in there), f"{page} does not say: {words}"


@pytest.mark.parametrize(("text", "found"), [
    ("It is fast. It never loses\nan item. It was never tried on Windows.", ["It never loses an item."]),
    ("It never loses an item (`tests/test_it.py`).", []),
    ("```\nnever\n```\n\n| a | never |\n| b | it is |", ["| a | never |"])])
def test_strong_words_are_found(text, found):
    assert strong(text) == found
