"""The stream of a RUN as files: ``stream.bin``, ``stream-00001.bin`` and so on. A ring keeps only the last ones.

A segment begins with a block. For a ring, ``ring.json`` contains the loss accounting at the beginning of the first
remaining segment. It is written before older segments are removed, so a RUN can be read at every moment.
"""

import errno
import itertools
import json
import os
import secrets
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hypermon.hdl.layout import NODES_MAX, Counter
from hypermon.host.errors import HypermonError, system_reason
from hypermon.host.text.json_file import integer, listed, maybe, read_json, sealed, table

__all__ = ["SEGMENT_BYTES", "DiskFullError", "SegmentWriter", "StorageError", "opened", "replace_file",
           "segment_number", "segments", "storage", "stream_sum", "sync_directory", "sync_file", "write_json"]

#: After this number of bytes a new segment begins.
SEGMENT_BYTES = 1 << 30
#: Minimum number of segments in a ring, so that it is never much longer than requested.
_RING_SEGMENTS = 8
_RING = "ring.json"
_COUNT, _STAMP = integer(0, (1 << 64) - 1), integer(-1, (1 << 63) - 1)
#: The account is that of :meth:`.Ledger.account`. A node has two counters more than its own, of regeneration boards,
#: except in older files. The reader itself checks which of its members it needs, and the
#: number of nodes.
_RING_SHAPE = table({"first": integer(0, 99_999), "account": table({}, {
    "came": listed(_STAMP, most=NODES_MAX), "recorded": listed(_COUNT, most=NODES_MAX),
    "agreed": listed(_STAMP, most=NODES_MAX), "last": listed(_STAMP, 2, 2), "window": _STAMP,
    "counters": maybe(listed(listed(_COUNT, len(Counter), len(Counter) + 2), most=NODES_MAX))}, more=True)}, more=True)
#: Errors of the system when there is no space: on the disk, by a quota, in a file.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Errors for directories on file systems that cannot sync them.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


class StorageError(HypermonError):
    """A recording cannot be written any more: its disk fails, or has become read-only."""


class DiskFullError(StorageError):
    """There is no space for more of the recording."""


@contextmanager
def storage(directory: Path) -> Iterator[None]:
    """Writing inside it raises DiskFullError if there is no space, and StorageError if the disk fails otherwise."""
    try:
        yield
    except OSError as error:
        said = f"{directory}: {system_reason(error)}"
        if error.errno in _NO_ROOM:
            raise DiskFullError(f"the disk is full ({said})") from None
        raise StorageError(f"the disk cannot be written ({said})") from None


def sync_file(path: Path) -> None:
    """Makes the contents of the file safe from a power cut."""
    # Windows flushes only what is open for writing.
    _sync(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory safe from a power cut. Without this, a synced file may lose its name.

    Does nothing where a directory cannot be opened (Windows): its file system keeps a journal of names.
    """
    if sys.platform == "win32":
        return
    try:
        _sync(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Segment(NamedTuple):
    """A file of the stream, with the board's time and the accounting (see :meth:`.Ledger.account`) at its beginning."""

    number: int
    begin_ps: int
    account: dict[str, Any] | None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """:func:`replace_file` with these values and their checksum."""
    replace_file(path, f"{json.dumps(sealed(values), indent=2)}\n".encode())


def replace_file(path: Path, data: bytes) -> None:
    """Replaces a file as a whole. A power cut leaves the old file or the new one. When this returns, the new file is
    safe. If ``path`` is a link, the link is replaced.

    The new file has a name of its own until it is whole, so that writers do not disturb each other.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with open(aside, "xb") as file:     # exclusively: no link is followed
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _path(directory: Path, index: int) -> Path:
    return directory / (f"stream-{index:05}.bin" if index else "stream.bin")


def segment_number(path: Path) -> int:
    """The number of a file within its stream."""
    return int(path.stem.partition("-")[2] or 0)


def stream_sum(path: Path) -> int:
    """Adler-32 of a file of a stream.

    A CRC-32 would be the same for all streams of one size: every block ends with its own CRC-32, which leaves a
    constant.
    """
    total = 1
    with open(path, "rb") as file:
        while piece := file.read(1 << 22):
            total = zlib.adler32(piece, total)
    return total


def segments(directory: Path) -> tuple[list[Path], dict[str, Any] | None]:
    """The files of a RUN's stream, in order, and the accounting at its beginning; None: the stream begins with the run.

    A ring that is being recorded may delete these files soon; :func:`opened` keeps them readable.

    Raises InputError if ``ring.json`` is damaged.
    """
    while True:
        first, account = _begin(directory)
        paths = (_path(directory, index) for index in itertools.count(first))
        there = list(itertools.takewhile(Path.is_file, paths))
        if there or _begin(directory)[0] == first:
            return there, account


def _begin(directory: Path) -> tuple[int, dict[str, Any] | None]:
    """The first file that belongs to the stream, and the accounting at its beginning."""
    with suppress(FileNotFoundError):
        values = read_json(directory / _RING, _RING_SHAPE)
        return values["first"], values["account"]
    return 0, None


@contextmanager
def opened(directory: Path) -> Iterator[tuple[list[BinaryIO], dict[str, Any] | None]]:
    """:func:`segments`, open: they can be read to their end even if a ring deletes them meanwhile."""
    with ExitStack() as stack:
        while True:
            paths, account = segments(directory)
            try:
                files: list[BinaryIO] = [stack.enter_context(open(path, "rb")) for path in paths]
                break
            except FileNotFoundError:       # deleted between the two
                stack.close()
        yield files, account


class SegmentWriter:
    """Writes a stream. Appended data is with the operating system.

    Parameters
    ----------
    directory : of the RUN.
    segment_bytes : after this number of bytes a new segment begins.
    ring_ps : of the board's time that is kept at least; None: all.
    """

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES, ring_ps: int | None = None):
        self._directory, self._segment_bytes, self._ring_ps = directory, segment_bytes, ring_ps
        self._segments = deque([_Segment(0, 0, None)])
        self._size, self._sum = 0, 1
        self._whole: dict[str, list[int]] = {}
        self._file = open(_path(directory, 0), "xb", buffering=0)  # noqa: SIM115

    def append(self, data: bytes | memoryview) -> None:
        """Appends data. Raises StorageError if it cannot be written; the part that fitted is then in the file."""
        view = memoryview(data)
        with storage(self._directory):
            while view:
                written = self._file.write(view)
                self._sum = zlib.adler32(view[:written], self._sum)
                view = view[written:]
                self._size += written

    def due(self, now_ps: int) -> bool:
        """A new segment should begin with the next block."""
        return self._size >= self._segment_bytes or (
            self._ring_ps is not None and now_ps - self._segments[-1].begin_ps >= self._ring_ps // _RING_SEGMENTS)

    def begin(self, now_ps: int, account: dict[str, Any]) -> None:
        """Begins a segment and deletes those that a ring no longer needs. Raises StorageError."""
        self.sync()
        with storage(self._directory):
            number = self._segments[-1].number + 1
            file, old = open(_path(self._directory, number), "xb", buffering=0), self._file  # noqa: SIM115
            self._whole = self.contents()
            self._file, self._size, self._sum = file, 0, 1
            self._segments.append(_Segment(number, now_ps, account))
            old.close()     # may report an error of the disk; the new segment is in use then, and can be ended
            sync_directory(self._directory)
            self._remove_old(now_ps)

    def _remove_old(self, now_ps: int) -> None:
        old = []
        while self._ring_ps is not None and len(self._segments) > 1 and \
                self._segments[1].begin_ps <= now_ps - self._ring_ps:
            old.append(self._segments.popleft())
        if old:
            first = self._segments[0]
            write_json(self._directory / _RING, {"first": first.number, "account": first.account})
            for segment in old:
                _path(self._directory, segment.number).unlink()
                del self._whole[_path(self._directory, segment.number).name]

    def contents(self) -> dict[str, list[int]]:
        """Bytes and :func:`stream_sum` of every existing file of the stream, by its name."""
        return {**self._whole, _path(self._directory, self._segments[-1].number).name: [self._size, self._sum]}

    def sync(self) -> None:
        """Makes everything up to here safe from a power cut. Raises StorageError."""
        with storage(self._directory):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
