"""The directory of a RUN as it was recorded, before decoding. It can be opened even if it is damaged or incomplete.

    RUN/recording.json   what was recorded and how: complete from the start, written again at the end
    RUN/stream.bin       the blocks as they arrived, append-only; continued in stream-00001.bin, ...
    RUN/clock.json       the board's time in UTC; see :mod:`.clock`
    RUN/drift.bin        of a board that keeps its own clock while it follows another one: see :mod:`.drift_log`
    RUN/groups.parquet   with register drain: the groups of frames that were read
    RUN/board-0, board-1, ...   with several boards: a RUN of each, instead of the stream; see :mod:`.board_store`
    RUN/events/*.parquet, loss.parquet, decode.json    added by decoding
"""

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import InputError
from hypermon.host.recording.clock import CLOCK, WallClock, load_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.linked_copy import given
from hypermon.host.recording.parts import checksum, fault
from hypermon.host.recording.segments import opened, segments
from hypermon.host.tables.parquet import GROUP_SCHEMA, checked_table

__all__ = ["RunDirectory", "refuse_name"]


def refuse_name(path: Path) -> None:
    """Raises InputError for a name that pyarrow and DuckDB could not open."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="backslashreplace").decode()
        raise InputError(shown, None, "its name is not UTF-8, and tables in it could not be read: choose another "
                                      "name") from None


class RunDirectory:
    """The recording in a RUN: everything that exists without decoding.

    Parameters
    ----------
    path : the directory.

    Members
    -------
    info : :class:`.RunInfo`.

    Raises
    ------
    InputError
        if it is not a recording, or one of several boards of which one is a link.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        refuse_name(self.path)
        self.info = RunInfo.load(self.path / "recording.json")
        for name in self.info.boards:
            # Commands write into the recordings of the boards, and must not write elsewhere.
            if (self.path / name).is_symlink():
                raise InputError(self.path / name, None, "a link, not a recording in this run, and commands would "
                                                         "write where it leads; move the recording here instead")
        self.stream_path = self.path / "stream.bin"
        if not self.info.boards and not segments(self.path)[0]:
            raise InputError(self.path, None, "no stream.bin here: it is not a recorded run")

    @property
    def given(self) -> Path:
        """The path for messages: see :func:`.linked_copy.given`."""
        return given(self.path)

    @property
    def stream_size(self) -> int:
        """Bytes of the stream that exist; with several boards, of all their streams."""
        if self.info.boards:
            return sum(part.stream_size for part in self.parts())
        with opened(self.path) as (files, _):
            return sum(os.fstat(file.fileno()).st_size for file in files)

    def parts(self) -> list[Self]:
        """The recordings of the boards; none unless there are several. Raises InputError if one is missing."""
        return [type(self)(self.path / name) for name in self.info.boards]

    @property
    def begins(self) -> dict[str, Any] | None:
        """The loss accounting at the beginning of a ring's remaining stream; see :meth:`.Ledger.resume`."""
        return self._checked_account(segments(self.path)[1])

    def _checked_account(self, account: dict[str, Any] | None) -> dict[str, Any] | None:
        """The accounting in ``ring.json``, if it is intact; raises InputError."""
        if account is None:
            return None
        missing = [name for name in ("came", "recorded", "agreed", "counters", "last", "window") if name not in account]
        if missing:
            raise InputError(self.path / "ring.json", None, f"it makes no sense: account.{missing[0]} is missing")
        nodes = [account[name] for name in ("came", "recorded", "agreed", "counters")]
        if any(values is not None and len(values) != self.info.nodes for values in nodes):
            raise InputError(self.path / "ring.json", None, f"its accounts are not of {self.info.nodes} nodes")
        return account

    def pieces(self, size: int = 1 << 22) -> Iterator[bytes]:
        """The stream, piece by piece."""
        with self.stream(size) as (_, pieces):
            yield from pieces

    @contextmanager
    def stream(self, size: int = 1 << 22) -> Iterator[tuple[dict[str, Any] | None, Iterator[bytes]]]:
        """The accounting at the beginning of the stream, as :attr:`begins`, and the stream from there, piece by piece.

        Both match, even if a ring that is being recorded drops segments meanwhile.
        """
        with opened(self.path) as (files, account):
            pieces = (piece for file in files for piece in iter(partial(file.read, size), b""))
            yield self._checked_account(account), pieces

    def refuse_without_events(self) -> None:
        """Raises InputError if the run was recorded without events."""
        if self.info.keep == "stats":
            raise InputError(self.path, None, "it was recorded with --keep stats: it contains no items")

    def groups_file(self) -> Path | None:
        """The file of the groups that were read, for a finished run with register drain; None if there is none.

        Raises InputError if it is not what was recorded.
        """
        path, said = self.path / "groups.parquet", (self.info.end or {}).get("groups")
        reason = None if said is None else fault(path, said, whole=True)
        if reason is not None:
            raise InputError(path, None, f"it {reason}, and no other file has the groups; to read the rest, remove "
                                         "\"groups\" from recording.json")
        return checked_table(path, GROUP_SCHEMA) if path.is_file() else None

    @property
    def clock(self) -> WallClock:
        """The mapping to UTC. If none was written, it is based on the computer's clock at the start.

        Raises InputError if ``clock.json`` is damaged or belongs to another run.
        """
        if self.info.boards:
            return type(self)(self.path / self.info.boards[0]).clock
        began = datetime.datetime.fromisoformat(self.info.started)
        clock, said = load_clock(self.path), (self.info.end or {}).get("clock")
        if clock is not None and said is not None and checksum(self.path / CLOCK) != said:
            raise InputError(self.path / CLOCK, None, "it is not the one that was recorded; remove it, and UTC is "
                                                      "taken from the computer's clock at the start")
        return clock or WallClock(round(began.timestamp() * 1e9))

    @property
    def clock_gone(self) -> bool:
        """``clock.json`` was recorded, and is no longer there; UTC is then that of the start."""
        return (self.info.end or {}).get("clock") is not None and not os.path.lexists(self.path / CLOCK)

    def utc(self, times_ps: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """UTC of times of the board. ``clock`` states the uncertainty."""
        return self.clock.utc(times_ps)
