"""A plugin for pytest: recordings in tests, judged by rules (docs/check.md).

>>> def test_lock(recording):
...     with recording("locks.csv") as run:
...         pass
...     run.check("rules.toml")

The fixture records the board of ``--hypermon-board`` while the ``with`` block runs. The virtual board ``sim:``, the
default, plays a stimulus at the end of the block instead. The RUN of a test that failed is kept, and the report names
it.
"""

import csv
import hashlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest
from hypermon.host.errors import HypermonError

# The rest is imported when a test records: pytest loads this module in every run.
if TYPE_CHECKING:
    from hypermon.host.record.process import RecorderProcess

__all__ = ["Recording"]

#: Seconds for a board to begin a recording: a virtual one may have to be built first. ``_DRAIN_S``: to end one.
_BEGIN_S, _DRAIN_S = 300.0, 60.0
_FAILED = pytest.StashKey[bool]()
_RUNS = pytest.StashKey[list[Path]]()

#: A file with a stimulus, or port writes: time in nanoseconds, node, value of the port with its strobe.
Stimulus = str | Path | Iterable[tuple[int, int, int]]


class Recording:
    """A recording of a ``with`` block.

    Parameters
    ----------
    board : as for ``hypermon record``; ``sim:`` is the virtual board.
    path : the directory of the RUN; must not exist.
    stimulus : what the virtual board plays.
    options : of ``hypermon record``, or ``hypermon sim``.
    dictionary : event dictionary for the RUN. ``framing``: events are framed from nibbles.

    Raises
    ------
    HypermonError
        if the board cannot be recorded, or if a rule does not fit the RUN.
    """

    def __init__(self, board: str, path: Path, stimulus: Stimulus | None, options: Sequence[str],
                 dictionary: str | Path | None, framing: bool):
        if (board == "sim:") != (stimulus is not None):
            raise HypermonError("sim: needs a stimulus: recording(FILE), or recording(port_writes)" if board == "sim:"
                                else f"{board} is a real board, and plays no stimulus; leave it out")
        self.board, self.path = board, path
        self._stimulus, self._options = stimulus, list(options)
        self._dictionary, self._framing = dictionary, framing
        self._stack = ExitStack()
        self._process: RecorderProcess | None = None

    def __enter__(self) -> "Recording":
        if self.board != "sim:":
            self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with self._stack:
            if self._process is not None:
                self._process.close(_DRAIN_S)
                failure = self._process.failure
                if failure is not None and error is None:
                    raise HypermonError(f"{self.board}: {failure}")
            elif error is None:
                self._play()
            if error is None and (self._dictionary is not None or self._framing):
                self._command("decode", str(self.path), *(["--framing", "event"] if self._framing else []),
                              *([] if self._dictionary is None else ["--dictionary", str(self._dictionary)]))

    def _begin(self) -> None:
        """Starts the recorder. One test at a time has a board, whichever process runs it."""
        from hypermon.host.record.process import RecorderProcess
        from hypermon.host.recording.locking import locked

        place = Path(tempfile.gettempdir(), f"hypermon-board-{hashlib.sha256(self.board.encode()).hexdigest()[:16]}")
        place.mkdir(mode=0o700, exist_ok=True)
        self._stack.enter_context(locked(place))
        self._process = RecorderProcess(self.board, self.path, self._options)
        until = time.monotonic() + _BEGIN_S
        while not self._process.figures and self._process.running and time.monotonic() < until:
            time.sleep(0.01)
        if not self._process.figures:
            self._process.close()
            self._stack.close()
            raise HypermonError(f"{self.board}: {self._process.failure or 'the recording did not begin'}")

    def _play(self) -> None:
        stimulus = self._stimulus
        assert stimulus is not None
        if not isinstance(stimulus, str | Path):
            written = self.path.with_suffix(".csv")
            with open(written, "w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(("time_ns", "node", "port"))
                writer.writerows(sorted(stimulus))
            stimulus = written
        self._command("sim", str(stimulus), "-o", str(self.path), *self._options)

    def _command(self, *words: str) -> None:
        from hypermon.host.record.process import hypermon_command

        done = subprocess.run(hypermon_command(*words), capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise HypermonError(said[-1].removeprefix("hypermon: ") if said else f"hypermon {words[0]} failed")

    @property
    def run(self) -> Any:
        """The RUN, as :func:`hypermon.host.open_run` returns it."""
        from hypermon.host.run import open_run

        return open_run(self.path)

    def check(self, rules: str | Path, *, undecided: bool = False) -> dict[str, Any]:
        """Judges the RUN by a rules file; the test fails unless all rules pass.

        Parameters
        ----------
        undecided : rules may also be undecided.

        Returns
        -------
        the verdicts, as ``hypermon check --json`` prints them.
        """
        from hypermon.host.contracts.judge import judge
        from hypermon.host.contracts.verdicts import as_dict, verdict_lines

        __tracebackhide__ = True
        judged = judge(self.run, rules)
        wrong = [one for one in judged if one.verdict == "fail" or (one.verdict == "undecided" and not undecided)]
        if wrong:
            lines = [line for one in wrong for line in verdict_lines(one)]
            pytest.fail("\n".join([f"{len(wrong)} of {len(judged)} rules do not pass: {rules}", *lines,
                                   f"RUN: {self.path}"]), pytrace=False)
        return as_dict(judged)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--hypermon-board``."""
    group = parser.getgroup("hypermon", "recordings of boards")
    group.addoption("--hypermon-board", default="sim:", metavar="BOARD",
                    help="the board that the fixture `recording` records; sim: is the virtual board, which plays the "
                         "stimulus of each test (default: %(default)s)")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Notes whether a test failed, and names the RUNs that are kept."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.stash[_FAILED] = True
        kept = [str(path) for path in item.stash.get(_RUNS, []) if path.exists()]
        if kept:
            report.sections.append(("hypermon", "\n".join(f"kept: {path}" for path in kept)))


@pytest.fixture
def recording(request: pytest.FixtureRequest,
              tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[..., Recording], None, None]:
    """``recording(stimulus, options=[...], dictionary=FILE, framing=True)``: records a ``with`` block."""
    folder = tmp_path_factory.mktemp("hypermon")
    runs: list[Path] = request.node.stash.setdefault(_RUNS, [])

    def make(stimulus: Stimulus | None = None, *, options: Sequence[str] = (), dictionary: str | Path | None = None,
             framing: bool = False) -> Recording:
        path = folder / f"run-{len(runs)}"
        made = Recording(request.config.getoption("--hypermon-board"), path, stimulus, options, dictionary, framing)
        runs.append(path)
        return made

    yield make
    if not request.node.stash.get(_FAILED, False):
        shutil.rmtree(folder, ignore_errors=True)
