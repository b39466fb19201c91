"""``hypermon record`` as a process of its own: nothing that a view does, or fails to do, holds it up."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from hypermon.host.errors import HypermonError

__all__ = ["RecorderProcess", "command_of", "identify"]

#: Seconds that a board is given to say what it is; a virtual one may have to be built first.
_PATIENCE_S = 300


def _hypermon(*arguments: str) -> list[str]:
    """The command line of this same program, whatever is on the PATH."""
    return [sys.executable, "-c", "from hypermon.host.cli import main; main()", *arguments]


def command_of(board: str, run: Path, options: Sequence[str]) -> list[str]:
    """What a user would type for the same recording."""
    return ["hypermon", "record", "-b", board, "-o", str(run), *options]


def identify(board: str) -> dict[str, Any]:
    """``hypermon info --json``; raises HypermonError with its own words if the board cannot be opened."""
    done = subprocess.run(_hypermon("info", "-b", board, "--json"), capture_output=True, text=True, timeout=_PATIENCE_S,
                          check=False)
    if done.returncode != 0:
        raise HypermonError(_last_line(done.stderr) or f"{board} cannot be opened")
    identity: dict[str, Any] = json.loads(done.stdout)
    return identity


class RecorderProcess:
    """A recording that runs until it has reached its end, or is stopped.

    Parameters
    ----------
    board, run : what is recorded, and where to.
    options : of ``hypermon record``.

    Members
    -------
    figures : the newest that the recorder said of itself; see :mod:`hypermon.host.feed`.
    """

    def __init__(self, board: str, run: Path, options: Sequence[str]):
        self.figures: dict[str, Any] = {}
        self._said: list[str] = []
        command = command_of(board, run, options)
        # In a group of its own, so that Ctrl-C in the terminal is for the view alone, which then stops this.
        self._process = subprocess.Popen(
            _hypermon(*command[1:], "--json"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        self._threads = [threading.Thread(target=target, args=(stream,), daemon=True) for target, stream in
                         ((self._read_figures, self._process.stdout), (self._read_words, self._process.stderr))]
        for thread in self._threads:
            thread.start()

    def _read_figures(self, stream: IO[str]) -> None:
        for line in stream:
            self.figures = json.loads(line)

    def _read_words(self, stream: IO[str]) -> None:
        self._said += [line.strip() for line in stream]

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def failure(self) -> str | None:
        """Why it ended, in its own words; None if it ended well, or has not ended."""
        if self.running or self._process.returncode == 0:
            return None
        self._join()
        return next(reversed(self._said), "") or f"the recorder ended with status {self._process.returncode}"

    def stop(self) -> None:
        """Asks it to end properly: what is on the board is drained."""
        if self.running:
            self._process.send_signal(signal.SIGINT)

    def close(self, patience_s: float = 20.0) -> None:
        """Stops it and waits; one that does not end is killed, and its recording can be read all the same."""
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
