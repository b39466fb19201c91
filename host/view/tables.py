"""Queries of a page on a RUN's tables, answered by DuckDB from the Parquet files.

Times in answers are picoseconds after the beginning of the stretch that was asked for, so that they are exact in a
page: JavaScript's numbers have 53 bits.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.semantic_tables import known_semantics, semantic_files
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording.parts import Part
from hypermon.host.run import Run
from hypermon.host.view.bins import Bins, BinsFile, Kinds, keep
from hypermon.host.view.shares import Gathered, States, length_for, occupied

__all__ = ["STATES_OVERVIEW", "Tables"]

STATES_OVERVIEW = "states_overview.parquet"

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
    files, losses : the files of its items, see :func:`.item_files`, and of its losses, which have been checked.
    sound : called before rows of other tables are read; it raises HypermonError if they must not be used.

    Members
    -------
    columns : of the items.
    stories : the states and messages of the RUN's dictionary are there; see :meth:`tell`.
    states, messages : how many there are.
    names : of the states, in order.

    Many states have an overview, ``RUN/states_overview.parquet``: for how long they are open in each bin of the run.
    Pictures whose columns are long are made from it, whether it was read or has just been made.
    """

    def __init__(self, run: Run, files: Sequence[Path], losses: Sequence[Path], sound: Callable[[], None]):
        self._connect(run, sound)
        self._view("items", files)
        self._view("loss", losses)
        self._named()

    def _connect(self, run: Run, sound: Callable[[], None], file: Path | str = ":memory:") -> None:
        """Opens a database; it has no tables yet."""
        self._run, self._sound = run, sound
        self._connection = duckdb.connect(file, config=_SETTINGS)
        self._connection.execute("set temp_directory = ?", [tempfile.gettempdir()])
        self.stories, self.states, self.messages, self._values = False, 0, 0, 0
        self.names: list[str] = []
        self._lengths: list[Bins] = []
        self._known: dict[str, Any] | None = None
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

    def begin(self, begin_ps: int, end_ps: int) -> None:
        """Opens the overview of the states, if the RUN has one that is of its tables; reads none of these.

        Parameters
        ----------
        begin_ps, end_ps : of the run.
        """
        parts = known_semantics(self._run)
        if parts is not None:
            self._known = self._made_of(parts, begin_ps, end_ps)
            file = self._overview()
            first = file.read(0)
            if file.note is not None and first is not None:
                self.names, self.states, self._lengths = file.note["names"], parts["states.parquet"]["rows"], [first]

    def _made_of(self, parts: Mapping[str, Part], begin_ps: int, end_ps: int) -> dict[str, Any]:
        return {"states": dict(parts["states.parquet"]), "begin_ps": begin_ps, "end_ps": end_ps}

    def _overview(self) -> BinsFile:
        file = BinsFile(self._run.path / STATES_OVERVIEW, None, self._known or {})
        if file.note is not None:
            file.kinds = self._kinds(file.note["names"])
        return file

    def _kinds(self, names: Sequence[str]) -> Kinds:
        return Kinds([node for node in range(self._run.info.nodes) for _ in names], "open_ps", names)

    def tell(self, begin_ps: int, end_ps: int) -> None:
        """Makes the states and messages of the RUN's dictionary, if it has one; this may take long.

        Parameters
        ----------
        begin_ps, end_ps : of the run.
        """
        files = semantic_files(self._run)
        for name, file in files.items():
            self._view(name, [file])
        if files:
            # A picture's lines need no more than a double, and JSON has no word for what is infinite or no number.
            self._connection.execute("create or replace view counted as select counter, node, time_ps, "
                                     "value::double as value from counters where isfinite(value::double)")
            self.states, self.messages, self._values = (self.ask(f"select count(*) from {name}")[0][0]
                                                        for name in ("states", "messages", "counters"))
            self._gather(files["states"], begin_ps, end_ps)
            self._coarse(begin_ps, end_ps)
        self.stories = bool(files)

    def _gather(self, states: Path, begin_ps: int, end_ps: int) -> None:
        """Reads or makes the overview of the states, if they are many, and notes the names of the states."""
        parts = known_semantics(self._run)
        made_of = None if parts is None else self._made_of(parts, begin_ps, end_ps)
        if made_of is not None and made_of == self._known and self._lengths:
            second = self._overview().read(1)
            if second is not None:
                self._lengths = [*self._lengths, second]
                return
        names = [row[0] for row in self.ask("select distinct name from states order by 1")]
        lengths = self._gathered(states, names, begin_ps, end_ps) if self.states > MANY else []
        self.names, self._lengths = names, lengths
        if lengths and made_of is not None:
            keep(self._run.path, STATES_OVERVIEW, self._kinds(names), lengths, made_of, {"names": names})

    def _gathered(self, states: Path, names: list[str], begin_ps: int, end_ps: int) -> list[Bins]:
        gathered, number = Gathered(self._run.info.nodes * len(names), begin_ps, end_ps), {
            name: k for k, name in enumerate(names)}
        try:
            with pq.ParquetFile(states, read_dictionary=["name"]) as file:
                for batch in file.iter_batches(_BATCH, columns=["node", "name", "begin_ps", "end_ps", "lost_ps"]):
                    own = np.array([number[name] for name in batch["name"].dictionary.to_pylist()], np.int64)
                    # As known_until() says it in SQL.
                    ends = pc.coalesce(batch["end_ps"], batch["lost_ps"], pa.scalar(end_ps))
                    node, name, begins, until = (np.from_dlpack(column).astype(np.int64) for column in (
                        batch["node"], batch["name"].indices, batch["begin_ps"], ends))
                    gathered.add(States(node * len(names) + own[name], begins, np.maximum(begins, until)))
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise InputError(states, None, f"it cannot be read: {(str(error).splitlines() or [''])[0][:300]}") from None
        return gathered.lengths()

    def _coarse(self, begin_ps: int, end_ps: int) -> None:
        """Makes coarser tables for pictures of long stretches, which have too many rows to read for each picture."""
        self._bin_ps = max((end_ps - begin_ps) // _BINS, 1)
        if self.messages > MANY:
            self._connection.execute(f"create table some_messages as {_messages('true', self._bin_ps)}")
        if self._values > MANY:
            self._connection.execute(f"create table some_counters as {_COUNTERS} // {self._bin_ps}")

    def _states(self, where: str) -> str:
        """The question for the columns of :class:`States`."""
        return (f"select node::bigint * {len(self.names)} + list_position($names, name) - 1 as kind, begin_ps, "
                f"greatest({known_until('$end')}, begin_ps) as until_ps from states where {where}")

    def ask(self, question: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of an answer. Raises HypermonError if a table cannot be read."""
        self._sound()
        return self.known(question, values)

    def known(self, question: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Like :meth:`ask`, at once: of the losses only."""
        with self._reads() as cursor:
            return cursor.execute(question, values or None).fetchall()

    @contextmanager
    def _asked(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor. Raises HypermonError if a table cannot be read."""
        self._sound()
        with self._reads() as cursor:
            yield cursor

    @contextmanager
    def _reads(self) -> Iterator[duckdb.DuckDBPyConnection]:
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
        return [list(row) for row in self.known(
            f"select node, min(from_ps) - $1, max(to_ps) - $1, sum(lost)::bigint, count(*) from loss "
            f"where from_ps < $2 and to_ps >= $1 and node between {nodes.start} and {nodes.stop - 1} "
            f"group by node, (from_ps - $1) // $3, (to_ps - $1) // $3 order by 2, 1 limit 20000",
            [from_ps, to_ps, column_ps])]

    def spans(self, from_ps: int, to_ps: int, nodes: range, columns: int, end_ps: int) -> dict[str, Any]:
        """States that overlap a stretch: node, name and key, begin, end, whether the end was seen, number of the name.

        ``many``: there are too many; :meth:`shares` has them.
        """
        if length_for(self._lengths, (to_ps - from_ps) / columns) is not None:
            return {"rows": [], "many": True}
        if not self.stories:
            return {"rows": [], "many": False}
        rows = self.ask(f"select node, name || coalesce(' ' || key, ''), begin_ps - $from, "
                        f"{known_until('$end')} - $from, end_ps is not null, list_position($names, name) - 1 "
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
        length = length_for(self._lengths, (to_ps - from_ps) / columns)
        if length is not None:
            open_ps = length.columns(from_ps, to_ps, columns, slice(first, nodes.stop * names))
            shares = np.maximum(open_ps.T * (columns / (to_ps - from_ps)), 0)
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

    def arrows(self, from_ps: int, to_ps: int, nodes: range, columns: int,
               only: Sequence[int] | None = None) -> dict[str, Any]:
        """Messages that overlap a stretch: name and key, sender, receiver, sent, received.

        ``only``: those between two of these nodes; None: between any. ``out``: the number of messages that are left
        out. Of those between two nodes that were sent in the same columns, the one that took longest is kept.
        """
        if not self.stories:
            return {"rows": [], "out": 0}
        where = ("sent_ps < $to and received_ps >= $from and "
                 "(sender between $first and $last or receiver between $first and $last)")
        values: dict[str, Any] = {"from": from_ps, "to": to_ps, "first": nodes.start, "last": nodes.stop - 1}
        if only is not None:
            values["only"] = list(only)
            where += "".join(f" and {node} in (select unnest($only::bigint[]))" for node in ("sender", "receiver"))
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
_OVERLAP = (f"begin_ps < $to and (end_ps is null or end_ps >= $from) and {known_until('$end')} >= $from "
            "and node between $first and $last")


def _messages(where: str, cell_ps: int) -> str:
    """A question: of the messages between two nodes that were sent in a cell, the longest, and how many there are."""
    return (f"select name, sender, receiver, arg_max(sent_ps, latency_ps) as sent_ps, "
            f"arg_max(received_ps, latency_ps) as received_ps, count(*) as messages from messages "
            f"where {where} and latency_ps is not null group by name, sender, receiver, sent_ps // {cell_ps}")


#: A question, up to the length of a bin: the values of the counters of each node in bins.
_COUNTERS = ("select counter, node, max(time_ps) as time_ps, min(value) as least, max(value) as most, "
             "arg_max(value, time_ps) as last from counted group by counter, node, time_ps")
