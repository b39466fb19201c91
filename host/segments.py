"""The stream of a RUN as files: ``stream.bin``, then ``stream-00001.bin`` and on; of a ring only the last ones.

A segment begins with a block. What the accounts were when the first of a ring's segments began is in ``ring.json``,
which is written before older ones go: a RUN can be read at every moment.
"""

import errno
import itertools
import json
import os
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from hypermon.host.errors import HypermonError, InputError

__all__ = ["SEGMENT_BYTES", "DiskFullError", "SegmentWriter", "no_room", "segment_number", "segments", "write_json"]

#: After so many bytes a new segment begins.
SEGMENT_BYTES = 1 << 30
#: A ring has at least so many segments, so that it is never much longer than asked for.
_RING_SEGMENTS = 8
_RING = "ring.json"
#: What the system says when there is no room: on the disk, by a quota, in a file.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def no_room(error: OSError) -> bool:
    """The error says that the disk, a quota or a file is full."""
    return error.errno in _NO_ROOM


class DiskFullError(HypermonError):
    """There is no room for more of the recording."""


class _Segment(NamedTuple):
    """A file of the stream; the board's time and the accounts (see :meth:`.Ledger.account`) when it began."""

    number: int
    begin_ps: int
    account: dict[str, Any] | None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Replaces a file as a whole: a power cut leaves the old one or the new one."""
    aside = path.with_name(f".{path.name}.new")
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _path(directory: Path, index: int) -> Path:
    return directory / (f"stream-{index:05}.bin" if index else "stream.bin")


def segment_number(path: Path) -> int:
    """Which of a stream's files it is."""
    return int(path.stem.partition("-")[2] or 0)


def segments(directory: Path) -> tuple[list[Path], dict[str, Any] | None]:
    """The files of a RUN's stream, in order, and the accounts when it begins; None: at the beginning of the run.

    Raises InputError if ``ring.json`` is none.
    """
    first, account = 0, None
    ring = directory / _RING
    if ring.is_file():
        try:
            values = json.loads(ring.read_text("utf-8"))
            first, account = int(values["first"]), dict(values["account"])
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(ring, None, f"it does not say which part of the recording is there: {error!r}") from None
    paths = (_path(directory, index) for index in itertools.count(first))
    return list(itertools.takewhile(Path.is_file, paths)), account


class SegmentWriter:
    """Writes a stream. What has been appended is with the operating system.

    Parameters
    ----------
    directory : of the RUN.
    segment_bytes : after so many a new segment begins.
    ring_ps : of the board's time that is kept at least; None: all.
    """

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES, ring_ps: int | None = None):
        self._directory, self._segment_bytes, self._ring_ps = directory, segment_bytes, ring_ps
        self._segments = deque([_Segment(0, 0, None)])
        self._size = 0
        self._file = open(_path(directory, 0), "xb", buffering=0)  # noqa: SIM115

    def append(self, data: bytes | memoryview) -> None:
        """Raises DiskFullError when there is no room; what fitted is there then."""
        view = memoryview(data)
        try:
            while view:
                written = self._file.write(view)
                view = view[written:]
                self._size += written
        except OSError as error:
            if no_room(error):
                raise DiskFullError(f"{self._directory}: {error.strerror}") from None
            raise

    def due(self, now_ps: int) -> bool:
        """A new segment should begin with the next block."""
        return self._size >= self._segment_bytes or (
            self._ring_ps is not None and now_ps - self._segments[-1].begin_ps >= self._ring_ps // _RING_SEGMENTS)

    def begin(self, now_ps: int, account: dict[str, Any]) -> None:
        """A new segment, and the end of those that a ring does not need any more."""
        self.sync()
        self._file.close()
        self._segments.append(_Segment(self._segments[-1].number + 1, now_ps, account))
        self._file = open(_path(self._directory, self._segments[-1].number), "xb", buffering=0)  # noqa: SIM115
        self._size = 0
        old = []
        while self._ring_ps is not None and len(self._segments) > 1 and \
                self._segments[1].begin_ps <= now_ps - self._ring_ps:
            old.append(self._segments.popleft())
        if old:
            first = self._segments[0]
            write_json(self._directory / _RING, {"first": first.number, "account": first.account})
            for segment in old:
                _path(self._directory, segment.number).unlink()

    def sync(self) -> None:
        """Safe from a power cut, up to here."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
