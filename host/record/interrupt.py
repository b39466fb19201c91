"""Ctrl-C during a recording: a request to end it, so that everything that was captured is kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ENDS", "Interrupt", "handled"]

#: Signals that end a recording properly. SIGHUP: the terminal or its connection is gone. Windows has none, and sends
#: SIGBREAK to a process group.
ENDS = (signal.SIGINT, signal.SIGTERM, *(getattr(signal, name) for name in ("SIGHUP", "SIGBREAK")
                                         if hasattr(signal, name)))


def handled() -> list[signal.Signals]:
    """:data:`ENDS` without a SIGHUP that the program was started to ignore, as ``nohup`` does."""
    return [number for number in ENDS if number.name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN]


class Interrupt:
    """Ctrl-C (or SIGTERM, SIGHUP) as a request: the first is noted, the second raises KeyboardInterrupt. A SIGHUP never
    does, because the system and the shell may each send one for the same closed terminal.

    Members
    -------
    hit : a request was noted. ``why``: the reason that the recording then states for its end.
    closing : the final data is being written; no signal raises an exception any more.
    """

    def __init__(self) -> None:
        self.hit = self.closing = False
        self.why = "interrupted"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.hit and not self.closing and number != getattr(signal, "SIGHUP", None):
            raise KeyboardInterrupt
        self.hit = True

    @contextmanager
    def noted(self) -> Iterator["Interrupt"]:
        """Inside this context the signals are only noted."""
        before = {n: signal.signal(n, self._handle) for n in handled()}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
