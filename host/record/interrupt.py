"""Ctrl-C during a recording: a request to end it, so that everything that was captured is kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ENDS", "Interrupt"]

#: Signals that end a recording properly; Windows sends SIGBREAK to a process group.
ENDS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGBREAK] if hasattr(signal, "SIGBREAK") else []))


class Interrupt:
    """Ctrl-C (or SIGTERM) as a request: the first is noted, the second raises KeyboardInterrupt.

    Members
    -------
    hit : it was noted.
    closing : the final data is being written: no signal raises an exception any more.
    """

    def __init__(self) -> None:
        self.hit = self.closing = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.hit and not self.closing:
            raise KeyboardInterrupt
        self.hit = True

    @contextmanager
    def noted(self) -> Iterator["Interrupt"]:
        """Inside this context the signals are only noted."""
        before = {n: signal.signal(n, self._handle) for n in ENDS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
