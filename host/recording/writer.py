"""Writes a RUN: blocks as they arrive, groups of frames, and finally the way in which the recording ended.

The files of a RUN are listed at :mod:`.directory`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from hypermon.host.errors import HypermonError
from hypermon.host.recording.aside import discard
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.directory import refuse_name
from hypermon.host.recording.info import RunInfo, utc_now
from hypermon.host.recording.locking import hold
from hypermon.host.recording.parts import checksum, described
from hypermon.host.recording.segments import (
    SEGMENT_BYTES,
    SegmentWriter,
    StorageError,
    storage,
    sync_directory,
    write_json,
)
from hypermon.host.tables.parquet import GROUP_SCHEMA, TableWriter

__all__ = ["RESERVE", "RunWriter", "new_directory", "refuse_existing"]

#: A file that exists while a RUN is recorded, and is locked by its recorder, and its bytes.
RESERVE, _RESERVED = ".reserve", 1 << 16
#: The groups until the recording has ended.
_GROUPS_NEW = ".groups.parquet.new"


def refuse_existing(path: Path) -> None:
    """Raises HypermonError unless a new RUN can be created at ``path``."""
    refuse_name(path)
    if os.path.lexists(path):
        raise HypermonError(f"{path}: it exists already; name a new directory, a recording is never overwritten")
    if not path.parent.is_dir():
        raise HypermonError(f"{path}: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise HypermonError(f"{path}: nothing can be written in {path.parent.absolute()}; name a directory of your own")


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A directory under a hidden name beside ``path``, which gets that name at the end; an exception removes it.

    Raises HypermonError unless it can be created.
    """
    refuse_existing(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    discard(aside)    # of an earlier process with the same number
    aside.mkdir()
    try:
        with storage(aside):
            yield aside
            _name(aside, path)
    finally:
        discard(aside)


def _name(aside: Path, path: Path) -> None:
    """Gives a directory its name, safe from a power cut, or raises OSError and leaves it where it was."""
    os.rename(aside, path)
    try:
        sync_directory(path.parent)
    except OSError:
        os.rename(path, aside)
        raise


class RunWriter:
    """Writes a RUN. Use it as a context manager: an exception inside removes an ``aside`` RUN, and one that has not
    ``begun``.

    Parameters
    ----------
    path : of the RUN; must not exist.
    info : written to ``recording.json`` at once.
    aside : build under a hidden name beside ``path``; :meth:`close` renames it. For runs that are worth nothing if they
        fail. Otherwise the RUN is visible from the start.
    segment_bytes : of the stream; see :class:`.segments.SegmentWriter`.

    Members
    -------
    begun : the RUN may contain something that is worth keeping.
    """

    def __init__(self, path: Path, info: RunInfo, aside: bool = False, segment_bytes: int = SEGMENT_BYTES):
        refuse_existing(path)
        self.path, self.info = path, info
        self._aside, self.begun = aside, False
        self.directory = path.with_name(f".{path.name}.{os.getpid()}.new") if aside else path
        self._groups: TableWriter | None = None
        self._closed = False
        self._held: int | None = None
        stream: SegmentWriter | None = None
        self._make()
        ring = None if info.ring_seconds is None else round(info.ring_seconds * 1e12)
        try:
            with storage(self.directory):
                write_json(self.directory / "recording.json", info.as_dict())
                # Space for the final write of a recording that has filled the disk.
                (self.directory / RESERVE).write_bytes(bytes(_RESERVED))
                self._held = hold(self.directory / RESERVE)
                self._stream = stream = SegmentWriter(self.directory, segment_bytes, ring)
                if info.drain == "registers":
                    self._groups = TableWriter(self.directory / _GROUPS_NEW, GROUP_SCHEMA)
                sync_directory(self.directory.parent)
        except BaseException:
            if stream is not None:
                with suppress(OSError):     # it would hide why the recording failed
                    stream.close()
            self._let_go()
            discard(self.directory)
            raise

    def _make(self) -> None:
        """Creates the directory for this recorder alone. Raises HypermonError if another recorder was faster."""
        if self._aside:     # of an earlier process with the same number
            discard(self.directory)
        try:
            with storage(self.directory.parent):
                self.directory.mkdir()
        except StorageError:
            refuse_existing(self.path)
            raise

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._let_go()
        if self._closed:
            return
        with suppress(OSError):     # it would hide why the recording failed
            self._stream.close()
        if self._aside or (kind is not None and not self.begun):
            discard(self.directory)

    def _let_go(self) -> None:
        """Says that nobody records any more: the RUN has its end, or never will."""
        if self._held is not None:
            with suppress(OSError):     # nothing was written through it
                os.close(self._held)
            self._held = None

    def append(self, data: bytes | memoryview) -> None:
        """Appends bytes of the stream. They are with the operating system when this returns. Raises StorageError."""
        self.begun = True
        self._stream.append(data)

    def due(self, now_ps: int) -> bool:
        """A new segment should begin with the next block."""
        return self._stream.due(now_ps)

    def begin_segment(self, now_ps: int, account: dict[str, Any]) -> None:
        """Begins a new segment; see :meth:`.SegmentWriter.begin`."""
        self._stream.begin(now_ps, account)

    def add_groups(self, groups: list[tuple[int, int, int]]) -> None:
        """Adds groups that were read: frames, first_ps, last_ps."""
        if self._groups is not None:
            with storage(self.directory):
                self._groups.add(list(groups))

    def sync(self) -> None:
        """Makes everything up to here safe from a power cut. Raises StorageError."""
        self._stream.sync()

    def close(self, **end: Any) -> dict[str, Any]:
        """Completes the RUN: ``end`` becomes that of ``recording.json``.

        If something cannot be written any more, the end is recorded as not proper, and everything else is completed.

        Returns
        -------
        the end as it is in ``recording.json``.

        Raises
        ------
        StorageError
            if not even that could be written.
        """
        for step in (self._free_reserve, self.sync, self._stream.close, self._close_groups,
                     partial(self._describe, end)):
            try:
                with storage(self.directory):
                    step()
            except StorageError as error:
                if end.get("all_written", True):
                    end |= {"how": f"{end.get('how')}, but {error}", "proper": False, "all_written": False}
        with suppress(OSError):     # what could not be completed
            (self.directory / _GROUPS_NEW).unlink(missing_ok=True)
        self.info.end = {**end, "ended": utc_now(), "stream": self._stream.contents()}
        self._write_info()
        if self._aside:
            refuse_existing(self.path)
            with storage(self.path):
                _name(self.directory, self.path)
            self.directory = self.path
        self._closed = True
        return self.info.end

    def _describe(self, end: dict[str, Any]) -> None:
        """Adds what the files beside the stream contain."""
        if self._groups is not None and end.get("all_written", True):
            end["groups"] = described(self.directory / "groups.parquet")
        if (self.directory / CLOCK).is_file():
            end["clock"] = checksum(self.directory / CLOCK)

    def _write_info(self) -> None:
        """Raises StorageError; a second attempt is then made to record the failure, in case the disk has recovered."""
        assert self.info.end is not None
        try:
            with storage(self.directory):
                write_json(self.directory / "recording.json", self.info.as_dict())
        except StorageError as error:
            self.info.end |= {"how": f"{self.info.end.get('how')}, but {error}", "proper": False}
            with suppress(OSError):
                write_json(self.directory / "recording.json", self.info.as_dict())
            raise

    def _free_reserve(self) -> None:
        (self.directory / RESERVE).unlink(missing_ok=True)

    def _close_groups(self) -> None:
        if self._groups is not None:
            self._groups.close()
            os.replace(self.directory / _GROUPS_NEW, self.directory / "groups.parquet")
