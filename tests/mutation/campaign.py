"""The mutation campaign: do the project's tests notice when the gateware is broken?

``make mutation`` builds one simulator with all mutants of a board and lets the tests of the whole
board loose on one after the other, in a process of its own, until one fails. Verdicts go to a
journal under ``.build/mutation`` as they come: what has been cut off goes on where it was. The
journal's name is a hash of the netlist and its mutants; a survivor is tried again when a test has
changed. See docs/verification.md.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol
from hypermon.hdl.layout import Geometry, Sink
from hypermon.sim import build, virtual
from netlist import VARIABLE, Mutant, Netlist

TESTS = Path(__file__).parents[1]
BUILD = TESTS.parent / ".build" / "mutation"
#: Boards under mutation: one whose memories are soon full, with frames of two rows, and the default one;
#: and how many of 100 mutants are of it.
BOARDS = {
    "small": (Geometry(17, node_depth=8, vector_depth=32, frame_depth=16, sinks=tuple(Sink)), 40),
    "deep": (Geometry(sinks=tuple(Sink)), 60),
}
#: The tests: of the virtual board, then of the board on cocotb, which are slower.
FAST = ("hdl/test_exact.py", "sim/test_extended.py", "sim/test_items.py", "sim/test_guard.py", "sim/test_reduction.py",
        "sim/test_loss.py", "sim/test_virtual.py")
SLOW = ("hdl/test_board.py", "hdl/test_whole_board.py")
#: Names of boards in the slow tests that are replaced by the one under mutation.
ALIAS = {"small": "17", "deep": "16"}
#: A test of a mutant may take so many times as long as it does by itself, and some seconds more.
PATIENCE, GRACE = 6, 1.5


class Campaign:
    """A pytest plugin: in place of running each test once, runs them on mutants until one fails."""

    def __init__(self, board: str, netlist: Netlist, mutants: list[Mutant], journal: Path, verbose: bool):
        self.board, self.geometry = board, BOARDS[board][0]
        self.netlist, self.mutants, self.journal, self.verbose = netlist, mutants, journal, verbose
        self.library = _library(netlist)
        self.simulator: Path | None = None
        self.failed: str | None = None

    # -------------------------------------------------------------------------------- which tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._chosen(item)]

    def _chosen(self, item: pytest.Item) -> bool:
        file = item.path.name
        name = item.callspec.params.get("name") if hasattr(item, "callspec") else None
        if item.get_closest_marker("slow"):
            return False
        if file == "test_exact.py":
            return name in (self.board, None if self.board == "small" else self.board)
        if file in ("test_board.py", "test_whole_board.py"):
            return name in (ALIAS[self.board], None)
        # The others are of the default board.
        if self.board != "deep" or any(f in item.fixturenames for f in ("odd", "wide", "odd_extended")):
            return False
        return file == "test_virtual.py" or "extended" in item.fixturenames

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        slow = [item for item in items if item.path.name in ("test_board.py", "test_whole_board.py")]
        for module in {item.module for item in slow}:
            module.BOARDS = dict.fromkeys(module.BOARDS, self.geometry)
            module.board = lambda geometry, ram="portable": self._simulator()
        self._baseline(items, slow)
        kills: Counter[str] = Counter()
        for mutant in self.mutants:
            rank = {item: (item in slow, -(1 + kills[item.nodeid]) / (0.05 + self.seconds[item.nodeid]))
                    for item in items}
            began = time.monotonic()
            by, why = self._try(mutant.number, sorted(items, key=rank.__getitem__))
            if by:
                kills[by] += 1
            line = {"mutant": mutant.number, "stage": mutant.stage, "source": mutant.source, "options": mutant.options,
                    "verdict": "killed" if by else "survived", "by": by, "why": why,
                    "seconds": round(time.monotonic() - began, 1), "tests": _tests_key()}
            with self.journal.open("a") as file:
                print(json.dumps(line), file=file)
            if self.verbose or not by:
                said = f"{by}: {why}" if by else ""
                print(f"{self.board} {mutant}: {line['verdict']} in {line['seconds']} s {said}", flush=True)
        return True

    def _simulator(self) -> Path:
        if self.simulator is None:
            from hdl.runner import build as cocotb

            self.simulator = cocotb(f"mutants-{self.board}", self.netlist.verilog, "hypermon")
        return self.simulator

    def _baseline(self, items: list[pytest.Item], slow: list[pytest.Item]) -> None:
        """Leaves the tests that pass on the board as it should be; how long each takes is kept."""
        kept = self.journal.with_suffix(f".{_tests_key()}.json")
        self.seconds = json.loads(kept.read_text()) if kept.exists() else {}
        missing = [item for item in items if item.nodeid not in self.seconds]
        if any(item in slow for item in missing):
            self._simulator()
        self.seconds |= dict.fromkeys((item.nodeid for item in missing), 60.0)
        for item in missing:
            began = time.monotonic()
            by, why = self._try(0, [item])
            self.seconds[item.nodeid] = None if by else time.monotonic() - began
            if by:
                print(f"left out, for it fails on the board as it should be: {by}: {why}", flush=True)
        kept.write_text(json.dumps(self.seconds))
        items[:] = [item for item in items if self.seconds[item.nodeid] is not None]

    # ---------------------------------------------------------------------------------- one mutant

    def _try(self, number: int, items: list[pytest.Item]) -> tuple[str | None, str | None]:
        """Runs tests until one fails; returns which, and what it said."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                os.setsid()
                os.close(read)
                self._child(number, items, write)
            os._exit(0)
        os.close(write)
        said = b""
        item: pytest.Item | None = None
        deadline = time.monotonic() + 60
        why = "died"
        with os.fdopen(read, "rb", 0) as pipe:
            while True:
                # Wall clock is a last resort; the child's timer counts what it computes.
                ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
                if not ready:
                    why = "hangs"
                    break
                piece = pipe.read(1 << 16)
                if not piece:
                    break
                said += piece
                *lines, said = said.split(b"\n")
                for line in lines:
                    item = items[json.loads(line)["item"]]
                    why = json.loads(line).get("why", "does not end")
                    deadline = time.monotonic() + 10 * (GRACE + PATIENCE * self.seconds[item.nodeid])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if item is None:
            raise RuntimeError(f"mutant {number}: the process that was to try it has not begun")
        return (None, None) if why == "survived" else (item.nodeid, why)

    def _child(self, number: int, items: list[pytest.Item], write: int) -> None:
        os.environ[VARIABLE] = str(number)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)

        def say(position: int, **more: str) -> None:
            os.write(write, json.dumps({"item": position, **more}).encode() + b"\n")

        for position, item in enumerate(items):
            say(position)
            classic = self.geometry if item.path.name == "test_virtual.py" else None
            seconds = GRACE + PATIENCE * self.seconds[item.nodeid]
            signal.setitimer(signal.ITIMER_PROF, seconds)
            with mock.patch.object(virtual, "library", functools.partial(self._which, classic)):
                reports = runtestprotocol(item, log=False, nextitem=None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for report in reports:
                if report.failed:
                    crash = getattr(report.longrepr, "reprcrash", None)
                    text = crash.message if crash else str(report.longrepr)
                    say(position, why=f"{report.when}: {text.splitlines()[0][:200] if text else ''}")
                    return
        say(len(items) - 1, why="survived")

    def _which(self, classic: Geometry | None, geometry: Geometry) -> Path:
        if geometry == self.geometry or (classic and geometry == Geometry()):
            return self.library
        return build.library(geometry)


def _tests_key() -> str:
    """A hash of the tests that mutants meet, and of what these use."""
    digest = hashlib.sha256()
    for folder in ("hdl", "sim"):
        for path in sorted((TESTS / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _library(netlist: Netlist) -> Path:
    """The virtual board with all mutants, built if there is none yet."""
    digest = hashlib.sha256(netlist.verilog.encode())
    for source in sorted(Path(build.__file__).parent.glob("*")):
        if source.name in ("build.py", "board.cpp"):
            digest.update(source.read_bytes())
    target = BUILD / f"board-{digest.hexdigest()[:16]}.so"
    if not target.exists():
        print(f"building a virtual board of {len(netlist.mutants)} mutants: a minute or two", flush=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch, \
                mock.patch.object(build, "_verilog", return_value=netlist.verilog), \
                mock.patch.object(build, "_FAST", ("-O1",)):     # thousands of short runs: soon built is soon done
            build._Tools().build(netlist.geometry, Path(scratch)).replace(target)
    return target


# ------------------------------------------------------------------------------------------ report

def _verdicts(journal: Path) -> dict[int, dict]:
    """The last verdict on each mutant."""
    found: dict[int, dict] = {}
    if journal.exists():
        for line in journal.read_text().splitlines():
            with contextlib.suppress(ValueError):   # cut off in the middle
                row = json.loads(line)
                found[row["mutant"]] = row
    return found


def report(results: dict[str, dict[int, dict]], mutants: dict[str, list[Mutant]]) -> Iterator[str]:
    stages: dict[str, Counter] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for board, rows in results.items():
        for mutant in mutants[board]:
            verdict = rows.get(mutant.number, {}).get("verdict", "to do")
            stages[mutant.stage][verdict] += 1
            total[verdict] += 1
    yield "| stage | mutants | killed | survived |"
    yield "| --- | ---: | ---: | ---: |"
    for stage, found in sorted(stages.items()):
        yield f"| {stage} | {found.total()} | {found['killed']} | {found['survived']} |"
    yield ""
    for board, rows in results.items():
        for number, row in sorted(rows.items()):
            if row["verdict"] == "survived":
                yield f"survived: {board} {number} {row['stage']} {' '.join(row['source'])}: {row['options']}"
    done = total["killed"] + total["survived"]
    if done:
        share = 100 * total["killed"] / done
        yield f"{total['killed']} of {done} mutants killed, {share:.1f} %; {total['to do']} to do"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=400, help="mutants in all (default 400)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing (default 1)")
    parser.add_argument("--board", choices=list(BOARDS), action="append", help="only this one")
    parser.add_argument("--only", type=int, action="append", metavar="N", help="only this mutant, journal or not")
    parser.add_argument("--quick", action="store_true", help="without the tests that run on cocotb")
    parser.add_argument("--fresh", action="store_true", help="forget the journal")
    parser.add_argument("--report", action="store_true", help="say what is known, run nothing")
    parser.add_argument("--verbose", action="store_true", help="say every verdict")
    args = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(TESTS))
    results, mutants = {}, {}
    for board in args.board or BOARDS:
        geometry, share = BOARDS[board]
        netlist = Netlist(geometry, args.count * share // 100, args.seed)
        journal = BUILD / f"{board}-{netlist.key}.jsonl"
        if args.fresh:
            journal.unlink(missing_ok=True)
        known = _verdicts(journal)
        todo = [m for m in netlist.mutants if (m.number in args.only if args.only else _open(known.get(m.number)))]
        print(f"{board}: {len(netlist.mutants)} mutants, {len(todo)} to try; {journal}", flush=True)
        if todo and not args.report:
            files = FAST if args.quick else (*FAST, *SLOW)
            plugin = Campaign(board, netlist, todo, journal, args.verbose or bool(args.only))
            status = pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=",
                                  *(str(TESTS / file) for file in files)], plugins=[plugin])
            if status:
                sys.exit(f"pytest ended with {status}")
        results[board], mutants[board] = _verdicts(journal), netlist.mutants
    print("\n".join(report(results, mutants)))


def _open(row: dict | None) -> bool:
    """Is there no verdict, or a survivor that has not met the tests as they are?"""
    return row is None or (row["verdict"] == "survived" and row["tests"] != _tests_key())


if __name__ == "__main__":
    main()
