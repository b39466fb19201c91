"""Drawable contents of a run, by node and time: spans, points, counters, and messages between nodes.

DuckDB queries the tables. Rows arrive piece by piece, so that a run of any length is drawn in constant memory. Items of
several boards are merged once, into a temporary file; see :mod:`.node_order`.
"""

import heapq
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.logs import log_file
from hypermon.host.analysis.semantic_tables import semantic_files, view_events
from hypermon.host.blocks.times import PS_MAX
from hypermon.host.decode.table_files import by_board
from hypermon.host.dictionary.dictionary import Dictionary, EventKind
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.dictionary.semantics import create_views, known_until
from hypermon.host.export.brackets import Span
from hypermon.host.export.items import item_files
from hypermon.host.export.node_order import write_by_node
from hypermon.host.recording.aside import discard
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["NO_FLOW", "PLAIN", "Count", "Flow", "Message", "Point", "Tracks", "NamedSpan", "plain", "tracks_of"]

Values = dict[str, Any]
#: Columns that describe an item without a dictionary.
PLAIN = ("nibble", "word", "event", "payload", "aborted")
#: Items and nodes that are fetched together.
_ROWS, _NODES = 1 << 16, 1 << 10


class Message(NamedTuple):
    """A message that was seen at both endpoints: its number in the run, the node at the other endpoint, its name and
    key.
    """

    number: int
    peer: int
    name: str
    key: str | None


class Flow(NamedTuple):
    """The messages that an event sends and receives."""

    sent: tuple[Message, ...] = ()
    received: tuple[Message, ...] = ()


#: Of events that neither send nor receive.
NO_FLOW = Flow()


class NamedSpan(NamedTuple):
    """A span, with the fields of its beginning and end events; ``first`` and ``last`` of ``span`` are those events."""

    span: Span
    begin: Values
    end: Values
    begin_flow: Flow
    end_flow: Flow


class Point(NamedTuple):
    """An event that begins and ends no span that was seen. ``plain``: it is in no dictionary, see :func:`plain`."""

    time_ps: int
    name: str
    values: Values
    flow: Flow
    plain: bool = False


class Count(NamedTuple):
    """A value that is counted."""

    time_ps: int
    counter: str
    value: float


class Tracks:
    """Queries a connection that has the tables ``events``, ``loss``, ``states``, ``messages`` and ``counters``.

    Parameters
    ----------
    connection : where it creates more of them; see :func:`.semantics.create_views`.
    dictionary : of the events, if they have one.
    selection : of nodes and times. A span that overlaps the times is drawn whole; a message needs both endpoints.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, dictionary: Dictionary | None,
                 selection: Selection | None = None):
        self._connection, self.dictionary = connection, dictionary
        #: Ids of long messages, which are in the table ``logs``.
        self.logging = dictionary.logging if dictionary is not None else None
        self._from_ps, self._to_ps, self._nodes = _bounds(selection or Selection())
        #: Of each event of the dictionary, the names of its fields and their columns.
        self._fields = {} if dictionary is None else {
            number: [(field.name, dictionary.columns[kind.name, field.name]) for field in kind.fields]
            for number, kind in dictionary.by_id.items()}
        self._fetched: dict[int, list[dict[str, Any]]] = {}
        self._many: list[range] | None = None
        [[views]] = connection.execute("select count(*) from duckdb_views() where view_name = 'numbered'").fetchall()
        self._by_node = bool(views)
        connection.execute("create view if not exists numbered as "
                           "select row_number() over () - 1 as row, * from events")
        connection.execute(f"""
            create table flows as
            with matched as (select row_number() over (order by send_row, receive_row) as number, *
                             from messages where latency_ps is not null and {self._within('sent_ps', 'sent_ps')}
                             and {self._within('received_ps', 'received_ps')}
                             and {self._of('sender')} and {self._of('receiver')}),
            ends as (select send_row as row, true as sends, number, receiver as peer, name, key from matched
                     union all select receive_row, false, number, sender, name, key from matched)
            select row, list(what order by what.number) filter (sends) as sent,
                   list(what order by what.number) filter (not sends) as received
            from (select row, sends, {{number: number, peer: peer, name: name, key: key}} as what from ends)
            group by row""")

    def spans(self, node: int, unit_ps: int = 1) -> Iterator[NamedSpan]:
        """Spans that a node's events begin and end, by beginning. Among those that begin together, the longest comes
        first.

        Together means within the same unit of time. A span whose end was not seen ends where the node began to lose
        something; otherwise it has no end.
        """
        if self.dictionary is None:
            return
        columns = list(dict.fromkeys(self.dictionary.columns.values()))
        said = ", ".join(f'{way}."{column}" as "{way} {column}"' for way in "be" for column in ["event", *columns])
        for row in self._rows(f"""
                select s.*, {known_until(row='s.')} as until_ps, {said}, bf.sent as "b sent",
                       bf.received as "b received", ef.sent as "e sent", ef.received as "e received"
                from states s join (from numbered where node = {node}) b on s.begin_row = b.row
                left join (from numbered where node = {node}) e on s.end_row = e.row
                left join flows bf on bf.row = s.begin_row left join flows ef on ef.row = s.end_row
                where s.node = {node} and {self._of('s.node')} and {self._within('s.begin_ps', 'until_ps')}
                order by s.begin_ps // {unit_ps}, until_ps // {unit_ps} desc nulls first,
                s.begin_row"""):
            span = Span(row["name"], row["begin_ps"], row["until_ps"], row["begin_row"], row["end_row"])
            yield NamedSpan(span, self._values(row, "b "), self._values(row, "e "),
                            _flow(row["b sent"], row["b received"]), _flow(row["e sent"], row["e received"]))

    def points(self, node: int) -> Iterator[Point]:
        """All other items of the node, in order."""
        if self.dictionary is None:
            yield from self._plain_items(node)
            return
        items = (self.point(row) for batch in self.item_batches(node) for row in batch.to_pylist())
        yield from heapq.merge(items, self.logs(node), key=lambda point: point.time_ps)

    def logs(self, node: int) -> Iterator[Point]:
        """Long messages and log lines, at the time at which they were complete."""
        if self.logging is None:
            return
        for row in self._rows(f"select * from logs where node = {node} and {self._of('node')} and "
                              f"{self._within('time_ps', 'time_ps')} order by time_ps"):
            values = {"payload": row["payload"]} if row["text"] is None else {}
            yield Point(row["time_ps"], row["text"] or row["name"] or f"event {row['event']}",
                        {**values, "kind": row["name"], "complete": str(row["complete"]).lower()}, Flow(),
                        row["text"] is None)

    def plain_batches(self) -> Iterator[pa.RecordBatch]:
        """All chosen items of a run without a dictionary, of all nodes, with the columns of the events table.

        Items of a node are in order; those of several boards need not be in order of time.
        """
        with self._connection.cursor() as cursor:
            yield from pa.RecordBatchReader.from_stream(cursor.sql(
                f"select * exclude (row) from numbered where {self._of('node')} and "
                f"{self._within('time_ps', 'time_ps')}" if self._by_node else
                f"select * from events where {self._of('node')} and {self._within('time_ps', 'time_ps')}"))

    def _plain_items(self, node: int) -> Iterator[Point]:
        """Items without names: those of many nodes are fetched at a time, because a query takes milliseconds."""
        if self._many is None:
            self._many = self._together()
        nodes = next((nodes for nodes in self._many if node in nodes), range(0))
        if len(nodes) < 2:
            rows: Iterable[dict[str, Any]] = self._rows(self._plain_question(f"node = {node}"))
        else:
            if node not in self._fetched:
                self._fetched = {one: [] for one in nodes}
                for row in self._rows(self._plain_question(f"node between {nodes[0]} and {nodes[-1]}")):
                    self._fetched[row["node"]].append(row)
            rows = self._fetched[node]
        for row in rows:
            yield Point(row["time_ps"], *plain(row), NO_FLOW, True)

    def _plain_question(self, where: str) -> str:
        return (f"select * from numbered where {where} and {self._of('node')} and {self._within('time_ps', 'time_ps')} "
                "order by node, row")

    def _together(self) -> list[range]:
        """Consecutive nodes that have few items together, and single nodes that have many."""
        found: list[range] = []
        held = 0
        for row in self._rows("select node, count(*) as items from numbered group by node order by node"):
            node, items = row["node"], row["items"]
            if found and held + items <= _ROWS and node - found[-1].start < _NODES:
                found[-1], held = range(found[-1].start, node + 1), held + items
            else:
                found.append(range(node, node + 1))
                held = items
        return found

    def item_batches(self, node: int) -> Iterator[pa.RecordBatch]:
        """The items of :meth:`points` that are neither long messages nor log lines, in order: columns of the events
        table, and the messages that each has ``sent`` and ``received``, null if there are none."""
        own = "" if self.logging is None else ("and coalesce(n.event, -1) not in "
                                              f"({self.logging.piece}, {self.logging.log}, {self.logging.text})")
        return self._batches(f"""
                select n.*, f.sent, f.received from numbered n left join flows f using (row)
                where n.node = {node} and {self._of('n.node')} and {self._within('n.time_ps', 'n.time_ps')} {own}
                      and n.row not in (select begin_row from states where begin_row is not null and node = {node}
                      union all select end_row from states where end_row is not null and node = {node})
                order by n.row""")

    def point(self, row: dict[str, Any]) -> Point:
        """A row of :meth:`item_batches`."""
        kind = self._kind(row)
        if kind is not None:
            return Point(row["time_ps"], kind.name, self._values(row), _flow(row["sent"], row["received"]))
        return Point(row["time_ps"], *plain({name: row.get(name) for name in PLAIN}),
                     _flow(row["sent"], row["received"]), True)

    def count_batches(self, node: int) -> Iterator[pa.RecordBatch]:
        """All values that the node counts, in order: rows of the table of counters."""
        if self.dictionary is None:
            return iter(())
        return self._batches(f"select * from counters where node = {node} and {self._of('node')} and "
                             f"{self._within('time_ps', 'time_ps')} order by row, counter")

    @staticmethod
    def count(row: dict[str, Any]) -> Count:
        """A row of :meth:`count_batches`."""
        whole = row["value"] if row.get("whole") is None else row["whole"]
        return Count(row["time_ps"], row["counter"], int(whole) if isinstance(whole, Decimal) else whole)

    def _within(self, begin: str, end: str) -> str:
        """An SQL condition: something overlaps the chosen times; it has no end if that is null."""
        return f"{begin} < {self._to_ps} and coalesce({end}, {self._to_ps}) >= {self._from_ps}"

    def _of(self, node: str) -> str:
        """An SQL condition: it is one of the chosen nodes."""
        return "true" if self._nodes is None else f"list_contains({self._nodes}::integer[], {node}::integer)"

    def _batches(self, question: str) -> Iterator[pa.RecordBatch]:
        # A separate cursor: the results of several queries are read side by side.
        with self._connection.cursor() as cursor:
            yield from pa.RecordBatchReader.from_stream(cursor.sql(question))

    def _rows(self, question: str) -> Iterator[dict[str, Any]]:
        return (row for batch in self._batches(question) for row in batch.to_pylist())

    def _kind(self, row: dict[str, Any]) -> EventKind | None:
        if self.dictionary is None or row.get("event") is None or row.get("aborted"):
            return None
        return self.dictionary.by_id.get(row["event"])

    def _values(self, row: dict[str, Any], way: str = "") -> Values:
        """Of an event of the dictionary that was not aborted, as those are that begin and end a span."""
        return {name: row[way + column] for name, column in self._fields.get(row[way + "event"], ())}


def _flow(sent: list[dict[str, Any]] | None, received: list[dict[str, Any]] | None) -> Flow:
    if not sent and not received:
        return NO_FLOW
    return Flow(*(tuple(Message(**message) for message in end or ()) for end in (sent, received)))


def plain(said: Values) -> tuple[str, Values]:
    """The name of an item that is in no dictionary, and its values."""
    event = said.get("event")
    if said.get("aborted"):
        if said.get("word") is not None:
            return "aborted word", {"word": said["word"]}
        return ("aborted" if event is None else f"aborted event {event}"), {"payload": said.get("payload")}
    if event is not None:
        return f"event {event}", {"payload": said.get("payload")}
    if said.get("word") is not None:
        return "word", {"word": said["word"]}
    return f"nibble {said.get('nibble')}", {}


def _bounds(selection: Selection) -> tuple[int, int, list[int] | None]:
    """Times and nodes of a selection, as numbers for a query."""
    begin, end = selection.from_ps, selection.to_ps
    return (-PS_MAX if begin is None else begin, PS_MAX if end is None else end,
            None if selection.nodes is None else list(selection.nodes))


def tracks_of(run: Run, selection: Selection | None = None) -> Tracks:
    """The tracks of a RUN, or of a part of it: of its events, or of those framed from its nibbles."""
    connection, files, tables = duckdb.connect(), item_files(run), semantic_files(run)
    folder = Path(tempfile.mkdtemp(prefix="hypermon-"))
    try:
        if len(by_board(files)) == 1:
            view_events(connection, files)
        else:
            # States and messages name items by their numbers in the whole run.
            write_by_node(files, Selection() if tables else selection or Selection(), folder / "numbered")
            connection.read_parquet(str(folder / "numbered")).create_view("numbered")
            connection.execute("create view events as select * exclude (row) from numbered order by row")
        tracks = _tracks(run, connection, tables, selection)
    except BaseException:
        discard(folder)
        raise
    weakref.finalize(tracks, discard, folder)
    return tracks


def _tracks(run: Run, connection: duckdb.DuckDBPyConnection, tables: dict[str, Path],
            selection: Selection | None) -> Tracks:
    connection.read_parquet([str(path) for path in run.loss_files()], hive_partitioning=False).create_view("loss")
    for name, path in tables.items():
        connection.read_parquet(str(path)).create_view(name)
    logs = log_file(run)
    if logs is not None:
        connection.read_parquet(str(logs)).create_view("logs")
    if not tables:
        create_views(connection, None)
    return Tracks(connection, kept_dictionary(run) if tables else None, selection)
