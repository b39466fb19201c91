"""A recording as it grows."""

import os
from pathlib import Path
from types import TracebackType

from hypermon.host.segments import segment_number, segments

__all__ = ["Tail"]


class Tail:
    """The bytes of a RUN's stream from its beginning, and those that are appended meanwhile.

    Parameters
    ----------
    run : the directory; its stream need not be there yet.
    """

    def __init__(self, run: Path):
        self._run = run
        self._path: Path | None = None
        self._descriptor: int | None = None
        self._at = 0

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def read(self, limit: int = 1 << 22) -> bytes:
        """The next bytes; none if none are there yet."""
        data = self._read(limit)
        # A segment that is followed by another one grows no more.
        if not data and (following := self._following()) is not None:
            data = self._read(limit)
            if not data and self._open(following):
                data = self._read(limit)
        return data

    def _open(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # a ring has gone on meanwhile
            return False
        self.close()
        self._descriptor, self._path, self._at = descriptor, path, 0
        return True

    def _read(self, limit: int) -> bytes:
        if self._descriptor is None:
            return b""
        data = os.pread(self._descriptor, limit, self._at)
        self._at += len(data)
        return data

    def _following(self) -> Path | None:
        """The next segment of the stream that is there."""
        paths = segments(self._run)[0]
        return next((path for path in paths if self._path is None or segment_number(path) > segment_number(self._path)),
                    None)

    @property
    def behind(self) -> int:
        """Bytes that are there and have not been read."""
        return 0 if self._descriptor is None else max(os.fstat(self._descriptor).st_size - self._at, 0)

    def close(self) -> None:
        """Lets go of the file; may be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
