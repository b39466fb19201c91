"""Reads a recording as it grows, and tells whether its recorder is at work."""

import os
import time
from pathlib import Path
from types import TracebackType

from hypermon.host.recording.locking import held
from hypermon.host.recording.segments import segment_number, segments
from hypermon.host.recording.writer import RESERVE

__all__ = ["Pulse", "Tail"]

#: Seconds without a byte after which a recorder is gone: if the system says that it has no lock, which may be that of
#: another computer's process, and if the system cannot tell. A board sends a census every second at least.
_UNLOCKED_S, _GONE_S = 2.5, 30.0

#: Without O_BINARY, Windows would change line ends.
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class Tail:
    """The bytes of a RUN's stream from the first that exists, and those that are appended meanwhile.

    Parameters
    ----------
    run : the directory; its stream need not exist yet.

    Members
    -------
    number : of the file that is read; -1 before the first.
    skipped : a ring has deleted files before they were read.
    """

    def __init__(self, run: Path):
        self._run = run
        self._descriptor: int | None = None
        self.number = -1
        self.skipped = False
        self._at = 0

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def read(self, limit: int = 1 << 22) -> bytes:
        """The next bytes; none if there are none yet. In a ring, data deleted before it was read is skipped."""
        data = self._more(limit)
        # A file that has a successor is complete, but may have grown since it was checked.
        while not data and (later := self._later()):
            data = self._more(limit)
            if not data:
                self.close()
                try:
                    self._descriptor = os.open(later[0], _READ)
                except FileNotFoundError:
                    continue
                self._advance(segment_number(later[0]))
                data = self._more(limit)
        return data

    def _advance(self, number: int) -> None:
        self.skipped |= self.number >= 0 and number != self.number + 1
        self.number, self._at = number, 0

    def open(self) -> None:
        """Opens the first file, if there is one; nothing is read."""
        self.read(0)

    def _more(self, limit: int) -> bytes:
        if self._descriptor is None:
            return b""
        os.lseek(self._descriptor, self._at, os.SEEK_SET)
        data = os.read(self._descriptor, limit)
        self._at += len(data)
        return data

    def _later(self) -> list[Path]:
        return [path for path in segments(self._run)[0] if segment_number(path) > self.number]

    @property
    def behind(self) -> int:
        """Bytes that exist and have not been read."""
        own = 0 if self._descriptor is None else os.fstat(self._descriptor).st_size - self._at
        return max(own, 0) + sum(path.stat().st_size for path in self._later() if path.exists())

    def close(self) -> None:
        """Releases the file; may be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Pulse:
    """Watches a RUN grow. Times are those of this process: the clocks of a file system and of this computer differ."""

    def __init__(self, run: Path):
        self._run, self._at = run, time.monotonic()
        self._end = self._state()

    def grew(self) -> bool:
        """Whether there is more than at the last look."""
        before, self._end = self._end, self._state()
        return self._end != before

    def alive(self) -> bool:
        """Whether the recorder is at work, or has written anything lately."""
        works = held(self._run / RESERVE)
        if works:
            return True
        if self.grew():
            self._at = time.monotonic()
        return time.monotonic() - self._at < (_GONE_S if works is None else _UNLOCKED_S)

    def _state(self) -> tuple[str, int]:
        """The last file of the stream, and its size: in a ring, the sum may stay the same."""
        for path in reversed(segments(self._run)[0]):
            try:
                return path.name, path.stat().st_size
            except FileNotFoundError:
                continue
        return "", 0
