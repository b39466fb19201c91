"""The steps of continuous integration, the cheapest first, and a table of what came of them.

``.ci/run [quick|whole] [--no-install]``, from a clean checkout. ``quick`` ends with ``make test``. Of the long tests, a
run takes one share of four; the commit decides which. ``whole`` takes all, and knows no limit of time. ``--no-install``
uses the programs that are here, and installs none. The output of each step is printed and kept in ``.build/ci``.

A test that fails is run once more, alone (`retry.py`). A step marked as optional is left out with a line if the time is
short, and if it fails, the others are run all the same. The last lines are a table: for a step that failed its command,
its first error, the seed, and its log.

Exit status: 0 if every step that ran has passed, else 1.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from retry import Retried, retry

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / ".build" / "ci"
#: Seconds after which steps that can be left out are, the one that runs among them.
SHORT_S = 70 * 60
#: Shares of the long tests.
SHARES = 4
#: The first line of a log that matches the earliest of these is the error.
_ERRORS = (r"^failed: ", r"^E  +\S", r"\berror\b[:\[]", r"^\w*Error\b", r"\bError:", r"^make: \*\*\*",
           r"(?i)\b(error|failed|missing)\b")
_TESTS = "--outcomes={outcomes}"
_OF_MAKE = ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS")


@dataclass(frozen=True)
class Step:
    """A command.

    Attributes
    ----------
    title : what it does.
    command : a line of shell. ``{outcomes}`` is the file to which pytest writes failed tests, ``{share}`` the option
        for this run's share of the long tests.
    usual_s : its duration on two idle cores.
    optional : it is left out if the time is short.
    quick : part of ``quick``.
    ready : called before; returns why the step is left out, or "".
    """

    title: str
    command: str
    usual_s: int
    optional: bool = False
    quick: bool = False
    ready: Callable[[], str] = str


@dataclass
class Result:
    """What came of a step: ``state`` is passed, failed, or left out; ``notes`` are lines of the table."""

    step: Step
    state: str
    seconds: float = 0
    log: Path | None = None
    notes: list[str] = field(default_factory=list)


def _on_path(program: str, package: str) -> Callable[[], str]:
    def ready() -> str:
        paths = os.environ.get("PATH", "").split(os.pathsep)
        found = any(os.access(Path(path) / program, os.X_OK) for path in paths)
        return "" if found else f"there is no {program} (Debian: apt-get install {package})"

    return ready


def _fetched(module: str, call: str) -> Callable[[], str]:
    """What a guest needs of Debian is downloaded and unpacked, by a module of tests/e2e."""
    def ready() -> str:
        code = f'import sys; sys.path.insert(0, "tests/e2e"); import {module}; {module}.{call}(print)'
        done = subprocess.run([".venv/bin/python", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"{module} failed"])[-1]

    return ready


STEPS = (
    Step("set-up", "make setup", 75, quick=True),
    Step("lint", "make lint", 30, quick=True),
    Step("documentation site", "make site", 25, quick=True),
    Step("plain install", "tests/plain_install.sh", 30, quick=True),
    Step("tests", f'make test ARGS="{_TESTS} --durations=15"', 480, quick=True),
    # From nothing, because the demo must do with what it installs itself; then once more, built.
    Step("demo", "rm -rf .build/ci/demo && git clone --quiet . .build/ci/demo && make -C .build/ci/demo demo && "
         "make -C .build/ci/demo demo && rm -rf .build/ci/demo", 60),
    Step("Linux at the USB port", 'make guest ARGS="--nodes 4 --events 300"', 60, optional=True,
         ready=_fetched("linux_guest", "unpack")),
    Step("Linux with the board in a slot", 'make guest OF=pcie ARGS="--nodes 4 --events 2000"', 60, optional=True,
         ready=_fetched("newer_qemu", "emulator")),
    # Without Spark, which only one test of an export needs. The next step builds the HX8K.
    Step("bitstreams of each family", "make test-slow SPARK= "
         "ARGS='--dist=load tests/boards/toolchain/test_bitstream.py "
         f'-k "bitstream and not hx8k" {_TESTS}\'', 430, optional=True),
    Step("a bitstream, from its bits", "make bitstream-check BOARD=ice40-hx8k", 250, optional=True,
         ready=_on_path("iceunpack", "fpga-icestorm")),
    # In three parts, so that some of them fit.
    *(Step(f"long tests: {name}", f"make test-all ARGS=\"{_TESTS} {{share}} --durations=15 "
           f"-m 'long and not slow and not formal' {folders}\"", usual_s, optional=True) for name, folders, usual_s in (
               ("host", "tests --ignore=tests/hdl --ignore=tests/sim --ignore=tests/studies", 300),
               ("virtual board", "tests/sim tests/studies", 250), ("gateware", "tests/hdl", 250))),
)


class Gate:
    """Runs steps and keeps their results.

    Parameters
    ----------
    steps : in order. After a step that is not optional has failed, none is run.
    short_s : seconds after which optional steps are left out.
    share : of the long tests, "2/4" for the second of four; "" for all.
    again : runs one test by itself, as :func:`retry.retry` does.
    """

    def __init__(self, steps: Sequence[Step], short_s: float = SHORT_S,
                 again: Callable[[Path, str, Path], Retried] = retry, share: str = "") -> None:
        self._steps, self._short_s, self._again = steps, short_s, again
        self._share = f"--share={share}" if share else ""
        self._began = time.monotonic()
        self.results: list[Result] = []
        self.unstable: list[str] = []

    def run(self) -> bool:
        """Runs all steps; returns whether none has failed."""
        stop = ""
        for number, step in enumerate(self._steps, 1):
            reason = stop or self._why_not(step)
            if reason:
                print(f"\n==== {step.title}: left out, {reason}", flush=True)
                self.results.append(Result(step, "left out", notes=[reason]))
                continue
            result = self._run(number, step)
            self.results.append(result)
            print(f"==== {step.title}: {result.state} after {result.seconds:.0f} s ({self._spent():.0f} s in all)",
                  flush=True)
            if result.state == "failed" and not step.optional:
                stop = f"because {step.title!r} failed"
        return not any(result.state == "failed" for result in self.results)

    def _spent(self) -> float:
        return time.monotonic() - self._began

    def _why_not(self, step: Step) -> str:
        if step.optional:
            done = [result for result in self.results if result.state == "passed"]
            slower = max(1.0, sum(r.seconds for r in done) / max(1, sum(r.step.usual_s for r in done)))
            if self._spent() + step.usual_s * slower > self._short_s:
                return f"it would end after more than {self._short_s / 60:.0f} minutes"
        return step.ready()

    def _run(self, number: int, step: Step) -> Result:
        name = f"{number:02}-{re.sub('[^a-z]+', '-', step.title.lower())}"
        log, outcomes = LOGS / f"{name}.log", LOGS / f"{name}.jsonl"
        command = step.command.replace("{outcomes}", str(outcomes)).replace("{share}", self._share)
        print(f"\n==== {step.title}: {command}", flush=True)
        began = time.monotonic()
        status = self._execute(command, log, step.optional)
        result = Result(step, "passed" if status == 0 else "failed", time.monotonic() - began, log)
        if status is None:
            result.state = "left out"
            result.notes = [f"stopped after {self._short_s / 60:.0f} minutes in all; log: {log.relative_to(ROOT)}"]
        elif status != 0:
            result.notes = [f"command: {command}", f"error: {first_error(log)}", f"log: {log.relative_to(ROOT)}"]
        if status is not None and outcomes.exists():
            self._judge_tests(result, outcomes)
        result.seconds = time.monotonic() - began
        return result

    def _execute(self, command: str, log: Path, limited: bool) -> int | None:
        """Exit status; None if the time was over first. The output is printed and kept."""
        # What a `make` that runs this hands down is not for the steps: ARGS among it.
        environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
        over = threading.Event()
        command_line = ["bash", "-e", "-c", command]
        with log.open("wb") as kept, subprocess.Popen(
                command_line, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True) as process:

            def stop() -> None:
                over.set()
                os.killpg(process.pid, signal.SIGKILL)

            timer = threading.Timer(max(1.0, self._short_s - self._spent()), stop)
            if limited and self._short_s != float("inf"):
                timer.start()
            try:
                assert process.stdout is not None
                while piece := process.stdout.read1(1 << 16):
                    kept.write(piece)
                    sys.stdout.buffer.write(piece)
                    sys.stdout.buffer.flush()
                status = process.wait()
            finally:
                timer.cancel()
        return None if over.is_set() else status

    def _judge_tests(self, result: Result, outcomes: Path) -> None:
        """Runs tests that failed once more, and notes which are unstable, and why tests were skipped."""
        retried = self._again(outcomes, result.step.title, ROOT)
        self.unstable += retried.unstable
        result.notes += retried.notes
        if result.state == "failed" and retried.forgiven:
            result.notes = retried.notes
            result.state = "passed"
        if len(self.unstable) > 3:
            result.state = "failed"
            result.notes.append(f"error: {len(self.unstable)} unstable tests; up to three are forgiven")

    def table(self) -> list[str]:
        """The last lines: every step, what failed and why, unstable tests."""
        lines = [f"{'step':34} {'seconds':>7}  result"]
        for result in self.results:
            lines.append(f"{result.step.title:34} {result.seconds:7.0f}  {result.state}")
            if result.state == "left out" and not result.notes[0].startswith("because"):
                lines[-1] += f": {result.notes[0]}"
            elif result.state != "left out":
                lines += [f"    {note}"[:300] for note in result.notes]
        if self._share and any("{share}" in result.step.command for result in self.results):
            lines.append(f"of the long tests, this was share {self._share.partition('=')[2]}")
        lines += [f"unstable: {line}"[:300] for line in self.unstable]
        passed = sum(result.state == "passed" for result in self.results)
        failed = sum(result.state == "failed" for result in self.results)
        left = len(self.results) - passed - failed
        return [*lines, f"all in all {self._spent():.0f} s; {left} steps left out", f"{passed} passed, {failed} failed"]


def first_error(log: Path) -> str:
    """The line of a log that most likely says what went wrong."""
    lines = log.read_text(errors="replace").splitlines()
    for pattern in _ERRORS:
        for line in lines:
            if re.search(pattern, line):
                return line.strip()[:250]
    return lines[-1].strip()[:250] if lines else "no output"


def share_of_commit() -> str:
    """The share of the long tests that this commit runs, such as "2/4", the second of four.

    It follows from the commit's hash: a commit always runs the same share, and over many commits each share is run.
    """
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return f"{int(commit[:8], 16) % SHARES + 1}/{SHARES}"


def main() -> NoReturn:
    """Runs the steps and prints the table. See the module."""
    parser = argparse.ArgumentParser(prog=".ci/run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=["quick", "whole"],
                        help="only the steps up to `make test`; or all, with every long test and no limit of time")
    parser.add_argument("--no-install", action="store_true", help="use the optional programs that are here")
    options = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "unstable.txt").write_text("")
    steps = [step for step in STEPS if step.quick or options.what != "quick"]
    share = "" if options.what == "whole" else share_of_commit()
    print("==== optional programs, and the tests that they switch on", flush=True)
    subprocess.run([sys.executable, "-m", "tests.programs", *([] if options.no_install else ["--install"])], cwd=ROOT,
                   check=False)
    optional = [step.title for step in steps if step.optional]
    print(f"\n==== left out if the time is short: {', '.join(optional) or 'nothing'}", flush=True)
    print(f"==== long tests: {f'share {share}; all: make ci ARGS=whole' if share else 'all'}", flush=True)
    gate = Gate(steps, SHORT_S if share else float("inf"), share=share)
    passed = gate.run()
    (LOGS / "unstable.txt").write_text("".join(f"{line}\n" for line in gate.unstable))
    print("\n" + "\n".join(gate.table()), flush=True)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
