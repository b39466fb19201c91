"""Writes the table of states in parts, so that its memory does not grow with the run.

A node's states do not depend on other nodes. The events that begin and end states are therefore divided by node into
files of at most some millions, if there are that many nodes; the states of each file are sorted by beginning; and the
sorted parts are merged, one stretch of rows after the other.
"""

from pathlib import Path

import duckdb
from hypermon.host.dictionary.semantics import text
from hypermon.host.tables.parquet_file import ParquetFile

__all__ = ["write_states"]

#: Events in a part, about; rows of events that are merged at once; rows in a row group, as DuckDB has them.
_PART, _STRETCH, _GROUP = 4_000_000, 1 << 21, 122_880
#: Rows of each part that DuckDB holds back while it divides the events.
_HELD = 1 << 16


def write_states(connection: duckdb.DuckDBPyConnection, rows: int, nodes: int, path: Path, folder: Path) -> None:
    """Writes the view ``states`` to a file, in order of ``begin_row``.

    Parameters
    ----------
    connection : has the views of :func:`.semantics.create_views`. ``state_edges`` is replaced.
    rows, nodes : of the events.
    folder : for the parts. They are not removed.

    Raises
    ------
    duckdb.Error, OSError
    """
    parts = min(-(-rows // _PART), nodes)
    if parts <= 1:
        connection.execute(f"copy (from states order by begin_row) to {text(str(path))} (format parquet)")
        return
    edges = folder / "edges"
    connection.execute(f"set partitioned_write_flush_threshold = {_HELD}")
    connection.execute(f"set partitioned_write_max_open_files = {parts}")
    connection.execute(f"copy (select *, node % {parts} as part_of from state_edges) to {text(str(edges))} "
                       "(format parquet, partition_by (part_of))")
    made = []
    for number in range(parts):
        own = edges / f"part_of={number}"
        if not own.is_dir():    # none of its nodes has states
            continue
        connection.execute("create or replace view state_edges as from "
                           f"read_parquet({text(str(own / '*.parquet'))}, hive_partitioning = false)")
        made.append(folder / f"states-{number}")
        connection.execute(f"copy (from states order by begin_row) to {text(str(made[-1]))} (format parquet)")
    if made:
        _merge(connection, made, rows, path)
    else:
        connection.execute(f"copy (from states) to {text(str(path))} (format parquet)")


def _merge(connection: duckdb.DuckDBPyConnection, parts: list[Path], rows: int, path: Path) -> None:
    """Writes files that are in order of ``begin_row`` to one that is."""
    union = f"from read_parquet([{', '.join(text(str(part)) for part in parts)}])"
    with connection.cursor() as reader:
        schema = reader.sql(f"{union} limit 0").to_arrow_table().schema
        with ParquetFile(path, schema) as writer:
            for begin in range(0, rows, _STRETCH):
                stretch = reader.sql(f"{union} where begin_row >= {begin} and begin_row < {begin + _STRETCH} "
                                     "order by begin_row").to_arrow_table()
                if stretch.num_rows:
                    writer.write_table(stretch, row_group_size=_GROUP)
