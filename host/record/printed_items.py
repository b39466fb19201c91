"""The items of a recording as lines, while it is made: ``record --print``."""

import os
import subprocess
from pathlib import Path
from types import TracebackType

from hypermon.host.record.process import hypermon_command
from hypermon.host.record.recorder import Interrupt, Moment
from hypermon.host.recording.segments import segments

__all__ = ["PrintedItems"]


class PrintedItems:
    """Prints by a separate process, ``hypermon tail RUN``. Before the end, nothing waits for that process. Use as
    a context manager, which ends when the last line is printed.

    Parameters
    ----------
    run, dictionary : the RUN, and the file of its dictionary.
    interrupt : ends the recording when the reader has gone.

    Members
    -------
    failed : some lines could not be printed, and a message has named the reason.
    """

    def __init__(self, run: Path, dictionary: Path | None, interrupt: Interrupt):
        self._command = hypermon_command("tail", str(run), "--of", str(os.getpid()),
                                         *(["--dictionary", str(dictionary)] if dictionary is not None else []))
        self._run, self._interrupt = run, interrupt
        self._process: subprocess.Popen[bytes] | None = None
        self.failed = False

    def __enter__(self) -> "PrintedItems":
        return self

    def recording(self, moment: Moment) -> None:
        """For :func:`~.recorder.record`."""
        self._begin()
        if self._process is not None and self._process.poll() is not None:
            self._interrupt.hit = True

    def _begin(self) -> None:
        if self._process is None and segments(self._run)[0]:
            # Not of the terminal's group: Ctrl-C ends the recording, and the lines end after it.
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._begin()
        if self._process is None:
            return
        # The recording is whole. Now a second Ctrl-C ends the wait for a slow reader.
        self._interrupt.closing = False
        try:
            if kind is None or issubclass(kind, Exception):
                self.failed = self._process.wait() > 0
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
