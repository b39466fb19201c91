"""Checks, before an export writes its first byte, that the tables of a RUN could have been written by this program.

A checksum shows that a table is the one that ``decode.json`` describes. It does not show the origin of either: anyone
who can make a table can make its checksum. An export relies on ordered times and existing nodes, so all rows are read
once and checked first.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.decode import event_framing
from hypermon.host.decode.table_files import by_board
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary
from hypermon.host.dictionary.semantics import COLUMNS
from hypermon.host.errors import InputError
from hypermon.host.export.items import framed, item_files
from hypermon.host.run import Run
from hypermon.host.tables.parquet import event_schema

__all__ = ["check_tables"]

#: Formats that show what a dictionary's events begin, end, send and count.
_STORIES = ("otf2", "perfetto")
#: Formats of items: for nibbles, the events framed from them. Events are framed anew for ``--to events``.
_FRAMED = ("ctf", "fst", "vcd", *_STORIES)
#: Maximum bytes of an event.
_PAYLOAD_MAX = 15
#: Rows at a time.
_ROWS = 1 << 18
#: What must not be in a table, and its message; ``NODES`` is the number of nodes, ``ROWS`` that of events.
_STRANGE = {
    "states": """node is null or node not between 0 and NODES - 1 or name is null or begin_ps is null
                 or begin_row is null or begin_row not between 0 and ROWS - 1 or (end_ps is null) != (end_row is null)
                 or end_ps < begin_ps or lost_ps < begin_ps or end_row not between 0 and ROWS - 1""",
    "messages": """name is null or (latency_ps is not null and (sender is null or receiver is null
                   or sender not between 0 and NODES - 1 or receiver not between 0 and NODES - 1
                   or send_row is null or receive_row is null or send_row not between 0 and ROWS - 1
                   or receive_row not between 0 and ROWS - 1))""",
    "counters": """time_ps is null or node is null or node not between 0 and NODES - 1 or event is null
                   or counter is null or value is null or row is null""",
}


def check_tables(run: Run, form: str) -> None:
    """Reads all tables that an export uses, and makes those that are missing.

    Raises
    ------
    InputError
        names the table and its fault: it is damaged, has unexpected columns, or rows that no decoder has written.
    """
    if form == "frames":        # it is made from the stream
        return
    rows = _check_events(run, run.event_files(), event_schema(run.info.item_modes, run.info.nodes))
    if form in _FRAMED and framed(run):
        rows = _check_events(run, item_files(run), event_framing.EVENT_SCHEMA)
    _check_losses(run)
    if form in _STORIES:
        _check_tracks(run, rows)


def _check_events(run: Run, files: Sequence[Path], schema: pa.Schema) -> int:
    """Checks that the events of each board are in order of time and of existing nodes. Returns their number."""
    count = 0
    names: list[str] | None = None
    named = bool(run.info.item_modes.events) or list(files) == [run.path / FRAMED]
    for own in by_board(files):
        last = -1 << 63
        for path in own:
            last, more, names = _check_file(run, path, schema, names, named, last)
            count += more
    return count


def _check_file(run: Run, path: Path, schema: pa.Schema, names: list[str] | None, named: bool,
                last: int) -> tuple[int, int, list[str]]:
    """Checks a file that comes after the time ``last``. Returns its last time, its rows, and its columns."""
    count = 0
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            _check_columns(run, path, found, schema, named)
            if names not in (None, found.names):
                raise InputError(path, None, "its columns are not those of the other parts")
            for batch in file.iter_batches(_ROWS):
                batch.validate(full=True)
                last = _check_rows(run, path, batch, last)
                count += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    return last, count, found.names


def _check_columns(run: Run, path: Path, found: pa.Schema, schema: pa.Schema, named: bool) -> None:
    """Raises InputError unless the columns are those of the schema, and those of the RUN's dictionary."""
    dictionary = kept_dictionary(run)
    wanted = list(schema)
    if named and dictionary is not None:
        wanted = list(decode_fields(schema.empty_table(), dictionary)[0].schema)
    shown = [(field.name, _plain_type(field.type)) for field in found]
    if shown != [(field.name, _plain_type(field.type)) for field in wanted]:
        raise InputError(path, None, f"its columns are {', '.join(found.names)[:200]}, which are not those of this "
                                     "run's items")


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Strings are strings, whether dictionary-encoded or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _check_rows(run: Run, path: Path, batch: pa.RecordBatch, last: int) -> int:
    """Checks a batch that comes after the time ``last``. Returns its last time."""
    if not len(batch):
        return last
    times, nodes = (batch[name].to_numpy(zero_copy_only=False) for name in ("time_ps", "node"))
    if times[0] < last or np.any(times[1:] < times[:-1]):
        raise InputError(path, None, "its rows are not in order of time")
    _check_nodes(run, path, nodes)
    if "nibble" in batch.schema.names:
        most = pc.max(batch["nibble"]).as_py()
        if most is not None and most >> run.info.port_bits:
            raise InputError(path, None, f"it has a value of {most}, and ports have {run.info.port_bits} bits")
    if "payload" in batch.schema.names:
        size = pc.max(pc.binary_length(batch["payload"])).as_py()
        if size is not None and size > _PAYLOAD_MAX:
            raise InputError(path, None, f"it has a payload of {size:,} bytes, and events have {_PAYLOAD_MAX} at most")
    return int(times[-1])


def _check_nodes(run: Run, path: Path, nodes: np.ndarray) -> None:
    strange = nodes[(nodes < 0) | (nodes >= run.info.nodes)]
    if len(strange):
        raise InputError(path, None, f"it has a node {strange[0]}; the run has nodes 0 to {run.info.nodes - 1}")


def _check_losses(run: Run) -> None:
    for path in run.loss_files():
        _check_loss(run, path)


def _check_loss(run: Run, path: Path) -> None:
    try:
        loss = pq.ParquetFile(path).read()
        loss.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    nodes, lost, begins, ends = (loss[name].to_numpy() for name in ("node", "lost", "from_ps", "to_ps"))
    _check_nodes(run, path, nodes)
    if np.any(lost < 0) or np.any(begins > ends):
        raise InputError(path, None, "it has a negative loss, or one that ends before it begins")


def _check_tracks(run: Run, rows: int) -> None:
    """Checks the tables derived from events and a dictionary."""
    for name, path in semantic_files(run).items():
        with duckdb.connect() as connection:
            try:
                connection.read_parquet(str(path)).create_view("asked")
                _check_kinds(path, COLUMNS[name], connection.execute("describe asked").fetchall())
                where = _STRANGE[name].replace("NODES", str(run.info.nodes)).replace("ROWS", str(rows))
                strange = connection.execute(f"select count(*) filter ({where}), count(*) from asked").fetchall()[0]
                connection.execute("select " + ", ".join(f"max({column})" for column in COLUMNS[name]) + " from asked")
            except duckdb.Error as error:
                raise _unreadable(path, error) from None
        if strange[0]:
            raise InputError(path, None, f"{strange[0]:,} of its {strange[1]:,} rows make no sense")


def _check_kinds(path: Path, columns: dict[str, str], found: Iterable[Sequence[str]]) -> None:
    if [(row[0], row[1].lower()) for row in found] != list(columns.items()):
        raise InputError(path, None, f"its columns are not {', '.join(columns)}")


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(path, None, f"it cannot be read: {(str(error).splitlines() or [type(error).__name__])[0][:300]}")
