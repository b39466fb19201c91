"""The list of tests that only `make test-all` runs."""

import pytest

from .conftest import STALE
from .long_tail import LongTail, proposed

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
