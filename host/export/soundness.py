"""Checks, before an export writes its first byte, that the tables of a RUN could have been written by this program.

Those of items and losses: :mod:`.decode.soundness`. Here: those that a dictionary adds.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.decode import event_framing
from hypermon.host.decode.soundness import check_events
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.dictionary.semantics import columns
from hypermon.host.errors import InputError
from hypermon.host.export.format import Tables
from hypermon.host.export.items import framed, item_files
from hypermon.host.run import Run
from hypermon.host.tables.parquet import event_schema
from hypermon.host.tables.parquet_file import unreadable

__all__ = ["check_tables"]

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


def check_tables(run: Run, tables: Tables) -> None:
    """Reads all tables that an export uses, and makes those that are missing.

    Raises
    ------
    InputError
        names the table and its fault: it is damaged, has unexpected columns, or rows that no decoder has written.
    """
    if tables is Tables.STREAM:
        return
    rows = check_events(run, run.event_files(), event_schema(run.info.item_modes, run.info.nodes))
    if tables is not Tables.ITEMS and framed(run):
        rows = check_events(run, item_files(run), event_framing.EVENT_SCHEMA)
    run.loss()
    if tables is Tables.STORIES:
        _check_tracks(run, rows)


def _check_tracks(run: Run, rows: int) -> None:
    """Checks the tables derived from events and a dictionary."""
    known = columns(kept_dictionary(run))
    for name, path in semantic_files(run).items():
        kinds = known[name]
        with duckdb.connect() as connection:
            try:
                connection.read_parquet(str(path)).create_view("asked")
                _check_kinds(path, kinds, connection.execute("describe asked").fetchall())
                where = _STRANGE[name].replace("NODES", str(run.info.nodes)).replace("ROWS", str(rows))
                strange = connection.execute(f"select count(*) filter ({where}), count(*) from asked").fetchall()[0]
                connection.execute("select " + ", ".join(f"max({column})" for column in kinds) + " from asked")
            except duckdb.Error as error:
                raise unreadable(path, error) from None
        if strange[0]:
            raise InputError(path, None, f"{strange[0]:,} of its {strange[1]:,} rows make no sense")


def _check_kinds(path: Path, columns: dict[str, str], found: Iterable[Sequence[str]]) -> None:
    if [(row[0], row[1].lower()) for row in found] != list(columns.items()):
        raise InputError(path, None, f"its columns are not {', '.join(columns)}")
