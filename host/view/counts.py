"""Counts of items over time, for pictures of any stretch of a run.

A row group of the RUN's items has a million rows, and reading it takes some 10 ms. A picture of a few row groups is
therefore made from the items. For longer stretches, the items of each row group are counted once, per node, in bins
whose length suits that row group: dense parts of a run get short bins, quiet parts long ones. The counts are
``RUN/counts.parquet``. The file names the tables that it was made of, and is made again if these change.

Pictures whose columns are long are made from bins that the whole run shares, and from nothing else, whether they come
from ``RUN/overview.parquet`` or were just counted: a picture is the same either way. The picture of a whole run thus
needs some hundred kilobytes, however long the run is.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import Part
from hypermon.host.tables.parquet_file import ParquetFile
from hypermon.host.view.bins import Bins, BinsFile, Kinds, keep, plain

__all__ = ["COUNTS", "Counts", "Group", "OVERVIEW", "Stretch", "keep_counts"]

COUNTS, OVERVIEW = "counts.parquet", "overview.parquet"
#: The columns of that file: ``items`` of ``node`` in the ``bin_ps`` from ``time_ps`` on, in row group ``part``.
_SCHEMA = pa.schema([pa.field("part", pa.int32(), nullable=False), pa.field("time_ps", pa.int64(), nullable=False),
                     pa.field("bin_ps", pa.int64(), nullable=False), pa.field("node", pa.int16(), nullable=False),
                     pa.field("items", pa.int32(), nullable=False)])
_MADE_OF = b"hypermon.made_of"
#: Changes when the file's contents do.
_FORMAT = 2
#: Cells of a row group, and the bins they are in: fewer with many nodes.
_CELLS, _BINS_LEAST, _BINS_MOST = 1 << 16, 64, 2048
#: Bins of the whole run at most, and their cells. A picture is made from them if its columns are this number of bins.
_WHOLE_BINS, _WHOLE_CELLS, _WIDE = 1 << 14, 1 << 22, 2
#: Row groups whose items are in memory, 10 MB each.
_KEPT = 12
#: Row groups of which a picture is made from the items, if counts are too coarse for it.
_READ_MOST = 4

_Ints = npt.NDArray[np.int64]


@dataclass
class Group:
    """A row group of the RUN's items.

    Members
    -------
    file, number, rows : its file, its number in the file, and its number of rows.
    first_ps, last_ps : times of its first and its last item.
    nodes : the nodes of which it may have items, from its footer; in a run of several boards, those of one board.
    shift : its bins are ``1 << shift`` ps long.
    counts : a row per bin, a column per node of ``nodes``; None: not counted yet.
    """

    file: Path
    number: int
    rows: int
    first_ps: int
    last_ps: int
    nodes: range
    shift: int = 0
    counts: npt.NDArray[np.uint32] | None = None


@dataclass
class Stretch:
    """Counts of a stretch.

    Members
    -------
    items : a row per column of the picture, a column per node.
    estimated : part of it is not counted yet: its items are spread evenly over the nodes and the time.
    """

    items: npt.NDArray[np.float64]
    estimated: bool = False


@dataclass
class Counts:
    """The items of a RUN over time. Several threads may use it.

    Parameters
    ----------
    files : tables of items, each in order of time.
    nodes : numbers of nodes are below this.
    sound : called before rows of the tables are read; it raises HypermonError if they must not be used.

    Members
    -------
    whole : items in bins that the whole run shares; None: not all items are counted.
    """

    files: Sequence[Path]
    nodes: int
    sound: Callable[[], None] = lambda: None
    groups: list[Group] = field(init=False)
    whole: Bins | None = field(default=None, init=False)
    _making: Bins | None = field(default=None, init=False)
    _kept: "OrderedDict[int, tuple[_Ints, npt.NDArray[np.int16]]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.groups = [group for file in self.files for group in _groups(file, self.nodes)]
        self._firsts = np.array([group.first_ps for group in self.groups], np.int64)
        self._lasts = np.array([group.last_ps for group in self.groups], np.int64)
        for group in self.groups:
            group.shift = self._shift(group)

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def counted(self) -> float:
        """The share of row groups that are counted."""
        if self.whole is not None:
            return 1.0
        return sum(group.counts is not None for group in self.groups) / max(len(self.groups), 1)

    def _shift(self, group: Group) -> int:
        bins = min(max(_CELLS // len(group.nodes), _BINS_LEAST), _BINS_MOST)
        shift = max((group.last_ps - group.first_ps) // bins, 1).bit_length() - 1
        while (group.last_ps >> shift) - (group.first_ps >> shift) >= bins:
            shift += 1
        return shift

    # ------------------------------------------------------------------------------------- items

    def between(self, from_ps: int, to_ps: int) -> list[int]:
        """The row groups that may have items in a stretch. Those of several boards overlap in time."""
        found: list[int] = np.flatnonzero((self._lasts >= from_ps) & (self._firsts < to_ps)).tolist()
        return found

    def rows_between(self, from_ps: int, to_ps: int, enough: int) -> int:
        """Number of items in a stretch; not exact if there are at least ``enough``."""
        found = 0
        for number in self.between(from_ps, to_ps):
            group = self.groups[number]
            if from_ps <= group.first_ps and group.last_ps < to_ps:
                found += group.rows
        for number in self.between(from_ps, to_ps):
            group = self.groups[number]
            if found < enough and not (from_ps <= group.first_ps and group.last_ps < to_ps):
                low, high = np.searchsorted(self._read(number)[0], [from_ps, to_ps])
                found += int(high - low)
        return found

    def _read(self, number: int) -> tuple[_Ints, npt.NDArray[np.int16]]:
        """Times and nodes of a row group. Raises InputError if it is not readable."""
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        found = self._from_file(number)
        with self._lock:
            self._kept[number] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found

    def _from_file(self, number: int) -> tuple[_Ints, npt.NDArray[np.int16]]:
        group = self.groups[number]
        self.sound()
        try:
            with pq.ParquetFile(group.file) as file:
                table = file.read_row_group(group.number, columns=["time_ps", "node"], use_threads=False)
            times, nodes = plain(table["time_ps"]), plain(table["node"])
        except (pa.ArrowException, OSError) as error:
            raise InputError(group.file, None, f"it cannot be read: {str(error).splitlines()[0][:300]}") from None
        own = group.nodes
        if len(nodes) and not (nodes.min() >= own.start and nodes.max() < own.stop):
            raise InputError(group.file, None, f"it has nodes that are not {own.start} to {own.stop - 1}")
        return times, nodes

    # ------------------------------------------------------------------------------------ counts

    def stretch(self, from_ps: int, to_ps: int, columns: int) -> Stretch:
        """Items in columns of equal length.

        Where counts must be used, the items of a bin are spread evenly over the columns that the bin reaches. A bin is
        no longer than a column, unless many row groups with longer bins are in the stretch.
        """
        if self.whole is not None and to_ps - from_ps >= _WIDE * self.whole.bin_ps * columns:
            return Stretch(self.whole.columns(from_ps, to_ps, columns))
        result = Stretch(np.zeros((columns, self.nodes)))
        width = (to_ps - from_ps) / columns
        touched = self.between(from_ps, to_ps)
        # Read those with the coarsest bins, as far as they are too coarse; without counts, a few.
        coarse = sorted((number for number in touched if 1 << self.groups[number].shift > width
                         or (self.groups[number].counts is None and len(touched) <= _READ_MOST)),
                        key=lambda number: -self.groups[number].shift)[:_READ_MOST]
        for number in touched:
            group = self.groups[number]
            if number in coarse:
                self._add_items(result, number, from_ps, to_ps)
            elif group.counts is not None:
                edges = ((group.first_ps >> group.shift) + np.arange(len(group.counts) + 1)) << group.shift
                edges = np.clip(edges, group.first_ps, group.last_ps + 1)
                _spread(self._own(result, group), group.counts, edges, from_ps, width)
            else:
                result.estimated = True
                own = self._own(result, group)
                _spread(own, np.full((1, own.shape[1]), group.rows / own.shape[1]),
                        np.array([group.first_ps, group.last_ps + 1]), from_ps, width)
        return result

    def _own(self, result: Stretch, group: Group) -> npt.NDArray[np.float64]:
        """The columns of a group's nodes."""
        return result.items[:, group.nodes.start:group.nodes.stop]

    def _add_items(self, result: Stretch, number: int, from_ps: int, to_ps: int) -> None:
        times, nodes = self._read(number)
        low, high = np.searchsorted(times, [from_ps, to_ps])
        columns = len(result.items)
        at = ((times[low:high] - from_ps) * (columns / (to_ps - from_ps))).astype(np.int64)
        own = self._own(result, self.groups[number])
        cells = np.minimum(at, columns - 1) * own.shape[1] + (nodes[low:high] - self.groups[number].nodes.start)
        own += np.bincount(cells, minlength=own.size).reshape(own.shape)

    def count(self, number: int) -> None:
        """Counts a row group, unless that is done."""
        group = self.groups[number]
        if group.counts is not None:
            return
        self.count_group(group, *self._from_file(number))

    def count_group(self, group: Group, times: _Ints, nodes: npt.NDArray[np.int16]) -> None:
        """Counts the items of a group."""
        base = group.first_ps >> group.shift
        bins = (group.last_ps >> group.shift) - base + 1
        width = len(group.nodes)
        cells = ((times >> group.shift) - base) * width + (nodes - group.nodes.start)
        if len(cells) and not (cells.min() >= 0 and cells.max() < bins * width):
            raise InputError(group.file, None, "its times are not those that its footer states")
        group.counts = np.bincount(cells, minlength=bins * width).reshape(bins, width).astype(np.uint32)
        if self._making is not None:
            self._count_whole(self._making, group, times, nodes)

    def _count_whole(self, whole: Bins, group: Group, times: _Ints, nodes: npt.NDArray[np.int16]) -> None:
        """Adds the items of a group to the bins of the run."""
        base = (group.first_ps >> whole.shift) - whole.first
        bins = (group.last_ps >> whole.shift) - whole.first - base + 1
        cells = ((times >> whole.shift) - whole.first - base) * self.nodes + nodes
        whole.values[base:base + bins] += np.bincount(cells, minlength=bins * self.nodes).reshape(bins, self.nodes)

    # -------------------------------------------------------------------------------------- file

    def load_whole(self, run: Path, parts: Mapping[str, Part]) -> bool:
        """Reads the bins of the whole run; returns whether they exist and are those of these tables."""
        whole = BinsFile(run / OVERVIEW, self._kinds, self._made_of(run, parts)).read(0)
        if whole is not None and int(whole.values.sum()) == self.rows:
            self.whole = whole
        return self.whole is not None

    def load(self, run: Path, parts: Mapping[str, Part]) -> bool:
        """Reads the counts from the RUN; returns whether they exist and are those of these tables."""
        try:
            with pq.ParquetFile(run / COUNTS) as file:
                noted = (file.metadata.metadata or {}).get(_MADE_OF)
                if noted is None or json.loads(noted) != self._made_of(run, parts):
                    return False
                table = file.read()
            if table.schema.names != _SCHEMA.names:
                return False
            part, times, lengths, nodes, items = (plain(table[name]) for name in _SCHEMA.names)
        except (OSError, pa.ArrowException, ValueError):
            return False
        edges = np.searchsorted(part, np.arange(len(self.groups) + 1))
        found = []
        for group, low, high in zip(self.groups, edges[:-1], edges[1:], strict=True):
            base = group.first_ps >> group.shift
            counts = np.zeros(((group.last_ps >> group.shift) - base + 1, len(group.nodes)), np.uint32)
            own = nodes[low:high] - group.nodes.start
            at = (times[low:high] >> group.shift) - base
            if (np.any(lengths[low:high] != 1 << group.shift) or np.any((at < 0) | (at >= len(counts)))
                    or np.any((own < 0) | (own >= len(group.nodes)))
                    or items[low:high].sum() != group.rows):
                return False
            counts[at, own] = items[low:high]
            found.append(counts)
        for group, counts in zip(self.groups, found, strict=True):
            group.counts = counts
        return True

    def make(self, stop: Callable[[], bool]) -> None:
        """Counts all row groups, unless ``stop`` returns true."""
        if self.whole is None and self.groups:
            most = max(min(_WHOLE_BINS, _WHOLE_CELLS // self.nodes), 1)
            self._making = Bins.empty(self.nodes, int(self._firsts.min()), int(self._lasts.max()) + 1, most)
        for number, group in enumerate(self.groups):
            if stop():
                return
            if self._making is not None:    # also those that an older version has counted
                self.count_group(group, *self._from_file(number))
            else:
                self.count(number)
        if self._making is not None:
            self.whole, self._making = self._making, None

    def save(self, run: Path, parts: Mapping[str, Part]) -> None:
        """Writes the counts into the RUN, atomically. If the medium is read-only, they are made again the next time."""
        with suppress(OSError, InputError), locked(run), aside(run) as new:
            with ParquetFile(new / COUNTS, _SCHEMA, compression="zstd",
                                  column_encoding={"time_ps": "DELTA_BINARY_PACKED"},
                                  use_dictionary=["part", "bin_ps", "node", "items"]) as writer:
                for number, group in enumerate(self.groups):
                    writer.write_table(_table(number, group))
                writer.add_key_value_metadata({_MADE_OF: json.dumps(self._made_of(run, parts))})
            os.replace(new / COUNTS, run / COUNTS)
        if self.whole is not None:
            keep(run, OVERVIEW, self._kinds, [self.whole], self._made_of(run, parts))

    @property
    def _kinds(self) -> Kinds:
        return Kinds(range(self.nodes), "items")

    def _made_of(self, run: Path, parts: Mapping[str, Part]) -> dict[str, Any]:
        names = [file.relative_to(run).as_posix() for file in self.files]
        return {"format": _FORMAT, "nodes": self.nodes, "groups": len(self.groups),
                "files": {name: [parts[name]["rows"], parts[name]["bytes"], parts[name]["crc32"]] for name in names}}


def keep_counts(run: Path, files: Sequence[Path], nodes: int, parts: Mapping[str, Part]) -> None:
    """Counts the items of a decoded RUN, and keeps the counts, unless it has them, or few row groups.

    Raises
    ------
    InputError
        if a table cannot be read.
    """
    counts = Counts(files, nodes)
    if len(counts.groups) > _READ_MOST and not (counts.load_whole(run, parts) and counts.load(run, parts)):
        counts.make(lambda: False)
        counts.save(run, parts)


def _groups(path: Path, nodes: int) -> list[Group]:
    """The row groups of a file that have rows, by its footer. Raises InputError.

    Parameters
    ----------
    nodes : of the run: a row group whose footer does not say which it has may have any.
    """
    try:
        metadata = pq.read_metadata(path)
        column, node_column = (metadata.schema.names.index(name) for name in ("time_ps", "node"))
        found = []
        for number in range(metadata.num_row_groups):
            row_group = metadata.row_group(number)
            bounds = row_group.column(column).statistics
            if row_group.num_rows and (bounds is None or not bounds.has_min_max):
                raise InputError(path, None, "its footer has no bounds of the times: decode the run again")
            if row_group.num_rows:
                found.append(Group(path, number, row_group.num_rows, int(bounds.min), int(bounds.max),
                                   _nodes(row_group.column(node_column).statistics, nodes)))
        return found
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(path, None, f"it cannot be read: {str(error).splitlines()[0][:300]}") from None


def _nodes(bounds: pq.Statistics | None, nodes: int) -> range:
    """The nodes between the bounds, if these are of the run's nodes."""
    if bounds is None or not bounds.has_min_max or not 0 <= bounds.min <= bounds.max < nodes:
        return range(nodes)
    return range(int(bounds.min), int(bounds.max) + 1)


def _table(number: int, group: Group) -> pa.Table:
    counts = group.counts if group.counts is not None else np.zeros((0, 1), np.uint32)
    bins, nodes = np.nonzero(counts)
    columns = (np.full(len(bins), number), ((group.first_ps >> group.shift) + bins) << group.shift,
               np.full(len(bins), 1 << group.shift), nodes + group.nodes.start, counts[bins, nodes])
    return pa.table([pa.array(column).cast(of.type) for column, of in zip(columns, _SCHEMA, strict=True)],
                    schema=_SCHEMA)


def _spread(items: npt.NDArray[np.float64], counts: npt.NDArray[Any], edges: _Ints, from_ps: int,
            width: float) -> None:
    """Adds counts of bins with these edges, evenly over the columns that each bin reaches."""
    sums = np.zeros((len(counts) + 1, counts.shape[1]))
    np.cumsum(counts, axis=0, out=sums[1:])
    places = (edges - from_ps) / width
    first, last = max(int(places[0]), 0), min(int(places[-1]) + 1, len(items))
    if first >= last:
        return
    ends = np.clip(np.arange(first, last + 1), places[0], places[-1])
    left = np.clip(np.searchsorted(places, ends, side="right") - 1, 0, len(counts) - 1)
    share = (ends - places[left]) / np.maximum(places[left + 1] - places[left], 1e-12)
    items[first:last] += np.diff(sums[left] + (sums[left + 1] - sums[left]) * share[:, None], axis=0)
