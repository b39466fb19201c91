"""A recorded run, as programs and commands use it.

>>> from hypermon.host import open_run
>>> run = open_run("RUN")
>>> run.events(), run.loss(), run.stats()
"""

import os
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.query import sql
from hypermon.host.analysis.stats import stats
from hypermon.host.decode.decoded_run import DecodedRun

__all__ = ["Run", "open_run"]


class Run(DecodedRun):
    """A recorded run. It is decoded when that is needed.

    The recording itself (``info``, ``clock``, ``stream()``) is described at :class:`.RunDirectory`; the tables
    (``events()``, ``batches()``, ``loss()``) at :class:`.DecodedRun`.

    Parameters
    ----------
    path : the directory.

    Members
    -------
    info : :class:`.RunInfo`.

    Raises
    ------
    InputError
        if it is not a recording.
    """

    def sql(self, question: str) -> duckdb.DuckDBPyRelation:
        """Queries the RUN's tables in SQL: ``events``, ``loss``, ``states``, ``messages``, ``counters``; and
        ``framed``, ``logs`` and ``groups`` if they exist. For the columns of ``states``, ``messages`` and ``counters``
        see :mod:`.semantics`.

        The result is computed when it is fetched: ``.fetchall()``, ``.to_arrow_table()``, ``.pl()`` (Polars), ``.df()``
        (pandas).

        Raises
        ------
        HypermonError
            if the query is not valid SQL, or uses other tables.
        """
        return sql(self, question)

    def states(self) -> pa.Table:
        """States that events begin and end according to the RUN's dictionary; see :mod:`.semantics`. Empty without one.
        """
        return self.sql("from states").to_arrow_table()

    def messages(self) -> pa.Table:
        """Messages that events send and receive, matched; likewise."""
        return self.sql("from messages").to_arrow_table()

    def counters(self) -> pa.Table:
        """Counters in events; likewise."""
        return self.sql("from counters").to_arrow_table()

    def stats(self) -> dict[str, Any]:
        """The output of ``hypermon stats --json``, as a dictionary."""
        return stats(self)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a recorded run. Raises InputError if ``path`` is not a recording."""
    return Run(path)
