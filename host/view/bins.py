"""Whole numbers over the time of a run, in bins of equal length: what pictures of long stretches are made of.

The length of a bin is a power of two of picoseconds, and bins begin at its multiples. Bins of twice the length are
therefore exact sums. A file has several lengths, the longest bins first, in a row group each: the picture of a whole
run needs the first one alone. The file names the tables that it was made of, and has a checksum of each length. If one
of these is not as expected, the file is not used.
"""

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.locking import locked
from hypermon.host.tables.parquet_file import ParquetFile

__all__ = ["Bins", "BinsFile", "Kinds", "keep", "plain"]

_MADE_OF, _SUM = b"hypermon.made_of", b"hypermon.sum"
#: Changes when the file's contents do.
_FORMAT = 1

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@dataclass
class Bins:
    """Numbers of kinds.

    Members
    -------
    shift : a bin is ``1 << shift`` ps long, and begins at a multiple of that.
    begin_ps, end_ps : the numbers are of these times: from within the first bin to within the last one, or its end.
    values : a row per bin, a column per kind.
    """

    shift: int
    begin_ps: int
    end_ps: int
    values: _Ints
    _sums: _Ints | None = field(default=None, repr=False)

    @classmethod
    def empty(cls, kinds: int, begin_ps: int, end_ps: int, most: int) -> "Bins":
        """Bins for the times from ``begin_ps`` to before ``end_ps``, without numbers yet: ``most`` of them at most."""
        shift = 0
        while ((end_ps - 1) >> shift) - (begin_ps >> shift) >= most:
            shift += 1
        bins = ((end_ps - 1) >> shift) - (begin_ps >> shift) + 1
        return cls(shift, begin_ps, end_ps, np.zeros((bins, kinds), np.int64))

    @property
    def first(self) -> int:
        """The number of the first bin: its time, in bins."""
        return self.begin_ps >> self.shift

    @property
    def bin_ps(self) -> int:
        return 1 << self.shift

    def coarser(self, most: int) -> "Bins":
        """The same numbers in longer bins, ``most`` of them at most."""
        shift = self.shift
        while ((self.end_ps - 1) >> shift) - (self.begin_ps >> shift) >= most:
            shift += 1
        into = np.arange(self.first, self.first + len(self.values)) >> (shift - self.shift)
        begins = np.flatnonzero(np.diff(into, prepend=into[0] - 1))
        return Bins(shift, self.begin_ps, self.end_ps, np.add.reduceat(self.values, begins, axis=0))

    def columns(self, from_ps: int, to_ps: int, columns: int, kinds: slice = slice(None)) -> _Floats:
        """The numbers in columns of equal length: a row per column. A bin is spread evenly over those it reaches."""
        if self._sums is None:
            sums = np.zeros((len(self.values) + 1, self.values.shape[1]), np.int64)
            np.cumsum(self.values, axis=0, out=sums[1:])
            self._sums = sums
        # Relative to the first bin: an integer of 64 bits is exact, a time in floating point is not.
        origin = self.first << self.shift
        begin, end = self.begin_ps - origin, self.end_ps - origin
        edges = np.clip((from_ps - origin) + np.arange(columns + 1) * ((to_ps - from_ps) / columns), begin, end)
        at = np.minimum((edges / self.bin_ps).astype(np.int64), len(self.values) - 1)
        low, high = np.maximum(at * self.bin_ps, begin), np.minimum((at + 1) * self.bin_ps, end)
        whole, part = self._sums[at, kinds], self.values[at, kinds] * ((edges - low) / (high - low))[:, None]
        found: _Floats = np.diff(whole, axis=0) + np.diff(part, axis=0)
        return found


@dataclass(frozen=True)
class Kinds:
    """The kinds of numbers of a file: the node of each and, of states, the name."""

    nodes: Sequence[int]
    value: str
    names: Sequence[str] | None = None

    @property
    def schema(self) -> pa.Schema:
        own = [pa.field("name", pa.string(), nullable=False)] if self.names is not None else []
        return pa.schema([pa.field("time_ps", pa.int64(), nullable=False),
                          pa.field("bin_ps", pa.int64(), nullable=False),
                          pa.field("node", pa.int16(), nullable=False), *own,
                          pa.field(self.value, pa.int64(), nullable=False)])

    def table(self, bins: Bins) -> pa.Table:
        """The rows of a length: those that are not 0, in order of time, then of kind."""
        at, kinds = np.nonzero(bins.values)
        columns = {"time_ps": (bins.first + at) << bins.shift, "bin_ps": np.full(len(at), bins.bin_ps),
                   "node": np.asarray(self.nodes, np.int16)[kinds], self.value: bins.values[at, kinds]}
        arrays = {name: pa.array(column) for name, column in columns.items()}
        if self.names is not None:
            arrays["name"] = pa.DictionaryArray.from_arrays(
                pa.array((kinds % len(self.names)).astype(np.int32)), pa.array(list(self.names))).cast(pa.string())
        return pa.table([arrays[each.name].cast(each.type) for each in self.schema], schema=self.schema)


class BinsFile:
    """A file of bins. Members are None, and no length is read, if it is missing, damaged, or of other tables.

    Members
    -------
    note : what was noted with the bins.
    """

    def __init__(self, path: Path, kinds: Kinds | None, made_of: Mapping[str, Any]):
        self.path, self.kinds, self.note = path, kinds, None
        self._lengths: list[dict[str, int]] = []
        with suppress(OSError, pa.ArrowException, ValueError, KeyError, TypeError, InputError):
            noted = pq.read_metadata(path).metadata or {}
            text = noted[_MADE_OF]
            values = json.loads(text)
            if int(noted[_SUM]) == zlib.crc32(text) and values["made_of"] == {"format": _FORMAT, **made_of}:
                self._lengths, self.note = values["lengths"], values["note"]

    def read(self, number: int) -> Bins | None:
        """The bins of a length; 0: the longest. None if they cannot be used."""
        kinds = self.kinds
        if kinds is None or number >= len(self._lengths):
            return None
        noted = self._lengths[number]
        try:
            with pq.ParquetFile(self.path) as file:
                table = file.read_row_group(number, columns=["time_ps", "node", kinds.value])
                names = file.read_row_group(number, columns=["name"])["name"] if kinds.names is not None else None
            times, nodes, values = (plain(table[name]) for name in ("time_ps", "node", kinds.value))
            columns = nodes.astype(np.int64)
            if names is not None:
                encoded = names.combine_chunks().dictionary_encode()
                own = {name: number for number, name in enumerate(kinds.names or ())}
                which = np.array([own[name] for name in encoded.dictionary.to_pylist()], np.int64)
                columns = columns * len(own) + which[plain(pa.chunked_array([encoded.indices]))]
        except (OSError, pa.ArrowException, ValueError, KeyError):
            return None
        if _checksum(times, columns, values) != noted["crc32"]:
            return None
        bins = Bins(noted["shift"], noted["begin_ps"], noted["end_ps"],
                    np.zeros((noted["bins"], len(kinds.nodes)), np.int64))
        bins.values[(times >> bins.shift) - bins.first, columns] = values
        return bins


def keep(run: Path, name: str, kinds: Kinds, lengths: Sequence[Bins], made_of: Mapping[str, Any],
         note: Any = None) -> None:
    """Writes bins into the RUN, atomically. If the medium is read-only, they are made again the next time. Bins
    without any number are not written.

    Parameters
    ----------
    lengths : the longest bins first.
    made_of : the tables that they were made of, as plain values.
    note : plain values that a reader gets as well.
    """
    if not all(bins.values.any() for bins in lengths):
        return
    with suppress(OSError, InputError), locked(run), aside(run) as new:
        noted = []
        with ParquetFile(new / name, kinds.schema, compression="zstd",
                         column_encoding={"time_ps": "DELTA_BINARY_PACKED"},
                         use_dictionary=["bin_ps", "node", "name", "items"]) as writer:
            for bins in lengths:
                noted.append(_noted(bins))
                writer.write_table(kinds.table(bins), row_group_size=max(np.count_nonzero(bins.values), 1))
            text = json.dumps({"made_of": {"format": _FORMAT, **made_of}, "lengths": noted, "note": note})
            writer.add_key_value_metadata({_MADE_OF: text, _SUM: str(zlib.crc32(text.encode()))})
        os.replace(new / name, run / name)


def _noted(bins: Bins) -> dict[str, int]:
    """What a file states of a length."""
    at, kinds = np.nonzero(bins.values)
    crc = _checksum((bins.first + at) << bins.shift, kinds, bins.values[at, kinds])
    return {"shift": bins.shift, "begin_ps": bins.begin_ps, "end_ps": bins.end_ps, "bins": len(bins.values),
            "crc32": crc}


def _checksum(*columns: npt.NDArray[Any]) -> int:
    crc = 0
    for column in columns:
        crc = zlib.crc32(np.ascontiguousarray(column, "<i8").data, crc)
    return crc


def plain(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column of integers without nulls. (The column's own conversion imports pandas, which takes 0.2 s.)"""
    if column.null_count:
        raise pa.ArrowInvalid("a value is null")
    arrays = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros(0, np.int64), *arrays])
