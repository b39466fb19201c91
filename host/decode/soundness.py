"""Checks that the tables of a RUN could have been written by this program, before their rows are used.

A checksum shows that a table is the one that ``decode.json`` describes. It does not show the origin of either: anyone
who can make a table can make its checksum. Code that computes with rows relies on ordered times, on times that can be
added, and on nodes that exist, so all rows are read once and checked first.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.table_files import by_board
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary
from hypermon.host.errors import InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.tables.parquet_file import unreadable

__all__ = ["check_batch", "check_events", "checked_loss"]

#: Maximum bytes of an event.
_PAYLOAD_MAX = 15
#: Rows at a time.
_ROWS = 1 << 18
#: The earliest time, in picoseconds: sums and differences of times do not overflow.
_EARLIEST_PS = -1 << 62


def check_events(run: RunDirectory, files: Sequence[Path], schema: pa.Schema) -> int:
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


def _check_file(run: RunDirectory, path: Path, schema: pa.Schema, names: list[str] | None, named: bool,
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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return last, count, found.names


def _check_columns(run: RunDirectory, path: Path, found: pa.Schema, schema: pa.Schema, named: bool) -> None:
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


def _check_rows(run: RunDirectory, path: Path, batch: pa.RecordBatch, last: int) -> int:
    """Checks a batch that comes after the time ``last``. Returns its last time."""
    if not len(batch):
        return last
    times, nodes = (batch[name].to_numpy(zero_copy_only=False) for name in ("time_ps", "node"))
    if times[0] < last or np.any(times[1:] < times[:-1]):
        raise InputError(path, None, "its rows are not in order of time")
    if times[0] < _EARLIEST_PS:
        raise InputError(path, None, f"it has a time of {times[0]} ps, and no run begins so early")
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


def check_batch(run: RunDirectory, batch: pa.RecordBatch, path: Path | None = None) -> None:
    """Raises InputError if a batch of items has a node that does not exist. ``path``: of its file, to be named."""
    if len(batch) and "node" in batch.schema.names:
        _check_nodes(run, path or run.path / "events", batch["node"].to_numpy(zero_copy_only=False))


def _check_nodes(run: RunDirectory, path: Path, nodes: np.ndarray) -> None:
    strange = nodes[(nodes < 0) | (nodes >= run.info.nodes)]
    if len(strange):
        raise InputError(path, None, f"it has a node {strange[0]}; the run has nodes 0 to {run.info.nodes - 1}")


def checked_loss(run: RunDirectory, path: Path) -> pa.Table:
    """A table of losses. Raises InputError if it cannot be read, or has rows that no decoder has written."""
    try:
        loss = pq.ParquetFile(path).read()
        loss.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from None
    nodes, lost, begins, ends = (loss[name].to_numpy() for name in ("node", "lost", "from_ps", "to_ps"))
    _check_nodes(run, path, nodes)
    if np.any(lost < 0) or np.any(begins > ends):
        raise InputError(path, None, "it has a negative loss, or one that ends before it begins")
    if np.any(begins < _EARLIEST_PS):
        raise InputError(path, None, f"it has a time of {begins.min()} ps, and no run begins so early")
    return loss
