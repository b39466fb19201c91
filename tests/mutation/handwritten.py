"""Mutants that were written by hand: mistakes of the kind that a person makes.

``python tests/mutation/handwritten.py`` puts each of ``handwritten.toml`` (the gateware's) and
``handwritten-host.toml`` (the host's) into a copy of the sources and runs the tests that are named there, which must
fail; tests that are slow or proofs do not count. Verdicts go to a journal under ``.build/mutation`` as they come, under
the texts of the mutant, its file and the tests: what has been cut off goes on where it was.
"""

import argparse
import hashlib
import json
import shlex
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mutants import source
from steps import Step

__all__ = ["MUTANTS", "Handwritten", "main", "mutants"]

#: Where mutants of which folder are.
MUTANTS = {"hdl": Path(__file__).with_name("handwritten.toml"),
           "host": Path(__file__).with_name("handwritten-host.toml")}
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Handwritten:
    """One mutant.

    Parameters
    ----------
    name : for people, told once.
    file : its path in the folder, or its name alone.
    old, new : text that is there exactly once, and what it becomes.
    why : how somebody may come to write it.
    tests : arguments for pytest: those that must notice.
    folder : of sources: ``hdl`` or ``host``.
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: str
    folder: str = field(default="hdl", repr=False)      # the key has its path

    @property
    def path(self) -> str:
        return source(ROOT / self.folder, self.file).relative_to(ROOT).as_posix()

    def applied(self, text: str) -> str:
        """The file with the change.

        Raises
        ------
        ValueError
            if ``old`` is not there exactly once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.old!r} {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)

    @property
    def test_files(self) -> list[str]:
        return [word.split("::")[0] for word in shlex.split(self.tests) if word.startswith("tests/")]

    def key(self, root: Path = ROOT) -> str:
        """A hash of the mutant, of its file, and of its tests."""
        digest = hashlib.sha256(repr(self).encode())
        for path in (root / name for name in (self.path, *self.test_files)):
            for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
                digest.update(file.read_bytes())
        return digest.hexdigest()[:12]


def mutants() -> list[Handwritten]:
    return [Handwritten(**row, folder=folder) for folder, path in MUTANTS.items()
            for row in tomllib.loads(path.read_text())["mutant"]]


def _tree(folder: str):
    """A copy of the sources in which mutants of a folder are tried."""
    if folder == "host":
        from host_tree import HostTree

        return HostTree()
    from tree import Tree

    return Tree()


def _journal_folder() -> Path:
    return ROOT / ".build" / "mutation"


class _Journal:
    """Verdicts by key, and tests that are known to pass on the unbroken tree."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "handwritten.jsonl"
        rows = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []
        self.verdicts = {row["key"]: row for row in rows if "verdict" in row}
        self.sound = {(row["test"], row["key"]) for row in rows if "test" in row}

    def write(self, row: dict) -> None:
        with self.path.open("a") as file:
            print(json.dumps(row), file=file)
        if "verdict" in row:
            self.verdicts[row["key"]] = row
        else:
            self.sound.add((row["test"], row["key"]))


def _meet(mutant: Handwritten, tree, journal: _Journal) -> dict:
    """Runs its tests in the broken tree; the one that fails must pass in the unbroken one."""
    began = time.monotonic()
    step = Step(mutant.tests, seconds=600)
    with tree.broken(mutant):
        by, why = tree.run(step)
    if by:
        test = (by, step.key(tree.folder))
        if test not in journal.sound:
            failed, said = tree.run(replace(step, arguments=shlex.quote(by) if "::" in by else step.arguments))
            if failed:
                raise RuntimeError(f"{by} does not pass on the unbroken tree: {said}")
            journal.write(dict(zip(("test", "key"), test, strict=True)))
    return {"name": mutant.name, "key": mutant.key(), "verdict": "killed" if by else "survived", "by": by or "",
            "why": why, "seconds": round(time.monotonic() - began, 1)}


def _report(wanted: Iterable[Handwritten], journal: _Journal) -> int:
    """Prints what is known, and returns how many have not been killed."""
    rows = [journal.verdicts.get(mutant.key(), {"name": mutant.name, "verdict": "to do"}) for mutant in wanted]
    print("| mutant | verdict | by |\n| --- | --- | --- |")
    for row in rows:
        print(f"| {row['name']} | {row['verdict']} | {row.get('by', '')} |")
    left = sum(row["verdict"] != "killed" for row in rows)
    print(f"\n{len(rows) - left} of {len(rows)} killed")
    return left


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only those with that in the name")
    parser.add_argument("--report", action="store_true", help="say what is known, run nothing")
    args = parser.parse_args(argv)
    wanted = [m for m in mutants() if not args.only or any(text in m.name for text in args.only)]
    journal = _Journal(_journal_folder())
    todo = [] if args.report else [m for m in wanted if m.key() not in journal.verdicts]
    for folder in dict.fromkeys(mutant.folder for mutant in todo):
        tree = _tree(folder)
        for mutant in todo:
            if mutant.folder == folder:
                row = _meet(mutant, tree, journal)
                journal.write(row)
                print(f"{row['name']}: {row['verdict']} in {row['seconds']} s  {row['by']} {row['why']}", flush=True)
    return 1 if _report(wanted, journal) else 0


if __name__ == "__main__":
    sys.exit(main())
