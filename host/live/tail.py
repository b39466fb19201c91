"""A recording as it grows."""

import os
from pathlib import Path
from types import TracebackType

__all__ = ["Tail"]


class Tail:
    """The bytes of a RUN's stream from its beginning, and those that are appended meanwhile.

    Parameters
    ----------
    run : the directory; its stream need not be there yet.
    """

    def __init__(self, run: Path):
        self._path = run / "stream.bin"
        self._descriptor: int | None = None
        self._at = 0

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def read(self, limit: int = 1 << 22) -> bytes:
        """The next bytes; none if none are there yet."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY)
            except FileNotFoundError:
                return b""
        data = os.pread(self._descriptor, limit, self._at)
        self._at += len(data)
        return data

    @property
    def behind(self) -> int:
        """Bytes that are there and have not been read."""
        return 0 if self._descriptor is None else max(os.fstat(self._descriptor).st_size - self._at, 0)

    def close(self) -> None:
        """Lets go of the file; may be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
