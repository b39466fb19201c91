"""SQL over a RUN's tables, by DuckDB.

Nothing is imported or copied: the tables are views of the RUN's Parquet files, and DuckDB reads of them what a question
needs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.naming import FRAMED
from hypermon.host.recording import Run
from hypermon.host.semantics import create_views, semantic_files

__all__ = ["TABLES_QUESTION", "batches", "connect", "first_rows", "sql", "table_files"]

#: What tables there are, and what is in them.
TABLES_QUESTION = ("select table_name as \"table\", column_name as \"column\", data_type as type "
                   "from duckdb_columns() where not internal order by table_name, column_index")


def table_files(run: Run) -> dict[str, list[Path]]:
    """The tables that a RUN has, by name, and their files; decodes it first if need be."""
    files = {"events": run.event_files(), "loss": [run.path / "loss.parquet"]}
    more = {"framed": run.path / FRAMED, "groups": run.path / "groups.parquet"}
    more = {name: path for name, path in more.items() if path.is_file()} | semantic_files(run)
    return files | {name: [path] for name, path in more.items()}


def connect(run: Run) -> duckdb.DuckDBPyConnection:
    """A connection in which every table of the RUN is a view of its name. The caller closes it.

    ``states``, ``messages`` and ``counters`` are there always, empty without a dictionary.
    """
    connection = duckdb.connect()
    tables = table_files(run)
    for name, files in tables.items():
        try:
            connection.read_parquet([str(path) for path in files]).create_view(name)
        except duckdb.Error as error:
            raise InputError(files[0], None, f"cannot be read: {str(error).splitlines()[0]}; to make it anew: remove "
                                             f"{run.path / 'decode.json'}") from None
    if "states" not in tables:
        create_views(connection, None)
    clock = run.clock
    connection.execute(f"create macro utc(time_ps) as make_timestamp_ns({clock.utc_ns} + time_ps // 1000 + "
                       f"round((time_ps // 1000) * {clock.drift_ppm * 1e-6!r}::double)::bigint)")
    return connection


def sql(run: Run, question: str) -> duckdb.DuckDBPyRelation:
    """The answer to a question, which is not computed before it is asked for: see :meth:`.Run.sql`.

    Raises
    ------
    HypermonError
        if the question is not SQL, or not about these tables.
    """
    connection = connect(run)
    try:
        relation = connection.sql(question)
    except duckdb.Error as error:
        raise _refused(error) from None
    if relation is None:
        raise HypermonError("the question: it is a statement that answers nothing; ask with select, or from")
    return relation


def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    """An answer piece by piece, as it is computed; raises HypermonError if it cannot be."""
    try:
        yield from pa.RecordBatchReader.from_stream(relation)
    except (duckdb.Error, pa.ArrowException) as error:
        raise _refused(error) from None


def first_rows(relation: duckdb.DuckDBPyRelation, count: int) -> list[tuple[Any, ...]]:
    """So many rows of an answer; raises HypermonError if it cannot be computed."""
    try:
        return relation.limit(count).fetchall()
    except duckdb.Error as error:
        raise _refused(error) from None


def _refused(error: Exception) -> HypermonError:
    return HypermonError(f"the question: {str(error).splitlines()[0]}")
