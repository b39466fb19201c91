"""The mutation campaign: do the project's tests notice when the gateware is broken?

``make mutation`` changes one place of the capture path's sources at a time (:mod:`mutants`), in a copy of
the repository, and runs tests there until one fails: the benches of that stage, then the proofs about it,
then tests of whole boards. Verdicts go to a journal under ``.build/mutation`` as they come: what has been
cut off goes on where it was. See docs/develop/verification.md.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import queue
import shlex
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from mutants import LEAST, Finder, Mutant, shares, shuffled, source, stages
from steps import Step, benches, boards, proofs, whole
from tree import BUILD, ROOT, Tree

__all__ = ["Campaign", "Gateware", "main", "report"]


class Gateware:
    """What is broken, and which tests must notice: the stages of the capture path.

    Members
    -------
    folder : of the sources.
    journal : name of the journal, before the seed.
    equivalent : survivors that nobody could notice, and why: by key of the mutant.
    part : what a file of it is called.
    rounds : what each of them is, for people.
    finder : of the mutants.
    least : mutants of a file.
    """

    folder = ROOT / "hdl"
    journal = "seed"
    equivalent = Path(__file__).with_name("equivalent.toml")
    part = "stage"
    rounds = ("benches alone", "proofs, too", "whole boards, too")
    finder = Finder
    least = LEAST

    def files(self) -> list[str]:
        return stages(self.folder)

    def steps(self, mutant: Mutant, kind: int) -> list[Step]:
        """What the mutant meets in a round."""
        return (benches, proofs, boards)[kind](mutant.file.removesuffix(".py"))

    def met(self, step: Step, root: Path = ROOT) -> dict[str, str]:
        """What has been met after a step, and the version of each."""
        return {step.name: step.key(root)}

    def left(self, step: Step, met: dict[str, str], root: Path) -> Step | None:
        """What is left of a step after others."""
        return None if self.met(step, root).items() <= met.items() else step

    def late(self, name: str) -> bool:
        """Does a file take longer than others?"""
        return whole(name.removesuffix(".py"))

    def tree(self) -> Tree:
        return Tree()

    def stillborn(self, tree: Tree, why: str) -> bool:
        """Is the mutant in the tree none? ``why``: what the first tests say of it."""
        # Whoever breaks an assertion has been elaborated, and is not what it was.
        return not why.startswith("Assert") and tree.elaborated() in (None, tree.unbroken)

    def sound(self, by: str) -> bool:
        """Is it known without a journal that a test passes on the unbroken tree?"""
        return False


class Campaign:
    """Tries mutants and keeps the journal."""

    def __init__(self, subject: Gateware, count: int, seed: int, jobs: int, verbose: bool):
        self.subject, self.verbose, self.jobs = subject, verbose, jobs
        self.journal = BUILD / f"{subject.journal}-{seed}.jsonl"
        texts = {name: source(subject.folder, name).read_text() for name in subject.files()}
        self.texts = {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in texts.items()}
        self.drawn = {name: shuffled(name, text, seed, subject.finder) for name, text in texts.items()}
        self.wanted = shares({name: len(found) for name, found in self.drawn.items()}, count, subject.least)
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
        if step.proof or self.subject.sound(by) or self.sound.get(by) == key:
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
        """Rounds: all mutants meet the tests of one before the first meets those of the next, which take longer."""
        trees: queue.Queue[Tree] = queue.Queue()
        for _ in range(self.jobs):
            trees.put(self.subject.tree())
        names = sorted(self.drawn, key=self.subject.late)
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
        left = (self.subject.left(s, row["met"], tree.folder) for s in self.subject.steps(mutant, kind))
        steps = [step for step in left if step is not None]
        if not steps and row["verdict"] != "to do":
            return
        steps.sort(key=lambda s: -self.kills[mutant.file, s.name].total())
        began = time.monotonic()
        row = row | {"verdict": "survived", "met": dict(row["met"]), "why": ""}
        new = not row["met"]
        with tree.broken(mutant):
            for step in steps:
                before = [by for by, _ in self.kills[mutant.file, step.name].most_common(3)
                          if "::" in by and step.has(by)]
                by, row["why"] = tree.run(step, before if not step.proof else ())
                if by:
                    row |= {"verdict": "killed", "by": by, "step": step.name}
                    break
                row["met"] |= self.subject.met(step, tree.folder)
            if new and self.subject.stillborn(tree, row["why"]):
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
    """Scores by file, and the survivors, with the reason of those that nobody could notice."""
    subject = campaign.subject
    reasons = tomllib.loads(subject.equivalent.read_text())
    total: Counter = Counter()
    survivors = []
    yield f"| {subject.part} | mutants | killed | survived | equivalent | score | score without equivalent mutants |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"

    def line(name: str, found: Counter) -> str:
        done = found["killed"] + found["survived"]
        scores = [f"{100 * found['killed'] / n:.1f} %" if n else "" for n in (done, done - found["equivalent"])]
        return " | ".join([f"| {name} | {done}", *(str(found[k]) for k in ("killed", "survived", "equivalent")),
                           *scores, ""]).rstrip(" ")

    for name in campaign.drawn:
        found: Counter = Counter()
        for mutant in campaign.chosen(name):
            row = campaign.row(mutant)
            verdict = row["verdict"]
            reason = reasons.get(mutant.key) if verdict == "survived" else None
            found.update([verdict, *(["equivalent"] if reason else [])])
            if verdict == "survived":
                steps = {what for kind in range(len(subject.rounds)) for step in subject.steps(mutant, kind)
                         for what in subject.met(step)}
                survivors.append(f"| `{mutant}` | {mutant.key} | {len(steps & row['met'].keys())} of {len(steps)} | "
                                 f"{reason or ''} |")
        total += found
        if found["killed"] + found["survived"]:
            yield line(name.removesuffix(".py"), found)
    yield line("all", total)
    yield from ("", "| survivor | key | met | why nobody could notice |", "| --- | --- | --- | --- |",
                *survivors, "")
    yield f"{total['to do']} are still to do"


def main(subject: Gateware, about: str) -> None:
    """The command: ``about`` is its first line of help."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutants in all, at least (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing (default 1)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only those with that in the name")
    rounds = range(1, len(subject.rounds) + 1)
    parser.add_argument("--rounds", type=int, choices=rounds, default=rounds[-1], help="; ".join(
        f"{k}: {what}" for k, what in zip(rounds, subject.rounds, strict=True)) + " (default)")
    parser.add_argument("--report", action="store_true", help="say what is known, run nothing")
    parser.add_argument("--verbose", action="store_true", help="say every verdict")
    args = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(subject, args.count, args.seed, args.jobs, args.verbose or bool(args.only))
    if not args.report:
        campaign.run(args.only, args.rounds)
    print("\n".join(report(campaign)))


if __name__ == "__main__":
    main(Gateware(), __doc__)
