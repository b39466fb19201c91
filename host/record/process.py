"""``hypermon record`` as a separate process: no view that is slow or fails delays it."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from hypermon.host.errors import HypermonError

__all__ = ["RecorderProcess", "command_of", "hypermon_command", "identify"]

#: Seconds for a board to identify itself; a virtual board may have to be built first.
_PATIENCE_S = 300
#: Lines of the recorder's error output that are kept.
_LINES = 100


def hypermon_command(*arguments: str) -> list[str]:
    """The command line of this same program, whatever is on the PATH."""
    return [sys.executable, "-c", "from hypermon.host.cli import main; main()", *arguments]


def command_of(board: str, run: Path, options: Sequence[str]) -> list[str]:
    """The command that a user would type for the same recording."""
    return ["hypermon", "record", "-b", board, "-o", str(run), *options]


def identify(board: str) -> dict[str, Any]:
    """``hypermon info --json``; raises HypermonError with that command's message if the board cannot be opened."""
    try:
        done = subprocess.run(hypermon_command("info", "-b", board, "--json"), capture_output=True, text=True,
                              errors="replace", timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise HypermonError(f"{board} did not identify itself within {_PATIENCE_S} s; switch it off and on") from None
    if done.returncode != 0:
        raise HypermonError(_last_line(done.stderr).removeprefix("hypermon: ") or f"{board} cannot be opened")
    identity: dict[str, Any] = json.loads(done.stdout)
    return identity


class RecorderProcess:
    """A recording that runs until it ends or is stopped.

    Parameters
    ----------
    board, run : the board that is recorded, and the new RUN.
    options : of ``hypermon record``.
    files : open files that it inherits, by number; POSIX only.

    Members
    -------
    run : as above.
    figures : the newest report of the recorder; see :mod:`hypermon.host.cli.progress_json`.
    """

    def __init__(self, board: str, run: Path, options: Sequence[str], files: Sequence[int] = ()):
        self.run = run
        self.figures: dict[str, Any] = {}
        self._asked = False
        self._said: deque[str] = deque(maxlen=_LINES)
        command = command_of(board, run, options)
        # In its own process group, so that Ctrl-C in the terminal reaches the view alone, which then stops this.
        self._process = subprocess.Popen(
            hypermon_command(*command[1:], "--json"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, pass_fds=files,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0))
        self._threads = [threading.Thread(target=target, args=(stream,), daemon=True) for target, stream in
                         ((self._read_figures, self._process.stdout), (self._read_words, self._process.stderr))]
        for thread in self._threads:
            thread.start()

    def _read_figures(self, stream: IO[str]) -> None:
        # The pipe is always emptied: a recorder that has to wait for a reader records nothing.
        for line in stream:
            with contextlib.suppress(ValueError):
                figures = json.loads(line)
                if isinstance(figures, dict):
                    self.figures = figures

    def _read_words(self, stream: IO[str]) -> None:
        for line in stream:
            self._said.append(line.strip())

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def failure(self) -> str | None:
        """The recorder's message about why it failed; None if it ended as requested, or has not ended."""
        if self.running or self._process.returncode == 0:
            return None
        if self._process.returncode == -signal.SIGINT and "how" in self.figures:
            return None     # it ended just as it was asked to
        self._join()
        return next(reversed(self._said), "") or f"the recorder ended with status {self._process.returncode}"

    def stop(self) -> None:
        """Asks it to end properly: the data on the board is drained. It is asked once, because a second request ends it
        at once.
        """
        if self.running and not self._asked:
            self._asked = True
            # Windows cannot send SIGINT to another process group.
            self._process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))

    def close(self, patience_s: float = 20.0) -> None:
        """Stops it and waits. A recorder that does not end is killed; its recording can still be read."""
        self.stop()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._join()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
