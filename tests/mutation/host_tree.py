"""A copy of the sources in which mutants of the host are tried, and the record of which tests call what of it."""

import hashlib
import json
import os
import re
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# What tests of the host import and no mutant changes; see tree.py.
import aiohttp.web  # noqa: F401
import click.testing  # noqa: F401
import duckdb  # noqa: F401
import hypothesis.strategies  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
import rich.table  # noqa: F401
from steps import Step
from tree import BUILD, ROOT, Tree

__all__ = ["HOST", "HostTree", "Reach", "files", "test_files"]

HOST = ROOT / "host"
_WATCH = Path("tests", "mutation", "watch")
#: Seconds that the tests of a file may take while they are watched.
_WATCHED_S = 900
#: Folders of tests that are not about the host, but may use it, and how.
_ELSEWHERE = ("boards", "node", "sim", "studies", "e2e")
_USES = re.compile(r"hypermon\.host(?!\.errors)\b")
#: Plug-ins for sigrok: another program runs them.
_FOREIGN = ("sigrok",)


def files(folder: Path = HOST) -> list[str]:
    """The sources of the host, by their paths in the folder."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*.py")))
    return [path.as_posix() for path in found if path.parts[0] not in _FOREIGN]


def test_files() -> list[str]:
    """The files of tests that are about the host, then those elsewhere that use more of it than its errors."""
    tests = ROOT / "tests"
    own = sorted((tests / "host").rglob("test_*.py"))
    others = (path for folder in _ELSEWHERE for path in sorted((tests / folder).glob("test_*.py"))
              if _USES.search(path.read_text()))
    return [path.relative_to(ROOT).as_posix() for path in (*own, *others)]


class HostTree(Tree):
    """A copy of the sources in which mutants of the host are tried, one at a time."""

    source = "host"
    _parts = (*Tree._parts, "docs", "examples", "requirements", "CHANGELOG.md", "LICENSE", "Makefile", "README.md")
    _name = "host-tree"

    def __init__(self) -> None:
        super().__init__()
        # Virtual boards are built of other sources than the mutants': each is kept.
        self.environment["HYPERMON_CACHE"] = os.environ.get("HYPERMON_CACHE") or str(BUILD / "boards")

    def _unbroken(self) -> str:
        return ""

    def _ended_early(self, status: int, said: str) -> str:
        if status < 0:
            return f"ended by signal {-status}"
        return "conftest.py cannot be imported" if "while loading conftest" in said else ""

    def watched(self, tests: str) -> tuple[dict, dict]:
        """Runs a file of tests and returns seconds and success of each test, and which tests call which function:
        by file of the host and qualified name."""
        record = self.folder / "reached.jsonl"
        record.unlink(missing_ok=True)
        watch = str(self.folder / _WATCH)
        changed = {"HYPERMON_REACHED": str(record), "PYTHONPATH": f"{watch}:{self.folder / '.path'}"}

        def work() -> int:
            sys.path.insert(0, watch)
            return pytest.main(["-q", "-p", "reached", "-p", "no:cacheprovider", "-m", "not slow and not formal",
                                "-o", "addopts=", f"--basetemp={self.folder / '.tmp'}", tests])

        usual, self.environment = self.environment, self.environment | changed
        try:
            self._apart(work, _WATCHED_S)
        finally:
            self.environment = usual
        ran, calls = self._read(record)
        # Some cannot pass while they are watched, because that is slow.
        failed = [test for test, (_, passed) in ran.items() if not passed]
        if failed and self.run(Step(shlex.join(failed), seconds=_WATCHED_S))[0] is None:
            ran |= {test: [ran[test][0], True] for test in failed}
        return ran, calls

    @staticmethod
    def _read(record: Path) -> tuple[dict, dict]:
        ran: dict[str, list] = {}
        calls: defaultdict = defaultdict(lambda: defaultdict(set))
        for test, second, third in _lines(record):
            test = _function(test)
            if isinstance(second, str):
                calls[second][_named(third)].add(test)
            else:
                seconds, passed = ran.get(test, (0, True))
                ran[test] = [round(seconds + second, 3), passed and third]
        # What is called when a file of tests is read concerns all of its tests.
        return ran, {file: {name: sorted(ran if "" in who else who) for name, who in named.items()}
                     for file, named in calls.items()}


def _lines(path: Path) -> Iterator[list]:
    for line in path.read_text().splitlines() if path.exists() else ():
        yield json.loads(line)


def _function(test: str) -> str:
    """A test without its parameters."""
    return test.partition("[")[0]


def _named(name: str) -> str:
    """The function that a lambda or a comprehension is in."""
    return re.sub(r"(\.<locals>)?\.?<(lambda|\w+comp|genexpr)>.*$", "", name) or "<module>"


@dataclass
class Reach:
    """Which tests call which function of the host, and how long they take: measured once for each file of tests.

    Members
    -------
    seconds : of each test, by ``file::function``.
    passed : tests that passed on the unbroken tree.
    calls : tests, by file of the host and qualified name of the function.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    calls: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    @classmethod
    def measured(cls, tree: HostTree | None, tell=print) -> "Reach":
        """What the record has; what it has not is measured in the tree, if there is one."""
        journal, found = BUILD / "reach.jsonl", cls()
        known = {(row["tests"], row["key"]): row for row in _lines(journal)}
        shape = hashlib.sha256("\n".join(files()).encode())
        for tests in test_files():
            digest = shape.copy()
            digest.update((ROOT / tests).read_bytes())
            key = digest.hexdigest()[:12]
            row = known.get((tests, key))
            if row is None and tree is not None:
                ran, calls = tree.watched(tests)
                row = {"tests": tests, "key": key, "ran": ran, "calls": calls}
                with journal.open("a") as file:
                    print(json.dumps(row), file=file)
                tell(f"{tests}: {len(ran)} tests, {sum(s for s, _ in ran.values()):.1f} s, "
                     f"{sum(not p for _, p in ran.values())} fail", flush=True)
            if row is not None:
                found._add(row)
        return found

    def _add(self, row: dict) -> None:
        for test, (seconds, passed) in row["ran"].items():
            self.seconds[test] = seconds
            if passed:
                self.passed.add(test)
        for file, named in row["calls"].items():
            there = self.calls.setdefault(file, {})
            for name, tests in named.items():
                there.setdefault(name, set()).update(test for test in tests if test in row["ran"])

    def of_function(self, file: str, name: str) -> list[str]:
        """Tests that call a function and pass without a mutant, the most promising first."""
        return self._promising(file, self.calls.get(file, {}).get(name, ()))

    def of_file(self, file: str) -> list[str]:
        """Tests that call anything of a file and pass without a mutant, the most promising first."""
        return self._promising(file, {test for tests in self.calls.get(file, {}).values() for test in tests})

    def _promising(self, file: str, tests: Collection[str]) -> list[str]:
        """Those first that are fast, and in a file of tests that calls much of the mutant's file: it is about that."""
        functions = self.calls.get(file, {}).values()
        about = Counter(name for callers in functions for name in {test.partition("::")[0] for test in callers})
        return sorted(self.passed.intersection(tests), key=lambda test: (
            (self.seconds[test] + 0.1) / about[test.partition("::")[0]] ** 2, test))

    def of_files(self, names: Collection[str]) -> list[str]:
        """Tests of these files that pass without a mutant, the fastest first."""
        found = (test for test in self.passed if test.partition("::")[0] in names)
        return sorted(found, key=lambda test: (self.seconds[test], test))


if __name__ == "__main__":
    BUILD.mkdir(parents=True, exist_ok=True)
    reach = Reach.measured(HostTree())
    print(shlex.join(sorted(set(reach.seconds) - reach.passed)))
