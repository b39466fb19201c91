"""The mutation campaign: do the project's tests notice when the gateware is broken?

``make mutation`` builds one simulator with all mutants of a board and lets the tests of the whole
board loose on one after the other, in a process of its own, until one fails. Verdicts go to a
journal under ``.build/mutation`` as they come: what has been cut off goes on where it was. The
journal's name is a hash of the netlist and its mutants; a survivor meets again the tests that have
changed since. See docs/verification.md.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
import pickle
import re
import resource
import select
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from math import inf
from pathlib import Path
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol
from hypermon.hdl import layout
from hypermon.hdl.layout import Geometry, Sink
from hypermon.sim import build, virtual
from netlist import VARIABLE, Mutant, Netlist

TESTS = Path(__file__).parents[1]
BUILD = TESTS.parent / ".build" / "mutation"
#: Survivors that are equivalent, and why: by board and key of its netlist, then by number.
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
#: Boards under mutation: one with frames of two rows, whose memories behind the node FIFOs are soon full (those hold
#: an event, or no item would ever be more than a nibble), and the default one; and how many of 100 mutants are of it.
BOARDS = {
    "small": (Geometry(17, vector_depth=256, frame_depth=16, sinks=tuple(Sink)), 40),
    "deep": (Geometry(sinks=tuple(Sink)), 60),
}
#: The tests: of the virtual board, then of the board on cocotb, which are slower.
FAST = ("hdl/test_exact.py", "sim/test_extended.py", "sim/test_items.py", "sim/test_guard.py",
        "sim/test_item_filter.py", "sim/test_event_mask_played.py", "sim/test_trigger_played.py",
        "sim/test_emulator_played.py", "sim/test_reduction.py", "sim/test_loss.py", "sim/test_virtual.py",
        "host/test_selftest.py")
SLOW = ("hdl/test_board.py", "hdl/test_whole_board.py", "hdl/test_sync.py")
#: Tests that are spared: of hours of silence, of what the harness is told, of what no board is asked.
SPARED = ("test_bad_options", "test_closed", "test_a_geometry_is_checked", "test_stimulus_of_another_board",
          "test_classic_boards_do_not_count", "test_two_hours_take_seconds", "test_silence_of_hours_between",
          "test_nothing_to_play", "test_drain_rate", "test_stalls", "test_slow_host_loses_and_all_is_accounted_for",
          "test_without_a_rate_a_beat_comes_every_clock", "test_registers_are_paced",
          "test_time_passes_at_the_same_place")
#: Names under which tests keep the board that they are about.
GEOMETRIES = ("EXTENDED", "ODD_EXTENDED", "GEOMETRY")
#: Names of boards in the slow tests that are replaced by the one under mutation.
ALIAS = {"small": "17", "deep": "deep"}
#: A test of a mutant may take so many times as long as it does by itself, and some seconds more.
PATIENCE, GRACE = 6, 1.5
#: CPU seconds of a test of which nothing is known yet: taken for likely, and the most that it may take.
GUESS, LONGEST = 1.0, 30
#: Tests that are about a stage, by the last word of its name: they come first until it is known what kills there.
ABOUT = {
    "activity": r"skipping|silence", "timebase": r"skipping|silence|test_far",
    "capture": r"test_exact.py::test_registers",
    "census": r"test_heartbeat", "counters": r"test_heartbeat|test_registers",
    "registers": r"test_exact.py::test_registers|test_reduction",
    "gate": r"test_fast_nodes|test_stalled_host|test_loss", "room": r"test_stalled_host|test_fast_nodes|test_loss",
    "window": r"test_vectors|test_fast_nodes|test_far", "loss": r"test_loss",
    **dict.fromkeys(("frame_builder", "frame_fifo", "frame_port", "frame_source"),
                    r"test_exact.py::test_(registers|long_flush|stalled_host|far).*classic"),
    "synchronizer": r"test_guard", "filter": r"test_item_filter",
    **dict.fromkeys(("limiter", "intake"), r"test_guard.py::test_(rate_limit|each_node|what_)"),
    "emulator": r"test_emulator_played", "event_mask": r"test_event_mask_played", "reduction": r"test_reduction",
    "trigger": r"test_trigger_played", "discards": r"test_trigger_played|test_event_mask_played",
    "timeout": r"test_items.py::test_(time_out|each_node)", "lineup": r"test_items.py::test_(nobody|waits)",
    "source": r"test_long_flush|test_flush|test_stalled_host",
    "sync": r"test_sync",
    **dict.fromkeys(("framer", "node_fifos", "expander", "encoder", "packer", "compact_sink"), r"test_items"),
}
#: All mutants meet tests of so many seconds before the first meets more, for few outlive them.
ROUNDS = (1.2, 8, 20, 40, 80, inf)
_REAL_LIBRARY = build.library


class Campaign:
    """A pytest plugin: in place of running each test once, runs them on mutants until one fails."""

    def __init__(self, board: str, netlist: Netlist, mutants: list[Mutant], journal: Path, again: set[int],
                 verbose: bool):
        self.board, self.geometry, self.again = board, BOARDS[board][0], again
        self.netlist, self.mutants, self.journal, self.verbose = netlist, mutants, journal, verbose
        self.library = _library(netlist)
        self.simulator: Path | None = None
        self.failed: str | None = None

    # -------------------------------------------------------------------------------- which tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._chosen(item)]

    def _chosen(self, item: pytest.Item) -> bool:
        file = item.path.name
        given = item.callspec.params if hasattr(item, "callspec") else {}
        name = given.get("name")
        # Who needs a folder runs the command line, which has boards of its own.
        if item.get_closest_marker("slow") or "tmp_path" in item.fixturenames or item.originalname in SPARED:
            return False
        match file:
            case "test_exact.py":
                return name in (self.board, None if self.board == "small" else self.board)
            case "test_board.py" | "test_whole_board.py":
                return name in (ALIAS[self.board], None)
            case "test_sync.py":
                return item.originalname == "test_follows_a_wave"
            case "test_selftest.py":
                return item.originalname == "test_a_whole_board_passes"
            case "test_guard.py":
                return True
        if any(f in item.fixturenames for f in ("odd", "wide", "external")):
            return False
        if file == "test_virtual.py":
            return self.board == "deep" and given.get("board", "classic") == "classic"
        return bool({"extended", "odd_extended"} & set(item.fixturenames)) or given.get("board") == "extended"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        slow = [item for item in items if _file(item) in SLOW]
        for module in {item.module for item in slow}:
            module.BOARDS = dict.fromkeys(getattr(module, "BOARDS", ()), self.geometry)
            module.board = lambda geometry, ram="portable": self._simulator()
        shared = session.config.pluginmanager.getplugin(str(TESTS / "sim" / "conftest.py"))
        for module in {item.module for item in items} | {shared}:
            if module.__name__.endswith("test_exact"):
                module.BOARDS.update({(self.board, sink): self.geometry for sink in Sink})
            for name in GEOMETRIES:
                if hasattr(module, name):
                    setattr(module, name, self.geometry)
        self._baseline(items)
        self.kills, self.kills_in = Counter(), defaultdict(Counter)
        known = _verdicts(self.journal)
        for row in known.values():
            self._learn(row)
        for mutant in self.mutants:
            if mutant.number in self.again:
                known.pop(mutant.number, None)
        # In the order of their files: of two of which nothing is known yet the first comes first.
        quick = sorted((item for item in items if item not in slow), key=lambda item: FAST.index(_file(item)))
        # What is slow comes last, but for what is about the stage.
        for some, seconds in (*((quick, seconds) for seconds in ROUNDS), (slow, inf)):
            for mutant in self.mutants:
                row = known.get(mutant.number, {})
                if row.get("verdict") != "killed":
                    its = [item for item in slow if some is quick and seconds > ROUNDS[0]
                           and re.search(self._about(mutant), item.nodeid)]
                    known[mutant.number] = self._meet(mutant, its + some, row, seconds)
        for row in known.values():
            if slow and row["verdict"] == "open":
                self._write(row | {"verdict": "survived"})
        return True

    @staticmethod
    def _about(mutant: Mutant) -> str:
        return ABOUT.get(mutant.stage.split(".")[-1], "$^")

    def _write(self, row: dict) -> None:
        with self.journal.open("a") as file:
            print(json.dumps(row), file=file)

    def _learn(self, row: dict) -> None:
        if row["verdict"] == "killed":
            self.kills[row["by"]] += 1
            self.kills_in[row["stage"]][row["by"]] += 1

    def _meet(self, mutant: Mutant, items: list[pytest.Item], row: dict, most: float) -> dict:
        """The verdict on a mutant that has survived ``row``, and meets those of ``items`` that have killed the most in
        its stage, up to so many seconds. It goes to the journal."""
        passed = row.get("tests", {})
        keys = {item: _test_key(item.path) for item in items}
        left = [item for item in items if passed.get(item.nodeid) != keys[item] and item.nodeid not in self.unsound]
        spent = sum(self._takes(item) for item in items if passed.get(item.nodeid) == keys[item])
        if not left or spent > most:
            return row
        in_stage, about = self.kills_in[mutant.stage], self._about(mutant)
        left.sort(key=lambda item: -(1 + self.kills[item.nodeid] + 10 * in_stage[item.nodeid]
                                     + 30 * bool(re.search(about, item.nodeid))) / (0.3 + self._takes(item)))
        left = [item for item in left if spent + self._takes(item) <= most] or left[:1]
        ends = accumulate(map(self._takes, left))
        met = left = left[:max(1, sum(spent + end <= most for end in ends))]
        began = time.monotonic()
        while True:
            by, why = self._try(mutant.number, left)
            at = next((k for k, item in enumerate(left) if item.nodeid == by), len(left))
            if by is None or self._sound(left[at]):
                break
            left = left[at + 1:]
            if not left:
                by = why = None
                break
        line = {"mutant": mutant.number, "stage": mutant.stage, "source": mutant.source, "options": mutant.options,
                "verdict": "killed" if by else "open", "by": by, "why": why,
                "seconds": round(row.get("seconds", 0) + time.monotonic() - began, 1),
                "tests": {} if by else passed | {item.nodeid: keys[item] for item in met}}
        self._learn(line)
        self._write(line)
        if self.verbose:
            said = f"{by}: {why}" if by else f"{len(line['tests'])} tests"
            print(f"{self.board} {mutant}: {line['verdict']} in {line['seconds']} s {said}", flush=True)
        return line

    def _simulator(self) -> Path:
        if self.simulator is None:
            from hdl.runner import build as cocotb

            self.simulator = cocotb(f"mutants-{self.board}", self.netlist.verilog, "hypermon")
        return self.simulator

    # ------------------------------------------------------------------------- the board as it should be

    def _baseline(self, items: list[pytest.Item]) -> None:
        """What is known of tests on the board as it should be: by name [key, CPU seconds], None for one that fails."""
        self.kept = self.journal.with_suffix(".json")
        self.known = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        known = {item.nodeid: self.known[item.nodeid][1] for item in items
                 if self.known.get(item.nodeid, [None])[0] == _test_key(item.path)}
        self.unsound = {name for name, seconds in known.items() if seconds is None}
        #: CPU seconds of tests that have passed, be it on a mutant.
        self.seconds = {name: seconds for name, seconds in known.items() if seconds is not None}
        self.sound = set(self.seconds)
        build.library(Geometry())

    def _takes(self, item: pytest.Item) -> float:
        return self.seconds.get(item.nodeid, GUESS)

    def _sound(self, item: pytest.Item) -> bool:
        """Does a test pass on the board as it should be? That is asked when it fails on a mutant for the first time;
        most tests are spared it."""
        name = item.nodeid
        if name not in self.sound | self.unsound:
            by, why = self._try(0, [item])
            (self.unsound if by else self.sound).add(name)
            self.known[name] = [_test_key(item.path), None if by else self.seconds[name]]
            self.kept.write_text(json.dumps(self.known))
            if by:
                print(f"left out, for it fails on the board as it should be: {by}: {why}", flush=True)
        return name in self.sound

    # ---------------------------------------------------------------------------------- one mutant

    def _try(self, number: int, items: list[pytest.Item]) -> tuple[str | None, str | None]:
        """Runs tests until one fails; returns which, and what it said. How long others take is remembered."""
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
                    told = json.loads(line)
                    item = items[told["item"]]
                    why = told.get("why", "does not end")
                    if "seconds" in told:
                        self.seconds.setdefault(item.nodeid, told["seconds"])
                    deadline = time.monotonic() + 20 * self._patience(item)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if item is None:
            raise RuntimeError(f"mutant {number}: the process that was to try it has not begun")
        return (None, None) if why == "survived" else (item.nodeid, why)

    def _patience(self, item: pytest.Item) -> float:
        """CPU seconds after which a test has failed."""
        return GRACE + PATIENCE * self.seconds[item.nodeid] if item.nodeid in self.seconds else LONGEST

    def _child(self, number: int, items: list[pytest.Item], write: int) -> None:
        os.environ[VARIABLE] = str(number)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)

        def say(position: int, **more: str | float) -> None:
            os.write(write, json.dumps({"item": position, **more}).encode() + b"\n")

        for position, item in enumerate(items):
            say(position)
            classic = self.geometry if item.path.name == "test_virtual.py" else None
            seconds = self._patience(item)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            # A simulator is a process of its own, and has its own clock.
            so_far, others = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
            resource.setrlimit(resource.RLIMIT_CPU, (int(so_far + seconds) + 2, resource.RLIM_INFINITY))
            which = functools.partial(self._which, classic)
            with mock.patch.object(virtual, "library", which), mock.patch.object(build, "library", which):
                reports = runtestprotocol(item, log=False, nextitem=None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for report in reports:
                if report.failed:
                    crash = getattr(report.longrepr, "reprcrash", None)
                    text = crash.message if crash else str(report.longrepr)
                    say(position, why=f"{report.when}: {text.splitlines()[0][:200] if text else ''}")
                    return
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            say(position, seconds=time.process_time() - so_far + after.ru_utime + after.ru_stime
                - others.ru_utime - others.ru_stime)
        say(len(items) - 1, why="survived")

    def _which(self, classic: Geometry | None, geometry: Geometry, shell: build.Shell | None = None) -> Path:
        # The mutants are of the plain board: another shell has gateware of its own.
        if shell is None and (geometry == self.geometry or (classic and geometry == Geometry())):
            return self.library
        return _REAL_LIBRARY(geometry, shell)


def _file(item: pytest.Item) -> str:
    return f"{item.path.parent.name}/{item.path.name}"


@functools.cache
def _test_key(path: Path) -> str:
    """A hash of a test's file and of all that it may use: files that are no tests, and tests that it imports from."""
    found, new = set(), {path}
    while new:
        found |= new
        text = "".join(file.read_text() for file in new)
        names = re.findall(r"^from (test_\w+) import", text, re.MULTILINE)
        new = {path.with_name(f"{name}.py") for name in names} - found
    digest = hashlib.sha256()
    for folder in ("hdl", "sim"):
        found |= {file for file in (TESTS / folder).rglob("*.py")
                  if not file.name.startswith("test_") and "benches" not in file.parts and "formal" not in file.parts}
    if f"{path.parent.name}/{path.name}" in SLOW:
        found |= set((TESTS / "hdl" / "benches").glob("*.py"))
    for file in sorted(found):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _netlist(geometry: Geometry, count: int, seed: int) -> Netlist:
    """It takes half a minute, and is kept."""
    digest = hashlib.sha256(repr((geometry, count, seed)).encode())
    for source in (*sorted(Path(layout.__file__).parent.glob("*.py")), Path(__file__).with_name("netlist.py")):
        digest.update(source.read_bytes())
    kept = BUILD / f"netlist-{digest.hexdigest()[:16]}.pickle"
    if not kept.exists():
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_bytes(pickle.dumps(Netlist(geometry, count, seed)))
        made.replace(kept)
    return pickle.loads(kept.read_bytes())


def _library(netlist: Netlist) -> Path:
    """The virtual board with all mutants, built if there is none yet."""
    digest = hashlib.sha256(netlist.verilog.encode())
    for source in sorted(Path(build.__file__).parent.glob("*")):
        if source.name in ("build.py", "board.cpp", "player.h"):
            digest.update(source.read_bytes())
    target = BUILD / f"board-{digest.hexdigest()[:16]}.so"
    if not target.exists():
        print(f"building a virtual board of {len(netlist.mutants)} mutants: a minute or two", flush=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch, \
                mock.patch.object(build, "_verilog", return_value=netlist.verilog), \
                mock.patch.object(build, "_FAST", ("-O1",)):     # thousands of short runs: soon built is soon done
            shell = build._plain()
            build._Tools(shell).build(netlist.geometry, shell, Path(scratch)).replace(target)
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


def report(results: dict[str, dict[int, dict]], netlists: dict[str, Netlist]) -> Iterator[str]:
    """Scores by stage and by board, and the survivors, with the reason of those that nobody could notice."""
    stages: dict[str, Counter] = defaultdict(Counter)
    boards: dict[str, Counter] = defaultdict(Counter)
    survivors, unmet = [], []
    for board, rows in results.items():
        reasons = tomllib.loads(EQUIVALENT.read_text()).get(f"{board}-{netlists[board].key}", {})
        for mutant in netlists[board].mutants:
            verdict = rows.get(mutant.number, {}).get("verdict", "to do")
            reason = reasons.get(str(mutant.number)) if verdict == "survived" else None
            for found in (stages[mutant.stage], boards[board]):
                found.update([verdict, *(["equivalent"] if reason else [])])
            if verdict == "survived":
                survivors.append(f"| {board} {mutant} | {reason or ''} |")
            elif verdict == "open":
                unmet.append(f"{board} {mutant}")
    total = sum(boards.values(), Counter())
    for title, rows in (("stage", sorted(stages.items())), ("board", [*boards.items(), ("both", total)])):
        yield f"| {title} | mutants | killed | survived | of these equivalent | open | score | without these |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        for name, found in rows:
            # Who has not met all tests yet is no survivor, but none of the killed either.
            done = found["killed"] + found["survived"] + found["open"]
            scores = [f"{100 * found['killed'] / n:.1f} %" if n else "" for n in (done, done - found["equivalent"])]
            yield (f"| {name} | {done + found['to do']} | {found['killed']} | {found['survived']} | "
                   f"{found['equivalent']} | {found['open']} | {' | '.join(scores)} |")
        yield ""
    if survivors:
        yield from ("| survivor | why nobody could notice |", "| --- | --- |", *survivors, "")
    if unmet:
        yield from ("have outlived some tests, and not met the others yet:", *unmet, "")
    if total["to do"]:
        yield f"{total['to do']} are still to do"


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
    results, netlists = {}, {}
    for board in args.board or BOARDS:
        geometry, share = BOARDS[board]
        netlist = _netlist(geometry, args.count * share // 100, args.seed)
        journal = BUILD / f"{board}-{netlist.key}.jsonl"
        if args.fresh:
            journal.unlink(missing_ok=True)
        known = _verdicts(journal)
        todo = [m for m in netlist.mutants if (
            m.number in args.only if args.only else known.get(m.number, {}).get("verdict") != "killed")]
        print(f"{board}: {len(netlist.mutants)} mutants, {len(todo)} to try; {journal}", flush=True)
        if todo and not args.report:
            files = FAST if args.quick else (*FAST, *SLOW)
            plugin = Campaign(board, netlist, todo, journal, set(args.only or ()), args.verbose or bool(args.only))
            status = pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", "-o", "addopts=",
                                  *(str(TESTS / file) for file in files)], plugins=[plugin])
            if status:
                sys.exit(f"pytest ended with {status}")
        results[board], netlists[board] = _verdicts(journal), netlist
    print("\n".join(report(results, netlists)))


if __name__ == "__main__":
    main()
