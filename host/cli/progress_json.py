"""Progress of a recording for programs: lines of JSON; a slow reader misses some."""

import contextlib
import json
import os
import stat
import sys
import time
from typing import Any

from hypermon.host.decode.ledger import Ledger
from hypermon.host.record.recorder import Interrupt, Moment

__all__ = ["ProgressJson"]

_EVERY_S = 0.1


class ProgressJson:
    """Writes a line ten times a second at most. If the pipe is full, lines are dropped; the recorder never waits.

    A line is shorter than what a pipe takes as a whole or not at all (PIPE_BUF), so none is torn.

    Parameters
    ----------
    descriptor : where to.
    interrupt : ends the recording when the reader has gone.
    """

    def __init__(self, descriptor: int, interrupt: Interrupt):
        self._descriptor, self._interrupt = descriptor, interrupt
        self._said = 0.0
        self._place: dict[str, float] = {}
        kind = os.fstat(descriptor).st_mode
        # A terminal or file is shared with others, and takes all.
        self._pipe = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)

    def recording(self, moment: Moment) -> None:
        """For :func:`~.recorder.record`."""
        now = time.monotonic()
        self._place = {"board_s": round(moment.board_s, 6), "bytes": moment.bytes}
        if now - self._said < _EVERY_S:
            return
        self._said = now
        line = json.dumps(_figures(moment.ledger) | self._place)
        self._block(False)
        try:
            os.write(self._descriptor, f"{line}\n".encode())
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._interrupt.hit = True
        finally:
            self._block(True)

    def _block(self, blocking: bool) -> None:
        """Whether a write waits for a slow reader. On Windows it always does: a pipe there offers nothing else."""
        if self._pipe and sys.platform != "win32":
            os.set_blocking(self._descriptor, blocking)

    def end(self, ledger: Ledger, how: str, proper: bool = True,
            junk: dict[str, Any] | None = None, rejecting: dict[str, Any] | None = None) -> None:
        """The last line: the accounts, ``how`` it ended, whether that was as it was asked to, how
        many items make no sense, and nodes of which many were rejected."""
        last = _figures(ledger) | self._place | {"how": how, "proper": proper, "junk": junk, "rejecting": rejecting}
        with contextlib.suppress(BrokenPipeError):
            os.write(self._descriptor, f"{json.dumps(last)}\n".encode())


def _figures(ledger: Ledger) -> dict[str, Any]:
    census = ledger.census
    return {
        "events": ledger.events, "lost": ledger.lost, "events_per_node": ledger.per_node.tolist(),
        "lost_per_node": ledger.lost_per_node, "lost_on_link": sum(ledger.link_lost),
        "frame_level": census.frame_level if census is not None else 0,
        "vector_level": census.vector_level if census is not None else 0,
        "missing_blocks": ledger.missing_blocks, "torn_bytes": ledger.torn_bytes,
    }
