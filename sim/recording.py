"""A recording of a ``with`` block, in a program: of a board, or of the virtual one, which plays a stimulus at its end.

The plugin for pytest and the driver for labgrid make them.
"""

import csv
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hypermon.host.errors import HypermonError

# The rest is imported when something is recorded: pytest loads this module in every run.
if TYPE_CHECKING:
    from hypermon.host.record.process import RecorderProcess

__all__ = ["Recording", "RulesNotMetError", "Stimulus"]

#: Seconds for a board to begin a recording: a virtual one may have to be built first. ``_DRAIN_S``: to end one.
_BEGIN_S, _DRAIN_S = 300.0, 60.0

#: A file with a stimulus, or port writes: time in nanoseconds, node, value of the port with its strobe.
Stimulus = str | Path | Iterable[tuple[int, int, int]]


class RulesNotMetError(AssertionError):
    """Rules that a RUN does not pass, with the reasons, and the RUN's directory."""


def _place_of(board: str) -> Path:
    """An empty directory whose lock is the board's. All users of a machine can lock it: they share the board."""
    place = Path(tempfile.gettempdir(), f"hypermon-board-{hashlib.sha256(board.encode()).hexdigest()[:16]}")
    with suppress(OSError):     # it is there; or it is another user's, or no directory, which its lock shows
        place.mkdir()
        place.chmod(0o755)      # whatever the umask is
    return place


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

        place = _place_of(self.board)
        try:
            self._stack.enter_context(locked(place))
        except OSError as error:
            raise HypermonError(f"{self.board}: {place} cannot be locked: {error.strerror or error}; its owner can "
                                "remove it") from None
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
        """Judges the RUN by a rules file.

        Parameters
        ----------
        undecided : rules may also be undecided.

        Returns
        -------
        the verdicts, as ``hypermon check --json`` prints them.

        Raises
        ------
        RulesNotMetError
            unless all rules pass.
        """
        from hypermon.host.contracts.judge import judge
        from hypermon.host.contracts.verdicts import as_dict, verdict_lines

        judged = judge(self.run, rules)
        wrong = [one for one in judged if one.verdict == "fail" or (one.verdict == "undecided" and not undecided)]
        if wrong:
            lines = [line for one in wrong for line in verdict_lines(one)]
            raise RulesNotMetError("\n".join([f"{len(wrong)} of {len(judged)} rules do not pass: {rules}", *lines,
                                              f"RUN: {self.path}"]))
        return as_dict(judged)
