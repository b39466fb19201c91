"""SQL questions of a page about a run: rows as text, and the times in them."""

import threading
from contextlib import closing
from typing import Any

import duckdb
from hypermon.host.analysis.query import ask, connect
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.errors import HypermonError

__all__ = ["ROWS_MOST", "answer"]

#: Rows of an answer.
ROWS_MOST = 1000
#: Seconds for a question, and characters of one.
_SECONDS, _LONGEST = 30.0, 10_000
#: The columns that make a row a place on the timeline.
_TIME, _NODE = "time_ps", "node"


def answer(run: DecodedRun, question: str) -> dict[str, Any]:
    """The answer to a question about the tables of a RUN, which it can only read; see :meth:`.Run.sql`.

    Returns
    -------
    dict
        ``columns``: their names. ``rows``: the first :data:`ROWS_MOST`, a text or null for each column. ``more``: there
        are others. ``places``: of each row the time in picoseconds, as text, and the node, from the columns ``time_ps``
        and ``node``; the node is -1 if there is none. Null for a row without a time; the list is empty without
        a column ``time_ps``.

    Raises
    ------
    HypermonError
        if the question is not valid, writes something, or takes too long.
    """
    if len(question) > _LONGEST:
        raise HypermonError(f"the query: it has more than {_LONGEST:,} characters")
    with closing(connect(run)) as connection:
        late = threading.Timer(_SECONDS, connection.interrupt)
        late.start()
        try:
            relation = ask(connection, question)
            columns = list(relation.columns)
            rows = relation.limit(ROWS_MOST + 1).fetchall()
        except duckdb.InterruptException:
            raise HypermonError(f"the query: it took more than {_SECONDS:.0f} s; ask for less, or use: hypermon query "
                                f"{run.path}") from None
        except duckdb.Error as error:
            raise HypermonError(f"the query: {str(error).splitlines()[0]}") from None
        finally:
            late.cancel()
    shown = rows[:ROWS_MOST]
    return {"columns": columns, "rows": [[_text(value) for value in row] for row in shown],
            "more": len(rows) > ROWS_MOST, "places": _places(columns, shown)}


def _places(columns: list[str], rows: list[tuple[Any, ...]]) -> list[list[Any] | None]:
    if _TIME not in columns:
        return []
    at, node = columns.index(_TIME), columns.index(_NODE) if _NODE in columns else None
    return [None if type(row[at]) is not int else
            [str(row[at]), row[node] if node is not None and type(row[node]) is int else -1] for row in rows]


def _text(value: Any) -> str | None:
    return None if value is None else value.hex(" ") if isinstance(value, bytes) else str(value)
