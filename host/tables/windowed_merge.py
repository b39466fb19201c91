"""Merges the events of several boards by time, slice by slice, in constant memory.

Each board's files are in order. The statistics of their row groups show how many events there are at which time. They
divide the run into slices of time of about equally many events. Only the row groups that a slice touches are in memory.
The events of a slice are sorted runs, one a board, and are put in order in time that does not depend on the number of
boards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.blocks.item_merge import Room, time_order
from hypermon.host.errors import InputError
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["GROUP_EVENTS", "SLICE_EVENTS", "merged_batches"]

#: Maximum number of events in a slice, unless more have the same time; and how many there should be.
SLICE_EVENTS = 1 << 22
_WANTED = 1 << 20
#: Events in one row group of every board. All these row groups may be in memory at the same time.
GROUP_EVENTS = 1 << 24
#: Maximum rows in a batch.
_ROWS = 1 << 18
#: Files that stay open between their row groups: opening one takes as long as reading 20,000 events. Some systems allow
#: a program 256.
_FILES = 192

class _Group(NamedTuple):
    """A row group: the times of its first and its last event, and how many it has."""

    path: Path
    metadata: pq.FileMetaData
    number: int
    first: int
    last: int
    rows: int


def merged_batches(boards: Sequence[Sequence[Path]], selection: Selection) -> Iterator[pa.RecordBatch]:
    """The selected events of several boards by time, ties by board, then in the order of the board's files.

    With nodes that ascend from board to board, these are ties by node.

    Parameters
    ----------
    boards : the files of each board, in order; every file is in order of time.
    """
    if len(boards) == 1:
        yield from selected_batches(boards[0], selection)
        return
    needed = None if selection.needed is None else list(dict.fromkeys(["time_ps", *selection.needed]))
    read = Selection(selection.nodes, selection.from_ps, selection.to_ps, needed)
    groups = [own for paths in boards if (own := _groups(paths, selection))]
    if not groups:
        return
    every = [group for own in groups for group in own]
    schema, room = _schema(every, needed), Room()
    with _Files() as files:
        sources = [_Source(own, read, schema, files) for own in groups]
        for until in [*_limits(every), None]:
            for table in _in_order([piece for source in sources for piece in source.take(until)], schema, room):
                yield from (table if selection.columns is None else table.select(list(selection.columns))
                            ).to_batches(_ROWS)


def _groups(paths: Sequence[Path], selection: Selection) -> list[_Group]:
    """The row groups that may contain selected events. Raises InputError if one does not state its times."""
    found = []
    for path in paths:
        metadata = pq.read_metadata(path)
        at = {metadata.schema.column(k).name: k for k in range(metadata.num_columns)}
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not group.num_rows:
                continue
            times, nodes = (group.column(at[name]).statistics for name in ("time_ps", "node"))
            if times is None or not times.has_min_max:
                raise InputError(path, None, "its row groups do not state their times")
            if selection.touches(times.min, times.max) and _has_nodes(nodes, selection):
                found.append(_Group(path, metadata, number, times.min, times.max, group.num_rows))
    return found


def _has_nodes(statistics: pq.Statistics | None, selection: Selection) -> bool:
    return selection.nodes is None or statistics is None or not statistics.has_min_max or any(
        statistics.min <= node <= statistics.max for node in selection.nodes)


def _limits(groups: Sequence[_Group]) -> list[int]:
    """Times between slices of about as many events as are wanted, if events are evenly spread within a row group."""
    if not groups:
        return []
    first, last, rows = (np.array(column) for column in zip(*(group[3:] for group in groups), strict=True))
    begin, end = int(first.min()), int(last.max()) + 1
    low, high = (first - begin).astype(np.float64), (last - begin + 1).astype(np.float64)
    slope = rows / (high - low)
    at = np.concatenate([low, high])
    order = np.argsort(at, kind="stable")
    at, slopes = at[order], np.cumsum(np.concatenate([slope, -slope])[order])
    total = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(at))])
    wanted = np.arange(_WANTED, float(rows.sum()), _WANTED)
    limits = np.interp(wanted, total, at).astype(np.int64) + begin
    return [limit for limit in np.unique(limits).tolist() if begin < limit < end]


def _schema(groups: Sequence[_Group], columns: Sequence[str] | None) -> pa.Schema:
    """That of the rows of all boards."""
    found = {group.path: group.metadata.schema.to_arrow_schema() for group in groups}
    schema = pa.unify_schemas([own.remove_metadata() for own in found.values()], promote_options="permissive")
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


class _Files:
    """Reads row groups. Some files stay open until their last one has been read."""

    def __init__(self) -> None:
        self._open: dict[Path, pq.ParquetFile] = {}

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        for file in self._open.values():
            file.close()

    def read(self, group: _Group, columns: Sequence[str] | None) -> pa.Table:
        file = self._open.pop(group.path, None) or pq.ParquetFile(group.path, metadata=group.metadata)
        try:
            return file.read_row_group(group.number, columns=columns, use_threads=False)
        finally:
            if group.number + 1 < group.metadata.num_row_groups and len(self._open) < _FILES:
                self._open[group.path] = file
            else:
                file.close()


class _Piece(NamedTuple):
    """Consecutive rows of one board. Columns of numbers without nulls are NumPy's, which slices and takes faster."""

    columns: dict[str, Any]
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def of(self, name: str) -> Any:
        return self.columns[name][self.begin:self.end]

    def cut(self, until: int | None) -> "tuple[_Piece | None, _Piece | None]":
        """The rows before a time, and the others; None: no rows."""
        times = self.columns["time_ps"]
        if until is None or times[self.end - 1] < until:
            return self, None
        at = self.begin + int(times[self.begin:self.end].searchsorted(until))
        if at == self.begin:
            return None, self
        return _Piece(self.columns, self.begin, at), _Piece(self.columns, at, self.end)

    def copy(self) -> "_Piece":
        """In memory of its own."""
        rows = {name: self.of(name) for name in self.columns}
        return _Piece({name: column.copy() if isinstance(column, np.ndarray) else column
                       for name, column in rows.items()}, 0, len(self))


@dataclass
class _Source:
    """The selected events of one board, in order.

    The rows of a row group are copied into memory that is used again. The reader's memory is then free for the next row
    group: new memory from the system took a fifth of the time.
    """

    groups: list[_Group]
    selection: Selection
    schema: pa.Schema
    files: _Files

    def __post_init__(self) -> None:
        self._held: _Piece | None = None
        self._next = 0
        self._room = Room()

    def take(self, until: int | None) -> list[_Piece]:
        """The events before a time that have not been taken yet; None: all that are left. Valid until the next call."""
        taken: list[_Piece] = []
        while True:
            if self._held is None:
                if self._next == len(self.groups) or (until is not None and self.groups[self._next].first >= until):
                    return taken
                if taken:
                    taken[-1] = taken[-1].copy()
                self._held = self._read(self.groups[self._next])
                self._next += 1
                continue
            before, self._held = self._held.cut(until)
            if before is not None:
                taken.append(before)
            if self._held is not None:
                return taken

    def _read(self, group: _Group) -> _Piece | None:
        """The selected rows of a row group; None if there are none."""
        table = self.files.read(group, self.selection.columns)
        table = pa.Table.from_batches([self.selection.of(batch) for batch in table.combine_chunks().to_batches()],
                                      None if len(table) else table.schema)
        if table.schema != self.schema:
            table = pa.concat_tables([self.schema.empty_table(), table], promote_options="permissive")
        columns: dict[str, Any] = {}
        for name in self.schema.names:
            column = table[name]
            if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
                columns[name] = column.combine_chunks()
                continue
            columns[name] = self._room.array(name, len(table), column.type.to_pandas_dtype())
            columns[name][:] = column.to_numpy()
        return _Piece(columns, 0, len(table)) if len(table) else None


def _in_order(pieces: Sequence[_Piece], schema: pa.Schema, room: Room) -> Iterator[pa.Table]:
    """The rows of pieces in order, in tables of no more rows than a slice may have."""
    if not pieces:
        return
    if sum(map(len, pieces)) > SLICE_EVENTS:
        first = min(int(piece.of("time_ps")[0]) for piece in pieces)
        middle = first + (max(int(piece.of("time_ps")[-1]) for piece in pieces) - first + 1) // 2
        if middle > first:
            for half in zip(*(piece.cut(middle) for piece in pieces), strict=True):
                yield from _in_order([piece for piece in half if piece is not None], schema, room)
            return
    yield _sorted(pieces, schema, room)


def _sorted(pieces: Sequence[_Piece], schema: pa.Schema, room: Room) -> pa.Table:
    if len(pieces) == 1:
        own = pieces[0].copy()
        return pa.Table.from_arrays([pa.array(own.of(field.name), field.type) for field in schema], schema=schema)
    times, which = time_order(_joined([piece.of("time_ps") for piece in pieces], room), room)
    columns = [pa.array(times) if name == "time_ps" else _taken([piece.of(name) for piece in pieces], which, room)
               for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _joined(parts: Sequence[npt.NDArray[Any]], room: Room) -> npt.NDArray[Any]:
    """Valid until the next call."""
    joined = room.array("joined", sum(map(len, parts)), parts[0].dtype)
    np.concatenate(parts, out=joined)
    return joined


def _taken(parts: Sequence[Any], which: npt.NDArray[np.int64], room: Room) -> pa.Array:
    """Rows of a column."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return pa.array(_joined(parts, room).take(which))
    return pa.concat_arrays([pa.array(part) if isinstance(part, np.ndarray) else part for part in parts]
                            ).take(pa.array(which))
