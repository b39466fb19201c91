"""The list of tests that only `make test-all` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import STALE
from .long_tail import LongTail, proposed, share

TESTS = [("a/test_a.py", name) for name in ("test_one", "test_two[x-1]", "test_two[x-2]", "test_two[y-1]", "test_twos")]


@pytest.fixture
def tail(tmp_path):
    """Writes a list beside two files of tests, and reads it."""
    (tmp_path / "a").mkdir()
    for file in ("a/test_a.py", "test_b.py"):
        (tmp_path / file).touch()

    def read(*lines: str) -> LongTail:
        (tmp_path / "long.txt").write_text("\n".join(lines))
        return LongTail(tmp_path / "long.txt")

    return read


@pytest.mark.parametrize(("line", "listed"), [
    ("a/test_a.py::test_one", ["test_one"]),
    ("a/test_a.py::test_two", ["test_two[x-1]", "test_two[x-2]", "test_two[y-1]"]),
    ("a/test_a.py::test_two[x-*]  # minutes", ["test_two[x-1]", "test_two[x-2]"]),
    ("a/test_a.py::test_two[*-1]", ["test_two[x-1]", "test_two[y-1]"]),
    ("a/test_a.py::test_two[x.1]", []),
    ("a/test_a.py", [name for _, name in TESTS]),
    ("# a/test_a.py", []),
    ("test_b.py", []),
])
def test_a_line_lists(tail, line, listed):
    read = tail("", line)
    assert [name for file, name in TESTS if read.has(file, name)] == listed


def test_a_file_that_does_not_exist_is_refused(tail):
    with pytest.raises(ValueError, match=r"long\.txt:2: there is no tests/a/test_c\.py"):
        tail("a/test_a.py", "a/test_c.py::test_one")


def test_a_stale_line_is_told(tail):
    """If its file was collected."""
    read = tail("a/test_a.py::test_three", "a/test_a.py::test_two[x-*]", "a/test_a.py::test_two[z-*]",
                "test_b.py::test")
    assert [line.rpartition("long.txt:")[2] for line in read.stale(TESTS)] == [
        f"{number}: no test of tests/a/test_a.py is called that" for number in (1, 3)]


def test_every_line_names_a_test(pytestconfig):
    assert pytestconfig.stash[STALE] == []


def test_lines_are_proposed():
    """All tests of a function by its name; of each file, one test stays."""
    times = {"tests/a.py::test_one": 0.1, "tests/a.py::test_two[1]": 2.0, "tests/a.py::test_two[2]": 3.0,
             "tests/a.py::test_three[1]": 0.2, "tests/a.py::test_three[2]": 9.0,
             "tests/b.py::test_one": 4.0, "tests/b.py::test_two": 5.0, "tests/c.py::test_one": 30.0}
    assert proposed(times, 1.0, 8.0) == ["a.py::test_three[2]", "a.py::test_two", "b.py::test_two", "c.py::test_one"]


def test_every_file_is_in_one_share():
    files = [f"tests/{folder}/test_{name}.py" for folder in "abc" for name in "defghij"]
    shares = [share(reversed(files * 2), f"{number}/4") for number in (1, 2, 3, 4)]
    assert sorted(file for one in shares for file in one) == files
    assert all(sum(file.startswith(f"tests/{folder}/") for file in one) in {1, 2} for one in shares for folder in "abc")


@pytest.mark.parametrize("asked", ["", "2", "0/4", "5/4", "a/b", "1/0"])
def test_what_is_no_share(asked):
    with pytest.raises(ValueError, match="is no share: 2/4 is the second of four"):
        share(["a"], asked)


def test_pytest_runs_a_share():
    """Of the tests that are wanted: files without any are not counted."""
    def collected(number):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", f"--share={number}/2",
             "-k", "not citation", "tests/test_citation.py", "tests/test_long_tail.py", "tests/test_patience.py",
             "tests/test_readme.py"],
            cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
        return {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}

    assert collected(1) == {"tests/test_long_tail.py", "tests/test_readme.py"}
    assert collected(2) == {"tests/test_patience.py"}
