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
import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.run import Run
from hypermon.host.view.shares import Grid, States, occupied

__all__ = ["Tables"]

#: States of a picture that are drawn one by one, at most, and messages. Arrows of more could not be distinguished.
SPANS_MOST, MESSAGES_MOST = 4000, 600
#: Columns of a picture in which messages between the same two nodes are one arrow, if there are too many; and of which
#: counters have one value.
_CELL, _STEP = 32, 4
#: States that are counted at once.
_BATCH = 1 << 20
#: Points of counters in a picture, at most.
_POINTS = 20_000
#: Fields of an item that are shown, at most.
_FIELDS = 24
#: If there are more states, messages or values of counters, a table in bins of the run is made in memory; its bins.
MANY, _BINS = 1 << 16, 1 << 10
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_community_extensions": False,
    "python_enable_replacements": False, "memory_limit": "1GB"}


class Tables:
    """The tables of a RUN. Several threads may use it.

    Parameters
    ----------
    run : the RUN, decoded.
    files : the files of its items; see :func:`.item_files`.

    Members
    -------
    columns : of the items.
    stories : the states and messages of the RUN's dictionary are there; see :meth:`tell`.
    states, messages : how many there are.
    names : of the states, in order.
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
        self.stories, self.states, self.messages, self._values = False, 0, 0, 0
        self.names: list[str] = []
        self._grid: Grid | None = None
        self._bin_ps = 0

    def _named(self) -> None:
        """Notes the columns of the items."""
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
        for name, file in files.items():
            self._view(name, [file])
        if files:
            # A picture's lines need no more than a double, and JSON has no word for what is infinite or no number.
            self._connection.execute("create or replace view counted as select counter, node, time_ps, "
                                     "value::double as value from counters where isfinite(value::double)")
            self.states, self.messages, self._values = (self.ask(f"select count(*) from {name}")[0][0]
                                                        for name in ("states", "messages", "counters"))
            self.names = [row[0] for row in self.ask("select distinct name from states order by 1")]
            self._coarse()
        self.stories = bool(files)

    def _coarse(self) -> None:
        """Makes coarser tables for pictures of long stretches, which have too many rows to read for each picture."""
        first, last = self.ask("select min(least(a, b)), max(greatest(a, b)) from ("
                               "select min(begin_ps) as a, max(coalesce(end_ps, lost_ps, begin_ps)) as b from states "
                               "union all select min(sent_ps), max(received_ps) from messages "
                               "union all select min(time_ps), max(time_ps) from counters)")[0]
        first, last = first or 0, last or 0
        self._bin_ps = max((last - first) // _BINS, 1)
        if self.states > MANY:
            grid = Grid(self._run.info.nodes * len(self.names), first, last + 1)
            with self._asked() as cursor:
                rows = cursor.sql(self._states("true"), params={"names": self.names, "end": last + 1})
                grid.fill(States(*(batch[name].to_numpy() for name in _STATES))
                          for batch in rows.to_arrow_reader(_BATCH))
            self._grid = grid
        if self.messages > MANY:
            self._connection.execute(f"create table some_messages as {_messages('true', self._bin_ps)}")
        if self._values > MANY:
            self._connection.execute(f"create table some_counters as {_COUNTERS} // {self._bin_ps}")

    def _states(self, where: str) -> str:
        """The question for the columns of :class:`States`."""
        return (f"select node::bigint * {len(self.names)} + list_position($names, name) - 1 as kind, begin_ps, "
                f"greatest(coalesce(end_ps, lost_ps, $end), begin_ps) as until_ps from states where {where}")

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

    def spans(self, from_ps: int, to_ps: int, nodes: range, columns: int, end_ps: int) -> dict[str, Any]:
        """States that overlap a stretch: node, name and key, begin, end, whether the end was seen, number of the name.

        ``many``: there are too many; :meth:`shares` has them.
        """
        if not self.stories:
            return {"rows": [], "many": False}
        if self._grid is not None and (to_ps - from_ps) / columns >= self._grid.bin_ps:
            return {"rows": [], "many": True}
        rows = self.ask(f"select node, name || coalesce(' ' || key, ''), begin_ps - $from, "
                        f"coalesce(end_ps, lost_ps, $end) - $from, end_ps is not null, list_position($names, name) - 1 "
                        f"from states where {_OVERLAP} limit {SPANS_MOST + 1}",
                        self._stretch(from_ps, to_ps, nodes, end_ps))
        if len(rows) > SPANS_MOST:
            return {"rows": [], "many": True}
        rows.sort(key=lambda row: (row[2], -row[3]))
        return {"rows": [list(row) for row in rows], "many": False}

    def _stretch(self, from_ps: int, to_ps: int, nodes: range, end_ps: int) -> dict[str, Any]:
        return {"from": from_ps, "to": to_ps, "first": nodes.start, "last": nodes.stop - 1, "end": end_ps,
                "names": self.names}

    def shares(self, from_ps: int, to_ps: int, nodes: range, columns: int,
               end_ps: int) -> tuple[list[list[int]], npt.NDArray[np.uint8]]:
        """How much of each column states take.

        Returns
        -------
        list
            node and number of the name, of those that are there.
        numpy.ndarray
            a row for each of these, a column per column: 255 is all of it, and 0 none at all.
        """
        names, first = len(self.names), nodes.start * len(self.names)
        if self._grid is not None and (to_ps - from_ps) / columns >= self._grid.bin_ps:
            shares = self._grid.shares(range(first, nodes.stop * names), from_ps, to_ps, columns)
        else:
            values = self._stretch(from_ps, to_ps, nodes, end_ps)
            with self._asked() as cursor:
                found = cursor.execute(self._states(_OVERLAP), values).fetchnumpy()
            kinds, *times = (found[name] for name in _STATES)
            shares = occupied(States(kinds - first, *times), len(nodes) * names, from_ps, to_ps, columns)
        # Every state that is there can be seen, however short it is.
        small = np.where(shares > 1e-9, np.clip(np.rint(shares * 255), 1, 255), 0).astype(np.uint8)
        there = np.flatnonzero(small.any(axis=1))
        return [[(kind + first) // names, (kind + first) % names] for kind in there.tolist()], small[there]

    def arrows(self, from_ps: int, to_ps: int, nodes: range, columns: int) -> dict[str, Any]:
        """Messages that overlap a stretch: name and key, sender, receiver, sent, received.

        ``out``: the number of messages that are left out. Of those between two nodes that were sent in the same
        columns, the one that took longest is kept.
        """
        if not self.stories:
            return {"rows": [], "out": 0}
        where = ("sent_ps < $to and received_ps >= $from and "
                 "(sender between $first and $last or receiver between $first and $last)")
        values = {"from": from_ps, "to": to_ps, "first": nodes.start, "last": nodes.stop - 1}
        cell = max((to_ps - from_ps) // columns * _CELL, 1)
        coarse, rows = self.messages > MANY and cell > self._bin_ps, []
        if not coarse:
            rows = self.ask("select name || coalesce(' ' || key, ''), sender, receiver, sent_ps - $from, "
                            f"received_ps - $from from messages where {where} limit {MESSAGES_MOST + 1}", values)
            if len(rows) <= MESSAGES_MOST:
                return {"rows": [list(row) for row in rows], "out": 0}
        # Cells are powers of two, so that arrows stay what they are while the stretch moves.
        cell = 1 << (cell.bit_length() - 1)
        source = (f"select name, sender, receiver, arg_max(sent_ps, received_ps - sent_ps) as sent_ps, "
                  f"arg_max(received_ps, received_ps - sent_ps) as received_ps, sum(messages) as messages "
                  f"from some_messages where {where} group by name, sender, receiver, sent_ps // {cell}"
                  if coarse else _messages(where, cell))
        found = self.ask(f"select name, sender, receiver, sent_ps - $from, received_ps - $from, messages::bigint "
                         f"from ({source}) order by hash(sender, receiver, sent_ps)", values)
        rows = [row[:5] for row in found[:MESSAGES_MOST]]
        return {"rows": [list(row) for row in rows], "out": sum(row[5] for row in found) - len(rows)}

    def counters(self, from_ps: int, to_ps: int, nodes: range, columns: int) -> dict[str, list[list[float]]]:
        """Values of each counter in a stretch and just beside it: node, time, least, most and last value."""
        if not self.stories or not self._values:
            return {}
        step, span = max((to_ps - from_ps) // columns * _STEP, 1), to_ps - from_ps
        steps = -(-span // step)
        coarse = self._values > MANY and step >= self._bin_ps
        source = "some_counters" if coarse else "(select *, value as least, value as most, value as last from counted)"
        # Of the values just beside the stretch, one on each side, to which the line goes.
        question = (
            "select counter, node, case when step < 0 then max(time_ps) else min(time_ps) end - $from, "
            "case when step < 0 then arg_max(last, time_ps) else min(least) end, "
            "case when step < 0 then arg_max(last, time_ps) else max(most) end, "
            f"case when step = {steps} then arg_min(last, time_ps) else arg_max(last, time_ps) end from ("
            f"select *, greatest(least((time_ps - $from) // {step}, {steps}), -1) as step from {source} "
            "where time_ps >= $low and time_ps < $high and node between $first and $last) "
            f"group by counter, node, step order by 1, 2, step limit {_POINTS}")
        values = {"from": from_ps, "low": from_ps - span, "high": to_ps + span, "first": nodes.start,
                  "last": nodes.stop - 1}
        found: dict[str, list[list[float]]] = {}
        for name, *row in self.ask(question, values):
            found.setdefault(name, []).append(row)
        return found

    def item(self, time_ps: int, node: int) -> list[dict[str, str]]:
        """The items of a node at one time, with all their fields as text. Raises HypermonError as :meth:`ask` does."""
        with self._asked() as cursor:
            found = cursor.execute("select * from items where time_ps = ? and node = ? limit 8", [time_ps, node])
            names = [column[0] for column in found.description or []]
            return [{name: value.hex(" ") if isinstance(value, bytes) else str(value)
                     for name, value in list(zip(names, row, strict=True))[:_FIELDS] if value is not None}
                    for row in found.fetchall()]


#: The columns that :meth:`Tables._states` asks for.
_STATES = ("kind", "begin_ps", "until_ps")
#: States that overlap a stretch.
_OVERLAP = ("begin_ps < $to and (end_ps is null or end_ps >= $from) and coalesce(end_ps, lost_ps, $end) >= $from "
            "and node between $first and $last")


def _messages(where: str, cell_ps: int) -> str:
    """A question: of the messages between two nodes that were sent in a cell, the longest, and how many there are."""
    return (f"select name, sender, receiver, arg_max(sent_ps, latency_ps) as sent_ps, "
            f"arg_max(received_ps, latency_ps) as received_ps, count(*) as messages from messages "
            f"where {where} and latency_ps is not null group by name, sender, receiver, sent_ps // {cell_ps}")


#: A question, up to the length of a bin: the values of the counters of each node in bins.
_COUNTERS = ("select counter, node, max(time_ps) as time_ps, min(value) as least, max(value) as most, "
             "arg_max(value, time_ps) as last from counted group by counter, node, time_ps")
