"""Queries of a page on a RUN's tables, answered by DuckDB from the Parquet files.

Times in answers are picoseconds after the beginning of the stretch that was asked for, so that they are exact in a
page: JavaScript's numbers have 53 bits.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.run import Run

__all__ = ["Tables"]

#: Rows of each kind in a picture, at most. Arrows of more messages could not be distinguished.
SPANS_MOST, MESSAGES_MOST = 4000, 600
#: Fields of an item that are shown, at most.
_FIELDS = 24
#: States of which the longest are kept in memory, and how many of these.
_MANY, _LONGEST = 1 << 20, 1 << 18
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_community_extensions": False,
    "python_enable_replacements": False, "memory_limit": "1GB"}


class Tables:
    """The tables of a RUN. Several threads may use it.

    Parameters
    ----------
    run : decoded.
    files : of its items; see :func:`.item_files`.

    Members
    -------
    columns : of the items.
    stories : the states and messages of the RUN's dictionary are there; see :meth:`tell`.
    states, messages : how many there are.
    """

    def __init__(self, run: Run, files: Sequence[Path]):
        self._connect(run)
        self._view("items", files)
        self._view("loss", run.loss_files())
        self._named()

    def _connect(self, run: Run, file: Path | str = ":memory:") -> None:
        """Opens a database; it has no tables yet."""
        self._run = run
        self._connection = duckdb.connect(file, config=_SETTINGS)
        self._connection.execute("set temp_directory = ?", [tempfile.gettempdir()])
        self.stories, self.states, self.messages = False, 0, 0
        self._longest_ps = 0        # states that are shorter are not among the longest

    def _named(self) -> None:
        """Takes note of the columns of the items."""
        self.columns = [row[0] for row in self._connection.execute("describe items").fetchall()]
        named = [text for column, text in (
            ("name", "name"), ("event", "'#' || event"), ("word", "lower(hex(word))"), ("nibble", "hex(nibble)"))
            if column in self.columns]
        #: Text of an item, in SQL.
        self.label = f"coalesce({', '.join(named)}, '?')"

    def _view(self, name: str, files: Sequence[Path]) -> None:
        try:
            self._connection.read_parquet([str(path) for path in files], hive_partitioning=False).create_view(name)
        except duckdb.Error as error:
            raise InputError(files[0], None, f"cannot be read: {str(error).splitlines()[0]}") from None

    def tell(self) -> None:
        """Makes the states and messages of the RUN's dictionary, if it has one; this may take long."""
        files = semantic_files(self._run)
        for name in ("states", "messages"):
            if name in files:
                self._view(name, [files[name]])
        if files:
            self.states, self.messages = (self.ask(f"select count(*) from {name}")[0][0]
                                          for name in ("states", "messages"))
        if self.states > _MANY:
            self._connection.execute(
                f"create table longest as select * from states order by end_ps - begin_ps desc limit {_LONGEST}")
            self._longest_ps = self.ask("select min(end_ps - begin_ps) from longest")[0][0]
        self.stories = bool(files)

    def ask(self, question: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of an answer. Raises HypermonError if a table cannot be read."""
        with self._asked() as cursor:
            return cursor.execute(question, values or None).fetchall()

    @contextmanager
    def _asked(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor. Raises HypermonError if a table cannot be read."""
        try:
            with closing(self._connection.cursor()) as cursor:
                yield cursor
        except duckdb.Error as error:
            raise HypermonError(f"{self._run.path}: {str(error).splitlines()[0]}") from None

    # ------------------------------------------------------------------------------------- pictures

    def items(self, from_ps: int, to_ps: int, nodes: range) -> dict[str, Any]:
        """All items of a stretch: times, nodes, and texts, numbered."""
        rows = self.ask(f"select time_ps - $1, node, {self.label} from items where time_ps >= $1 and time_ps < $2 "
                        f"and node between {nodes.start} and {nodes.stop - 1}"
                        f"{' order by time_ps, node' if self._run.info.boards else ''}", [from_ps, to_ps])
        labels: dict[str, int] = {}
        return {"time": [row[0] for row in rows], "node": [row[1] for row in rows],
                "label": [labels.setdefault(row[2], len(labels)) for row in rows], "labels": list(labels)}

    def losses(self, from_ps: int, to_ps: int, nodes: range, column_ps: int) -> list[list[int]]:
        """Losses that overlap a stretch: node, from, to, items lost, outages. Those of one column are joined."""
        return [list(row) for row in self.ask(
            f"select node, min(from_ps) - $1, max(to_ps) - $1, sum(lost)::bigint, count(*) from loss "
            f"where from_ps < $2 and to_ps >= $1 and node between {nodes.start} and {nodes.stop - 1} "
            f"group by node, (from_ps - $1) // $3, (to_ps - $1) // $3 order by 2, 1 limit 20000",
            [from_ps, to_ps, column_ps])]

    def spans(self, from_ps: int, to_ps: int, nodes: range, column_ps: int, end_ps: int) -> dict[str, Any]:
        """States that overlap a stretch: node, name and key, begin, end, and whether the end was seen.

        ``least_ps``: shorter ones are left out, because there are too many.
        """
        if not self.stories:
            return {"rows": [], "least_ps": 0}
        many = self.states > _MANY and column_ps >= self._longest_ps
        question = (f"select node, name || coalesce(' ' || key, ''), begin_ps - $1, "
                    f"coalesce(end_ps, lost_ps, {end_ps:d}) - $1, end_ps is not null "
                    f"from {'longest' if many else 'states'} where begin_ps < $2 "
                    f"and (end_ps is null or end_ps >= $1) and coalesce(end_ps, lost_ps, {end_ps:d}) >= $1 "
                    f"and node between {nodes.start} and {nodes.stop - 1} ")
        order = f"coalesce(end_ps, lost_ps, {2**62}) - begin_ps"
        rows = [] if many else self.ask(question + f"limit {SPANS_MOST + 1}", [from_ps, to_ps])
        least = 0
        if many or len(rows) > SPANS_MOST:
            least = column_ps
            rows = self.ask(question + f"and {order} >= $3 order by {order} desc limit {SPANS_MOST}",
                            [from_ps, to_ps, column_ps])
        rows.sort(key=lambda row: (row[2], -row[3]))
        return {"rows": [list(row) for row in rows], "least_ps": least}

    def arrows(self, from_ps: int, to_ps: int, nodes: range) -> dict[str, Any]:
        """Messages that overlap a stretch: name and key, sender, receiver, sent, received.

        ``more``: there are too many, and all are left out.
        """
        if not self.stories:
            return {"rows": [], "more": False}
        rows = self.ask(
            "select name || coalesce(' ' || key, ''), sender, receiver, sent_ps - $1, received_ps - $1 from messages "
            "where sent_ps < $2 and received_ps >= $1 and (sender between $3 and $4 or receiver between $3 and $4) "
            f"limit {MESSAGES_MOST + 1}", [from_ps, to_ps, nodes.start, nodes.stop - 1])
        more = len(rows) > MESSAGES_MOST
        return {"rows": [] if more else [list(row) for row in rows], "more": more}

    def item(self, time_ps: int, node: int) -> list[dict[str, str]]:
        """The items of a node at one time, with all their fields as text. Raises HypermonError as :meth:`ask` does."""
        with self._asked() as cursor:
            found = cursor.execute("select * from items where time_ps = ? and node = ? limit 8", [time_ps, node])
            names = [column[0] for column in found.description or []]
            return [{name: value.hex(" ") if isinstance(value, bytes) else str(value)
                     for name, value in list(zip(names, row, strict=True))[:_FIELDS] if value is not None}
                    for row in found.fetchall()]
