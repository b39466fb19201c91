"""SQL over a RUN's tables, with DuckDB.

Nothing is imported or copied: the tables are views of the RUN's Parquet files, and DuckDB reads only the parts that a
query needs.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.board_columns import board_tables
from hypermon.host.analysis.locked import SETTINGS, lock
from hypermon.host.analysis.logs import log_file
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.decode.board_store import BOARDS_SCHEMA, BOARDS_TABLE
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.table_files import by_board
from hypermon.host.dictionary.semantics import create_views
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.events import framed_file
from hypermon.host.recording.parts import PARTS
from hypermon.host.tables.parquet import checked_table

__all__ = ["TABLES_QUESTION", "ask", "batches", "connect", "create_view", "first_rows", "sql", "table_files"]

#: The tables and their contents.
TABLES_QUESTION = ("select table_name as \"table\", column_name as \"column\", data_type as type "
                   "from duckdb_columns() where not internal order by table_name, column_index")


#: Statements that write nothing; ``pivot`` is the second kind.
_QUESTIONS = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)


def table_files(run: DecodedRun) -> dict[str, list[Path]]:
    """The tables of a RUN, by name, and their files. Decodes it first if needed."""
    files = {"events": run.event_files(), "loss": run.loss_files()}
    boards = run.path / BOARDS_TABLE
    if BOARDS_TABLE in run.decode()[PARTS]:
        files["boards"] = [checked_table(boards, BOARDS_SCHEMA)]
    more = {"framed": framed_file(run), "groups": run.groups_file(), "logs": log_file(run), **semantic_files(run)}
    return files | {name: [path] for name, path in more.items() if path is not None}


def connect(run: DecodedRun) -> duckdb.DuckDBPyConnection:
    """A connection in which every table of the RUN is a view of its name. The caller closes it.

    ``states``, ``messages`` and ``counters`` always exist; they are empty without a dictionary. The connection can read
    nothing but the files of these tables, and can write nothing. Its settings cannot be changed.
    """
    tables, clock = table_files(run), run.clock
    connection = duckdb.connect(config=SETTINGS)
    for name, files in tables.items():
        try:
            create_view(connection, name, files)
        except duckdb.Error as error:
            raise InputError(files[0], None, f"cannot be read: {str(error).splitlines()[0]}") from None
    if "states" not in tables:
        create_views(connection, None)
    connection.execute(f"create macro utc(time_ps) as make_timestamp_ns({clock.utc_ns:d} + time_ps // 1000 + "
                       f"round((time_ps // 1000) * {clock.drift_ppm * 1e-6!r}::double)::bigint)")
    lock(connection, chain.from_iterable(tables.values()))
    return connection


def create_view(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> None:
    """A view of files. Tables of several boards have the columns ``board`` and ``date`` of their paths, too."""
    if len(by_board(files)) == 1:
        connection.read_parquet([str(path) for path in files], hive_partitioning=False).create_view(name)
        return
    connection.execute(f"create view {name} as {board_tables(files)}")


def sql(run: DecodedRun, question: str) -> duckdb.DuckDBPyRelation:
    """The result of a query, computed when it is fetched: see :meth:`.Run.sql`.

    Raises
    ------
    HypermonError
        if the query is not a single valid SQL query, or uses other tables.
    """
    return ask(connect(run), question)


def ask(connection: duckdb.DuckDBPyConnection, question: str) -> duckdb.DuckDBPyRelation:
    """The same in a connection of :func:`connect`."""
    try:
        kinds = [statement.type for statement in connection.extract_statements(question)]
        if len(kinds) == 1 and kinds[0] in _QUESTIONS:
            relation = connection.sql(question)
            if relation is not None:
                return relation
    except duckdb.Error as error:
        raise _refused(error) from None
    raise HypermonError("the query: it must be one statement that only reads, such as select, from, show or describe")


def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.RecordBatch]:
    """A result piece by piece, as it is computed; raises HypermonError if that fails."""
    try:
        yield from pa.RecordBatchReader.from_stream(relation)
    except (duckdb.Error, pa.ArrowException) as error:
        raise _refused(error) from None


def first_rows(relation: duckdb.DuckDBPyRelation, count: int) -> list[tuple[Any, ...]]:
    """The first N rows of a result; raises HypermonError if it cannot be computed."""
    try:
        return relation.limit(count).fetchall()
    except duckdb.Error as error:
        raise _refused(error) from None


def _refused(error: Exception) -> HypermonError:
    return HypermonError(f"the query: {str(error).splitlines()[0]}")
