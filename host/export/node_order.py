"""The items of several boards by node, with their numbers in the run: for exports that write one node after the other.

The windowed merge numbers the items. Those of each slice of the run are sorted by node, in row groups that are small
enough that a reader of one node skips most of them. So nothing is sorted as a whole, and memory does not grow with the
run.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.table_files import by_board, event_batches
from hypermon.host.tables.parquet_file import ParquetFile
from hypermon.host.tables.selection import Selection
from hypermon.host.tables.windowed_merge import SLICE_EVENTS

__all__ = ["write_by_node"]

#: Rows of a row group.
_GROUP = 1 << 15


def write_by_node(files: Sequence[Path], selection: Selection, path: Path) -> None:
    """Writes the selected items to a Parquet file, with ``row``, which counts them in order of time, ties by node.

    Parameters
    ----------
    files : of :func:`.table_files.event_files`.
    """
    schema = pa.unify_schemas([pq.read_schema(own[0]).remove_metadata() for own in by_board(files)],
                              promote_options="permissive")
    with ParquetFile(path, schema.append(pa.field("row", pa.int64()))) as writer:
        held, count, row = [schema.empty_table()], 0, 0
        for batch in event_batches(files, selection):
            held.append(pa.Table.from_batches([batch]))
            count += len(batch)
            if count >= SLICE_EVENTS:
                _write(writer, held, row)
                held, count, row = [schema.empty_table()], 0, row + count
        _write(writer, held, row)


def _write(writer: ParquetFile, held: list[pa.Table], row: int) -> None:
    table = pa.concat_tables(held, promote_options="permissive").combine_chunks()
    if not len(table):
        return
    order = np.argsort(table["node"].to_numpy(), kind="stable")
    table = table.append_column("row", pa.array(np.arange(row, row + len(table))))
    writer.write_table(table.take(pa.array(order)).cast(writer.schema), row_group_size=_GROUP)
