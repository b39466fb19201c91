"""Merges the events of several boards by time, slice by slice, in constant memory.

Each board's files are in order. The statistics of their row groups show how many events there are at which time. They
divide the run into slices of time of about equally many events. Only the row groups that a slice touches are in memory.
The events of a slice are sorted runs, one a board, and are put in order in time that does not depend on the number of
boards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.blocks.item_merge import time_order
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
    groups = [_groups(paths, selection) for paths in boards]
    sources = [_Source(own, Selection(selection.nodes, selection.from_ps, selection.to_ps, needed))
               for own in groups if own]
    for until in [*_limits([group for own in groups for group in own]), None]:
        for table in _in_order([source.take(until) for source in sources]):
            yield from (table if selection.columns is None else table.select(list(selection.columns))).to_batches(_ROWS)


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


@dataclass
class _Source:
    """The selected events of one board, in order."""

    groups: list[_Group]
    selection: Selection

    def __post_init__(self) -> None:
        self._held = self._read(self.groups[0]).slice(0, 0)
        self._next = 0

    def take(self, until: int | None) -> pa.Table:
        """The events before a time that have not been taken yet; None: all that are left."""
        tables = [self._held]
        while self._next < len(self.groups) and (until is None or self.groups[self._next].first < until):
            tables.append(self._read(self.groups[self._next]))
            self._next += 1
        held = pa.concat_tables(tables) if len(tables) > 1 else self._held
        count = len(held) if until is None else _count_before(held, until)
        self._held = held.slice(count)
        return held.slice(0, count)

    def _read(self, group: _Group) -> pa.Table:
        with pq.ParquetFile(group.path, metadata=group.metadata) as file:
            table = file.read_row_group(group.number, columns=self.selection.columns, use_threads=False)
        return pa.Table.from_batches([self.selection.of(batch) for batch in table.combine_chunks().to_batches()],
                                     None if len(table) else table.schema)


def _count_before(table: pa.Table, until: int) -> int:
    """How many of the rows, which are in order, are before a time."""
    count = 0
    for chunk in table["time_ps"].chunks:
        here = int(np.searchsorted(chunk.to_numpy(), until))
        count += here
        if here < len(chunk):
            break
    return count


def _in_order(runs: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The rows of sorted runs in order, in pieces of no more rows than a slice may have."""
    runs = [run for run in runs if len(run)]
    if not runs:
        return
    if sum(map(len, runs)) > SLICE_EVENTS:
        first = min(run["time_ps"][0].as_py() for run in runs)
        middle = first + (max(run["time_ps"][-1].as_py() for run in runs) - first + 1) // 2
        if middle > first:
            counts = [_count_before(run, middle) for run in runs]
            yield from _in_order([run.slice(0, count) for run, count in zip(runs, counts, strict=True)])
            yield from _in_order([run.slice(count) for run, count in zip(runs, counts, strict=True)])
            return
    yield _sorted(runs)


def _sorted(runs: Sequence[pa.Table]) -> pa.Table:
    if len(runs) == 1:
        return runs[0]
    together = pa.concat_tables(runs, promote_options="permissive").combine_chunks()
    times, which = time_order(together["time_ps"].to_numpy())
    columns = [pa.array(times) if name == "time_ps" else _taken(together[name], which)
               for name in together.schema.names]
    return pa.Table.from_arrays(columns, schema=together.schema)


def _taken(column: pa.ChunkedArray, which: npt.NDArray[np.int64]) -> pa.Array | pa.ChunkedArray:
    """Rows of a column; NumPy takes numbers faster than Arrow."""
    if column.null_count == 0 and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return pa.array(column.to_numpy().take(which), column.type)
    return column.take(pa.array(which))
