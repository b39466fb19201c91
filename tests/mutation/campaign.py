"""The mutation campaign: do the project's tests notice when the gateware is broken?

``make mutation`` changes one place of the capture path's sources at a time (:mod:`mutants`), in a copy of
the repository, and runs tests there until one fails: the benches of that stage, then the proofs about it,
then tests of whole boards. Verdicts go to a journal under ``.build/mutation`` as they come: what has been
cut off goes on where it was. See docs/verification.md.
"""

import argparse
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import queue
import re
import runpy
import select
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

# What tests import and no mutant changes, once for all.
import amaranth.back.verilog
import amaranth.sim  # noqa: F401
import cocotb_tools.runner  # noqa: F401
import numpy as np  # noqa: F401
import pytest
from mutants import Mutant, shares, shuffled, stages
from steps import Step, benches, boards, proofs, whole

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".build" / "mutation"
#: Survivors that nobody could notice, and why: by key of the mutant.
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
_PARTS = ("boards", "hdl", "host", "sim", "tests", "pyproject.toml")
#: Seconds that a proof is given for an answer.
PROOF = 120


class Tree:
    """A copy of the sources in which mutants are tried, one at a time."""

    def __init__(self) -> None:
        self.folder = folder = self._free()
        self._times = itertools.count(1)
        for part in _PARTS:
            old, new = ROOT / part, folder / part
            if old.is_dir():
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(old, new, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        # Found before the editable install, which points to the repository itself.
        package = folder / ".path" / "hypermon"
        package.mkdir(parents=True, exist_ok=True)
        for part in ("boards", "hdl", "host", "sim"):
            if not (package / part).exists():
                (package / part).symlink_to(folder / part)
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / ".path"), "COLUMNS": "160",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPERMON_BUILD": "quick",
            "HYPERMON_CACHE": str(folder / ".build"), "HYPERMON_PATIENCE": str(PROOF)}
        self.unbroken = self.elaborated()
        assert self.unbroken, "the gateware does not elaborate"

    def _free(self) -> Path:
        """The first folder that no other process uses; it is this one's from now on."""
        for k in itertools.count():
            self._lock = (BUILD / f"tree-{k}.lock").open("w")
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return BUILD / f"tree-{k}"
        raise AssertionError

    @contextlib.contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """The tree with that mutant; what was built of it is removed."""
        path = self.folder / "hdl" / mutant.file
        text = path.read_text()
        before = set(self._built())
        path.write_text(mutant.applied(text))
        # A time that it never had: byte code is kept by time in seconds and size.
        os.utime(path, (next(self._times),) * 2)
        try:
            yield
        finally:
            path.write_text(text)
            for found in set(self._built()) - before:
                shutil.rmtree(found) if found.is_dir() else found.unlink(missing_ok=True)

    def _built(self) -> Iterator[Path]:
        for folder in (self.folder / ".build", self.folder / ".build" / "cocotb"):
            if folder.exists():
                yield from (p for p in folder.iterdir() if not p.name.startswith(("runtime", "headers", "cocotb")))

    def elaborated(self) -> str | None:
        """A hash of what the gateware elaborates to; None if it does not."""
        def elaborate() -> int:
            runpy.run_path("tests/mutation/probe.py", run_name="__main__")
            return 0
        status, said = self._apart(elaborate, 300)
        return said.strip() if status == 0 else None

    def _apart(self, work: Callable[[], int], seconds: float) -> tuple[int | None, str]:
        """Does something in the tree, in a process of its own that has imported what takes long; returns its status,
        None if it did not end in time, and what it said."""
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if not child:
                status = 99
                with contextlib.suppress(BaseException):
                    os.setsid()
                    os.chdir(self.folder)
                    os.environ.update(self.environment)
                    sys.path[0:1] = [str(self.folder / ".path"), str(self.folder)]
                    sys.stdout = sys.stderr = said
                    for stream in (1, 2):
                        os.dup2(said.fileno(), stream)
                    status = int(work())
                    said.flush()
                os._exit(status)
            watched = os.pidfd_open(child)
            ended, _, _ = select.select([watched], [], [], seconds)
            os.close(watched)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            return os.waitstatus_to_exitcode(status) if ended else None, said.read()

    def run(self, step: Step, first: Sequence[str] = ()) -> tuple[str | None, str]:
        """Runs the tests of a step, some of them first, until one fails: which (None if all have passed), and why."""
        options = ["-x", "-q", "-o", "addopts=-rfE", "-p", "no:cacheprovider", "-m", "not slow",
                   f"--basetemp={self.folder / '.tmp'}", *first, *shlex.split(step.arguments)]
        status, said = self._apart(lambda: pytest.main(options), step.seconds)
        if status is None:
            return (None, "no answer") if step.proof else (step.name, "does not end")
        if status == 0:
            return None, ""
        if status not in (1, 2):
            raise RuntimeError(f"pytest {step.arguments} ended with {status}:\n{said[-2000:]}")
        # A proof counts if there is a counterexample, not if it could not be begun or found none in time.
        if step.proof and [line.split()[1:3] for line in said.splitlines() if line.startswith(">")] != [
                ["assert", "holds(proved[name](),"]] and not re.search(r"^E .* = holds\(", said, re.MULTILINE):
            return None, "no answer"
        found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - (.*))?$", said, re.MULTILINE)
        return (found[1], (found[2] or "")[:160]) if found else (step.name, said[-160:])


class Campaign:
    """Tries mutants and keeps the journal."""

    def __init__(self, count: int, seed: int, jobs: int, verbose: bool):
        self.verbose, self.jobs = verbose, jobs
        self.journal = BUILD / f"seed-{seed}.jsonl"
        texts = {name: (ROOT / "hdl" / name).read_text() for name in stages(ROOT / "hdl")}
        self.texts = {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in texts.items()}
        self.drawn = {name: shuffled(name, text, seed) for name, text in texts.items()}
        self.wanted = shares({name: len(found) for name, found in self.drawn.items()}, count)
        self.rows = {(row["key"], row["text"]): row for row in _lines(self.journal)}
        #: Tests that are known to pass on the unbroken tree.
        self.sound = {row["test"]: row["key"] for row in _lines(BUILD / "sound.jsonl")}
        #: How often which test of a step has killed a mutant of a file.
        self.kills: dict[tuple[str, str], Counter] = defaultdict(Counter)
        for row in self.rows.values():
            self._learn(row)
        self.lock = threading.Lock()

    def row(self, mutant: Mutant) -> dict:
        """What is known of a mutant of the present text."""
        text = self.texts[mutant.file]
        new = {"key": mutant.key, "text": text, "file": mutant.file, "said": str(mutant), "verdict": "to do", "met": {}}
        return self.rows.get((mutant.key, text), new)

    def chosen(self, name: str) -> list[Mutant]:
        """Those of a file that are to be tried, as far as it is known which are stillborn."""
        alive = (m for m in self.drawn[name] if self.row(m)["verdict"] != "stillborn")
        return list(itertools.islice(alive, self.wanted[name]))

    def _learn(self, row: dict) -> None:
        if row["verdict"] == "killed":
            self.kills[row["file"], row["step"]][row["by"]] += 1

    def _write(self, row: dict) -> None:
        with self.lock:
            self.rows[row["key"], row["text"]] = row
            self._learn(row)
            with self.journal.open("a") as file:
                print(json.dumps(row), file=file)
        if self.verbose:
            print(f"{row['said']}: {row['verdict']} in {row['seconds']} s  {row.get('by', '')} {row.get('why', '')}",
                  flush=True)

    def _sound(self, step: Step, by: str, tree: Tree) -> None:
        """Sees that a test which kills for the first time passes on the unbroken tree; `make formal` does of proofs."""
        key = step.key(tree.folder)
        if step.proof or self.sound.get(by) == key:
            return
        failed, why = tree.run(replace(step, arguments=shlex.quote(by) if "::" in by else step.arguments))
        if failed:
            raise RuntimeError(f"{by} does not pass on the unbroken tree: {why}")
        with self.lock:
            self.sound[by] = key
            with (BUILD / "sound.jsonl").open("a") as file:
                print(json.dumps({"test": by, "key": key}), file=file)

    # ------------------------------------------------------------------------------------ rounds

    def run(self, only: list[str], last: int) -> None:
        """Three rounds: all mutants meet benches before the first meets a proof, and proofs before whole boards."""
        trees: queue.Queue[Tree] = queue.Queue()
        for _ in range(self.jobs):
            trees.put(Tree())
        # Whole boards take longest.
        names = sorted(self.drawn, key=lambda name: whole(name.removesuffix(".py")))
        for kind in range(last):
            with ThreadPoolExecutor(self.jobs) as pool:
                list(pool.map(lambda name, kind=kind: self._file(name, kind, only, trees), names))

    def _file(self, name: str, kind: int, only: list[str], trees: queue.Queue) -> None:
        """Tries the mutants of a file; another is drawn for one that is stillborn."""
        tree = trees.get()
        try:
            tried: set[str] = set()
            while left := [m for m in self.chosen(name) if m.key not in tried]:
                tried.add(left[0].key)
                if not only or any(text in f"{left[0]} {left[0].key}" for text in only):
                    self._meet(left[0], kind, tree)
        finally:
            trees.put(tree)

    def _meet(self, mutant: Mutant, kind: int, tree: Tree) -> None:
        row = self.row(mutant)
        if row["verdict"] in ("killed", "stillborn"):
            return
        steps = [s for s in (benches, proofs, boards)[kind](mutant.file.removesuffix(".py"))
                 if row["met"].get(s.name) != s.key(tree.folder)]
        if not steps and row["verdict"] != "to do":
            return
        steps.sort(key=lambda s: -self.kills[mutant.file, s.name].total())
        began = time.monotonic()
        row = row | {"verdict": "survived", "met": dict(row["met"]), "why": ""}
        new = not row["met"]
        with tree.broken(mutant):
            for step in steps:
                before = [by for by, _ in self.kills[mutant.file, step.name].most_common(3) if "::" in by]
                by, row["why"] = tree.run(step, before if not step.proof else ())
                if by:
                    row |= {"verdict": "killed", "by": by, "step": step.name}
                    break
                row["met"][step.name] = step.key(tree.folder)
            # Whoever breaks an assertion has been elaborated, and is not what it was.
            if new and not row["why"].startswith("Assert") and tree.elaborated() in (None, tree.unbroken):
                row["verdict"] = "stillborn"
        if row["verdict"] == "killed":
            self._sound(step, row["by"], tree)
        row["seconds"] = round(row.get("seconds", 0) + time.monotonic() - began, 1)
        self._write(row)


def _lines(path: Path) -> list[dict]:
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):       # cut off in the middle
            rows.append(json.loads(line))
    return rows


# ------------------------------------------------------------------------------------------ report

def report(campaign: Campaign) -> Iterator[str]:
    """Scores by stage, and the survivors, with the reason of those that nobody could notice."""
    reasons = tomllib.loads(EQUIVALENT.read_text())
    total: Counter = Counter()
    survivors = []
    yield "| stage | mutants | killed | survived | of these equivalent | score | without these |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"

    def line(name: str, found: Counter) -> str:
        done = found["killed"] + found["survived"]
        scores = [f"{100 * found['killed'] / n:.1f} %" if n else "" for n in (done, done - found["equivalent"])]
        return " | ".join([f"| {name} | {done}", *(str(found[k]) for k in ("killed", "survived", "equivalent")),
                           *scores, ""]).rstrip(" ")

    for name in campaign.drawn:
        found: Counter = Counter()
        for mutant in campaign.chosen(name):
            verdict = campaign.row(mutant)["verdict"]
            reason = reasons.get(mutant.key) if verdict == "survived" else None
            found.update([verdict, *(["equivalent"] if reason else [])])
            if verdict == "survived":
                survivors.append(f"| `{mutant}` | {mutant.key} | {reason or ''} |")
        total += found
        if found["killed"] + found["survived"]:
            yield line(name.removesuffix(".py"), found)
    yield line("all", total)
    yield from ("", "| survivor | key | why nobody could notice |", "| --- | --- | --- |", *survivors, "")
    yield f"{total['to do']} are still to do"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutants in all, at least (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time (default: cores)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only those with that in the name")
    parser.add_argument("--rounds", type=int, choices=(1, 2, 3), default=3,
                        help="1: benches alone; 2: proofs, too; 3: whole boards, too (default)")
    parser.add_argument("--report", action="store_true", help="say what is known, run nothing")
    parser.add_argument("--verbose", action="store_true", help="say every verdict")
    args = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(args.count, args.seed, args.jobs, args.verbose or bool(args.only))
    if not args.report:
        campaign.run(args.only, args.rounds)
    print("\n".join(report(campaign)))


if __name__ == "__main__":
    main()
