"""Items and losses in Parquet: files that any engine reads, written in constant memory."""

import os
import shutil
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.errors import InputError
from hypermon.host.tables.encoding import encoded
from hypermon.host.tables.parquet_file import ParquetFile
from hypermon.host.tables.row_groups import RowGroupFile
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["EVENT_SCHEMA", "EventWriter", "GROUP_SCHEMA", "LOSS_SCHEMA", "TableWriter", "checked_table", "event_schema",
           "event_table", "insert_events"]

EVENT_SCHEMA = pa.schema([
    pa.field("time_ps", pa.int64(), nullable=False),
    pa.field("node", pa.int16(), nullable=False),
    pa.field("nibble", pa.uint8(), nullable=False),
])
#: Columns after time and node, in a run in which some node's items have several nibbles, and the modes they belong to.
_ITEM_FIELDS = {
    ItemMode.NIBBLE: [pa.field("nibble", pa.uint8())],
    ItemMode.WORD: [pa.field("word", pa.uint32())],
    ItemMode.EVENT: [pa.field("event", pa.uint8()), pa.field("payload", pa.binary())],
}
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


@cache
def event_schema(modes: ItemModes, nodes: int) -> pa.Schema:
    """The columns of a run's events.

    With all nodes in nibble mode, :data:`EVENT_SCHEMA`. Otherwise the columns of the modes that occur, null in the rows
    of nodes in another mode, and ``aborted``: the time-out ended the item. For an aborted event, ``payload`` contains
    the whole bytes that arrived, and ``event`` is null if not even the id arrived. For an aborted word, the nibbles
    that did not arrive are 0.
    """
    if not modes.on(nodes).longer:
        return EVENT_SCHEMA
    there = {modes[node] for node in range(nodes)}
    return pa.schema([*list(EVENT_SCHEMA)[:2], *(field for mode in ItemMode if mode in there
                                                 for field in _ITEM_FIELDS[mode]),
                      pa.field("aborted", pa.bool_(), nullable=False)])


def event_table(events: Events) -> pa.Table:
    """Events of single nibbles as they are stored."""
    columns = [pa.array(events.time_ps), pa.array(events.node), pa.array(events.nibble)]
    return pa.Table.from_arrays(columns, schema=EVENT_SCHEMA)


def checked_table(path: Path, schema: pa.Schema) -> Path:
    """A table that begins with these columns. Raises InputError if it does not."""
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(path, None, f"not a table: {(str(error).splitlines() or [type(error).__name__])[0]}") from None
    if list(found)[:len(schema)] != list(schema):
        raise InputError(path, None, f"its columns are {', '.join(found.names)[:200]}, not {', '.join(schema.names)}")
    return path


#: Events in a row group, and row groups in a file: the first limits memory use.
_GROUP = 1 << 20
#: Rows that a TableWriter keeps.
_ROWS = 1 << 16
_GROUPS_PER_FILE = 32
_FILE = "part-{:05d}.parquet"
#: Not a name that readers recognize as a table.
_UNFINISHED = ".unfinished"


class TableWriter:
    """A Parquet file whose rows arrive one by one; about ``_ROWS`` of them are in memory.

    The file exists, possibly without rows, as soon as the writer is closed.
    """

    def __init__(self, path: Path, schema: pa.Schema):
        self._schema = schema
        self._writer = ParquetFile(path, schema, compression="zstd")
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
    """Writes ``part-00000.parquet`` and so on into a new directory.

    Events must arrive in the order in which they are to be stored. Even a run without events gets a file, so that every
    engine finds the schema.

    Parameters
    ----------
    directory : to be created.
    schema : of the events.
    cores : number of row groups that are encoded in parallel; they are in memory besides the events that are held.
    group : events in a row group; None: as many as one board's run has.
    least : bytes of a file, except the last.
    """

    def __init__(self, directory: Path, schema: pa.Schema = EVENT_SCHEMA, cores: int = 1, group: int | None = None,
                 least: int = 0):
        directory.mkdir()
        self._group, self._least = group or _GROUP, least
        self._directory, self._schema = directory, schema
        self._files = self._held = 0
        self._parts: list[pa.Table] = []
        self._writer: RowGroupFile | None = None
        self._pool = ThreadPoolExecutor(cores) if cores > 1 else None
        self._most, self._encoding = cores, deque[Future[memoryview]]()

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            self._give_up()

    def add(self, events: Events | pa.Table) -> None:
        """Events of single nibbles, or a table of the schema."""
        if isinstance(events, Events):
            events = event_table(events)
        self._parts.append(events)
        self._held += len(events)
        while self._held >= self._group:
            self._flush()

    def _flush(self) -> None:
        """Encodes a row group of the events that are held."""
        table = pa.concat_tables([self._schema.empty_table(), *self._parts])
        rest = table.slice(self._group)
        self._parts, self._held = [rest] if len(rest) else [], len(rest)
        if self._pool is None:
            self._write(encoded(table.slice(0, self._group)))
            return
        self._encoding.append(self._pool.submit(encoded, table.slice(0, self._group)))
        while len(self._encoding) > self._most:
            self._write(self._encoding.popleft().result())

    def _write(self, group: memoryview) -> None:
        if self._writer is None:
            self._writer = RowGroupFile(open(self._directory / _UNFINISHED, "wb"))  # noqa: SIM115
        with self._or_give_up():
            self._writer.add(group)
        if self._writer.groups * self._group >= _GROUPS_PER_FILE * _GROUP and self._writer.size >= self._least:
            self._finish()

    def _settle(self) -> None:
        """Encodes and writes everything."""
        while self._held:
            self._flush()
        while self._encoding:
            self._write(self._encoding.popleft().result())

    def _finish(self) -> None:
        """The file appears when it is whole."""
        if self._writer is not None:
            with self._or_give_up():
                self._writer.close()
                os.replace(self._directory / _UNFINISHED, self._directory / _FILE.format(self._files))
            self._writer = None
            self._files += 1

    @contextmanager
    def _or_give_up(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Removes the file that is not whole, if there is one."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.file.close()
            self._writer = None
            (self._directory / _UNFINISHED).unlink(missing_ok=True)

    def first_file(self) -> None:
        """Writes a file without events: the schema exists from the start, whatever happens."""
        self._flush()
        self._settle()
        self._finish()

    def end_file(self) -> None:
        """Ends the current file: all events added so far are in files."""
        self._settle()
        self._finish()

    def close(self) -> None:
        self.end_file()
        if self._files == 0:
            self.first_file()


def insert_events(directory: Path, more: pa.Table) -> None:
    """Rewrites the stored events with additional ones inserted; both must be sorted, and so is the result.

    Events of one time and node stay in the order of the stored events, then of ``more``.
    """
    aside = directory.with_name(f"{directory.name}.more")
    rest = more

    def before(time_ps: int, node: int) -> int:
        """How many of the rest come before that."""
        times, nodes = rest["time_ps"].to_numpy(), rest["node"].to_numpy()
        return int(np.count_nonzero((times < time_ps) | (times == time_ps) & (nodes < node)))

    with EventWriter(aside, more.schema) as writer:
        for batch in selected_batches(sorted(directory.iterdir()), Selection()):
            table = pa.Table.from_batches([batch])
            count = before(table["time_ps"][-1].as_py(), table["node"][-1].as_py()) if len(table) else 0
            if count:
                table = pa.concat_tables([table, rest.slice(0, count)])
                order = np.lexsort((table["node"].to_numpy(), table["time_ps"].to_numpy()))
                table, rest = table.take(pa.array(order)), rest.slice(count)
            writer.add(table)
        writer.add(rest)
    old = directory.with_name(f"{directory.name}.old")
    directory.rename(old)       # a program that is killed here leaves both
    aside.rename(directory)
    shutil.rmtree(old)
