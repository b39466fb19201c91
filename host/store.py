"""Events and losses in Parquet: files that any engine reads, written in constant memory."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.frames import Events

__all__ = ["EVENT_SCHEMA", "EventWriter", "GROUP_SCHEMA", "LOSS_SCHEMA", "TableWriter", "event_batches"]

EVENT_SCHEMA = pa.schema([
    pa.field("time_ps", pa.int64(), nullable=False),
    pa.field("node", pa.int16(), nullable=False),
    pa.field("nibble", pa.uint8(), nullable=False),
])
LOSS_SCHEMA = pa.schema([
    pa.field("node", pa.int16(), nullable=False),
    pa.field("lost", pa.int64(), nullable=False),
    pa.field("from_ps", pa.int64(), nullable=False),
    pa.field("to_ps", pa.int64(), nullable=False),
])
#: Groups of frames read through the registers (footnote 5 of the paper).
GROUP_SCHEMA = pa.schema([
    pa.field("frames", pa.int64(), nullable=False),
    pa.field("first_ps", pa.int64(), nullable=False),
    pa.field("last_ps", pa.int64(), nullable=False),
])

#: Events in a row group, and row groups in a file: memory is bounded by the first.
_GROUP = 1 << 20
#: Rows that a TableWriter keeps.
_ROWS = 1 << 16
_GROUPS_PER_FILE = 32
_FILE = "part-{:05d}.parquet"


class TableWriter:
    """A Parquet file of rows that come one by one, in memory for about ``_ROWS`` of them.

    The file exists, empty of rows at least, as soon as the writer is closed.
    """

    def __init__(self, path: Path, schema: pa.Schema):
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[tuple[int, ...]] = []

    def add(self, rows: list[tuple[int, ...]]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = np.array(self._rows, np.int64).reshape(len(self._rows), len(self._schema)).T
        arrays = [pa.array(c, pa.int64()).cast(f.type) for c, f in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        self._flush()
        self._writer.close()


class EventWriter:
    """Writes ``part-00000.parquet`` and on into a new directory.

    Events must come in the order they are to be stored. Even a run without events gets a file, so
    that every engine finds the schema.
    """

    def __init__(self, directory: Path):
        directory.mkdir()
        self._directory = directory
        self._files = self._groups = self._held = 0
        self._parts: list[Events] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif self._writer is not None:
            self._writer.close()

    def add(self, events: Events) -> None:
        self._parts.append(events)
        self._held += len(events)
        if self._held >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_batches([
            pa.RecordBatch.from_arrays([pa.array(p.time_ps), pa.array(p.node), pa.array(p.nibble)], schema=EVENT_SCHEMA)
            for p in self._parts], schema=EVENT_SCHEMA)
        self._parts, self._held = [], 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._directory / _FILE.format(self._files), EVENT_SCHEMA,
                use_dictionary=["node", "nibble"], column_encoding={"time_ps": "DELTA_BINARY_PACKED"},
                compression="zstd", compression_level=1)
            self._files += 1
        self._writer.write_table(table)
        self._groups += 1
        if self._groups % _GROUPS_PER_FILE == 0:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        if self._held or self._files == 0:
            self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def event_batches(directory: Path) -> Iterator[pa.RecordBatch]:
    """The stored events in order, a row group or less at a time."""
    for name in sorted(os.listdir(directory)):
        with pq.ParquetFile(directory / name) as file:
            yield from file.iter_batches(1 << 18)
