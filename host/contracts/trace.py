"""A recorded trace in DuckDB, and what is not known about it: the ground on which rules are judged.

Everything is in the time of stamps. The difference of two stamps is off by at most the *slack*. Items that may be
missing are rows of the table ``gaps``: a node may have written up to ``n`` more items with stamps from ``lo`` to
``hi``. The time before the start of the recording and after its end are such gaps, too.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.contracts.lines.line import INNER, NEVER, Gaps, Lines
from hypermon.host.contracts.lines.store import Kind, LineStore
from hypermon.host.contracts.rules import Event, Rule, near

__all__ = ["ENDLESS", "FAILED", "FAR", "GAPS", "INNER", "MANY", "OK", "UNDECIDED", "Extent", "Source", "Trace",
           "UnfitError"]

#: A time that no run reaches, in picoseconds; the same for a time that a rule does not limit; more items than any loss.
FAR, ENDLESS, MANY = 4 * 10**18, 2 * 10**18, 1 << 40
#: The columns of the table of gaps. ``cause``: ``loss``, ``framing``, ``aborted``, ``filter``, ``masked``, ``unsure``,
#: ``start``, ``end``. ``framed``: it is about events that were framed from nibbles, or about items; null: about both.
GAPS = "node smallint, lo bigint, hi bigint, n bigint, cause varchar, framed boolean"
#: The states of an instance of a rule.
OK, FAILED, UNDECIDED = 0, 1, 2


#: Kinds whose lines suffice only if their events belong to one node each.
_OF_ONE_NODE = ("period", "rate", "duration", "order")
#: Events that are kept for further rules, at most: more would displace what a rule is judged by. Some 30 bytes each.
_SHARED = 1 << 23


class UnfitError(ValueError):
    """A rule does not fit the RUN: ``key`` is the key to blame."""

    def __init__(self, key: str, reason: str):
        self.key = key
        super().__init__(reason)


@dataclass(frozen=True)
class Extent:
    """The extent of a node's recording.

    Parameters
    ----------
    start, end : stamps of its items are within these two. ``board``: the board that recorded it.
    """

    start: int
    end: int
    board: int = 0


@dataclass(frozen=True)
class Source:
    """Where to find events.

    Parameters
    ----------
    sql : a query with the columns ``time_ps`` and ``node``, and one for each field.
    fields : the names of the fields. ``whole``: those that are whole numbers of less than 64 bits.
    ids : the ids of the events, if they have any.
    ends : the field with the other node of a message, and whether the event sends it.
    items, framed : some of the events are items; some were framed from nibbles.
    rows : a query with the columns ``time_ps``, ``node`` and ``value``, a whole number of at most 16 bits; those with
        the value ``value`` are these events. Events of several names are read at once by it. Empty: there is none.
    """

    sql: str
    fields: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()
    ends: tuple[str, bool] | None = None
    items: bool = True
    framed: bool = False
    rows: str = ""
    value: int = 0


@dataclass
class Trace:
    """A trace.

    Parameters
    ----------
    db : has the table ``gaps`` (:data:`GAPS`), without the times before and after the recording.
    nodes : the extent of each node.
    source : the events that a name means; raises ValueError for a name that means none.
    slack_ps : by how much the difference of two stamps of one node may be off.
    apart_ps : by how much more the difference of stamps of different nodes of a board may be off.
    unsure_ps : for each board, by how much more its stamps may be off; None: not known.
    masked : ids of events that the board was configured to discard.
    sure : False if the trace has items that no node may have written; then nothing is decided.
    fresh : nothing came before the start of the recording; set for each rule.
    brief : only violations are asked for, not what is undecided or why.
    """

    db: duckdb.DuckDBPyConnection
    nodes: Sequence[Extent]
    source: Callable[[Event], Source]
    slack_ps: int = 0
    apart_ps: int = 0
    unsure_ps: Mapping[int, int | None] = field(default_factory=dict)
    masked: frozenset[int] = frozenset()
    sure: bool = True
    fresh: bool = False
    brief: bool = False
    #: The rule whose scope has been prepared.
    scoped: Rule | None = None
    #: How often queries for events are still needed, and the tables of those that have been read.
    _uses: Counter[str] = field(default_factory=Counter)
    _shared: dict[str, tuple[str, int]] = field(default_factory=dict)
    _tables: int = 0
    _rows: int = 0
    _store: LineStore | None = None

    def __post_init__(self) -> None:
        self.extend(self.nodes)
        self.db.execute(f"""create or replace temp view gaps_all as
            select node, lo, hi, n, cause, framed from gaps where hi >= lo
            union all select node, -{FAR}, first - 1, {MANY}, 'start', null from extent
            union all select node, last + 1, {FAR}, {MANY}, 'end', null from extent""")

    def extend(self, nodes: Sequence[Extent]) -> None:
        """Declares what was recorded of each node."""
        self.nodes = nodes
        rows = ", ".join(f"({node}::smallint, {own.start}::bigint, {own.end}::bigint)"
                         for node, own in enumerate(nodes))
        self.db.execute(f"create or replace temp table extent as from (values {rows}) as own (node, first, last)")

    def slack(self, same_node: bool, events: Sequence[Event] = ()) -> int:
        """By how much the difference of two stamps may be off, in picoseconds: of one node, or of any of the events'
        nodes."""
        if same_node:
            return self.slack_ps
        boards = {self.nodes[node].board for node in self.nodes_of(events) or range(len(self.nodes))
                  if node < len(self.nodes)}
        if len(boards) < 2:
            return self.slack_ps + self.apart_ps
        unsure = [self.unsure_ps.get(board, 0) for board in boards]
        if any(one is None for one in unsure):
            return ENDLESS
        return self.slack_ps + self.apart_ps + sum(sorted(one or 0 for one in unsure)[-2:])

    def nodes_of(self, events: Sequence[Event]) -> list[int] | None:
        """The nodes that any of these events names; None: all."""
        if not events or any(event.nodes is None for event in events):
            return None
        return sorted({node for event in events for node in event.nodes or ()})

    def differ(self, events: Sequence[Event], others: Sequence[Event]) -> bool:
        """No item can be one of some events and one of others."""
        return all(self._differ(self._source(one, "event"), self._source(other, "scope"))
                   for one in events for other in others)

    @staticmethod
    def _differ(one: Source, other: Source) -> bool:
        if one.ids and other.ids:
            return not one.ids & other.ids
        if one.rows and other.rows:
            return one.rows == other.rows and one.value != other.value
        # Events that are known by their query alone have one for each value.
        return not (one.ids or other.ids or one.rows or other.rows) and one.sql != other.sql

    def select(self, table: str, rule: Rule, key: str, events: Sequence[Event]) -> None:
        """Creates a table of events: ``t``, ``node``, ``key`` and ``pos``, the number of the event in the list.

        Parameters
        ----------
        key : the key of the rule that names the events; for messages.

        Raises
        ------
        UnfitError
            if the RUN has no such event, node or field.
        """
        try:
            self.db.execute(f"create or replace temp table {table} as {self.question(rule, key, events)}")
        except duckdb.Error as error:
            raise UnfitError(key, f"where: {str(error).splitlines()[0]}") from None
        for part in [part for part, left in self._uses.items() if not left]:
            name, rows = self._shared.pop(part)
            self.db.execute(f"drop table {name}")
            self._rows -= rows
            del self._uses[part]

    def question(self, rule: Rule, key: str, events: Sequence[Event]) -> str:
        """The query for the table that :meth:`select` creates."""
        return " union all ".join(f"select * replace ({position}::tinyint as pos) from ({self._once(part)})"
                                  for position, part in enumerate(self._part(0, event, rule, key) for event in events))

    def share(self, rules: Sequence[Rule]) -> None:
        """Declares the rules that will be judged, each once: events that several of them name are read once."""
        lined = {number: kinds for number, rule in enumerate(rules) if (kinds := self._kinds(rule)) is not None}
        if lined and not self.brief and all(abs(time) < ENDLESS for own in self.nodes for time in (own.start, own.end)):
            self._store = LineStore(self.db, len(self.nodes), lined.values())
            rules = [rule for number, rule in enumerate(rules) if number not in lined]
        self._uses = Counter(self._part(0, event, rule, key) for rule in rules
                             for key, events in rule.events.items() for event in events)
        self._uses.update(self._part(0, event, rule.unkeyed(), "scope") for rule in rules if rule.scope is not None
                          for event in rule.scope.events)
        self._uses = Counter({part: uses for part, uses in self._uses.items() if uses > 1})

    def _kinds(self, rule: Rule) -> list[Kind] | None:
        """The kinds of a rule's events, if they can be judged by their lines: see :meth:`lines`."""
        if rule.key or rule.scope is not None or (rule.kind in _OF_ONE_NODE and not rule.same_node):
            return None
        events = [event for own in rule.events.values() for event in own]
        sources = [self._source(event, key) for key, own in rule.events.items() for event in own]
        if any(event.where is not None for event in events) or not all(own.rows for own in sources):
            return None
        return [(own.rows, own.value) for own in sources]

    def lines(self, rule: Rule) -> dict[str, list[Lines]] | None:
        """The times of a rule's events, by the keys that name them: of each event, the line of each node.

        None: they do not fit into memory; or they do not suffice, because the rule has a key, a scope or a condition;
        or the rule was not declared (:meth:`share`).
        """
        kinds = self._kinds(rule) if self._store is not None else None
        if self._store is None or kinds is None or self.slack(False, [
                event for own in rule.events.values() for event in own]) >= ENDLESS:
            return None
        found = self._store.get(kinds)
        if found is None:
            return None
        every = iter(found)
        return {key: [[line if event.nodes is None or node in event.nodes else line[:0]
                       for node, line in enumerate(next(every))] for event in own] for key, own in rule.events.items()}

    def give(self, table: str, **columns: npt.NDArray[Any]) -> None:
        """Creates a table. A time that is :data:`.line.NEVER`, or minus that, is null."""
        self.db.complete()
        self.db.register("given", pa.table({name: pa.array(
            column, pa.string() if column.dtype == np.object_ else None,
            mask=np.abs(column) == NEVER if column.dtype == np.int64 else None) for name, column in columns.items()}))
        self.db.execute(f"create or replace temp table {table} as from given")
        self.db.unregister("given")

    def gap_rows(self, question: str) -> Gaps:
        """The columns of a query for gaps."""
        return self.db.execute(question).fetchnumpy()

    def _once(self, part: str) -> str:
        """A query for events, from a table of its own if it is used several times."""
        if part not in self._uses:
            return part
        self._uses[part] -= 1
        if part not in self._shared:
            name = f"shared_{self._tables}"
            [(rows,)] = self.db.execute(f"create temp table {name} as {part}").fetchall()
            self._shared[part] = name, rows
            self._tables += 1
            self._rows += rows
            if self._rows > _SHARED:
                self._uses[part] = 0
        return f"from {self._shared[part][0]}"

    def check(self, rule: Rule, key: str, event: Event) -> None:
        """Raises UnfitError if the RUN does not have an event, node or field that a key of a rule names."""
        self._part(0, event, rule, key)

    def _part(self, position: int, event: Event, rule: Rule, key: str) -> str:
        source = self._source(event, key)
        strange = [node for node in event.nodes or () if node >= len(self.nodes)]
        if strange:
            raise UnfitError(key, f"there is no node {strange[0]}, but 0 to {len(self.nodes) - 1}")
        if event.where is not None:
            self._check_condition(event, source, key)
        conditions = [*([f"node in ({', '.join(map(str, event.nodes))})"] if event.nodes is not None else []),
                      *([f"({event.where}\n)"] if event.where is not None else [])]
        where = f" where {' and '.join(conditions)}" if conditions else ""
        return (f"select time_ps as t, node, {self._key(rule, event, source)} as key, {position}::tinyint as pos "
                f"from ({source.sql}){where}")

    def _source(self, event: Event, key: str) -> Source:
        try:
            return self.source(event)
        except ValueError as error:
            raise UnfitError(key, str(error)) from None

    def _check_condition(self, event: Event, source: Source, key: str) -> None:
        question = f"select 1 from ({source.sql}) where ({event.where}\n)"
        try:
            fits = len(self.db.extract_statements(question)) == 1
            if fits:
                self.db.execute(f"explain {question}")
        except duckdb.Error as error:
            raise UnfitError(key, f"where: {str(error).splitlines()[0]}; {event.name} has "
                             f"{', '.join((*source.fields, 'time_ps', 'node'))}") from None
        if not fits:
            raise UnfitError(key, "where: give one condition")

    def _key(self, rule: Rule, event: Event, source: Source) -> str:
        """What joins an event with others of a rule, as SQL."""
        if not rule.key:
            return "0"
        every = [self._source(one, key) for key, own in rule.events.items() for one in own]
        for name in rule.key:
            if name not in source.fields and name != "node":
                raise UnfitError("key", f"{event.name} has no field {name!r}; it has "
                                        f"{near(name, source.fields) or 'none'}")
        messages = all(one.ends is not None and one.ends[0] in rule.key for one in every)
        if len(rule.key) == 1 and all(rule.key[0] in one.whole for one in every) and not messages:
            return f'coalesce("{rule.key[0]}"::bigint, {FAR})'
        parts = []
        for name in rule.key:
            own = f"""coalesce("{name}"::varchar, '')"""
            if messages and source.ends is not None and name == source.ends[0]:
                # A message has one sender and one receiver, whichever of the two wrote the event.
                ends = ["node::varchar", own]
                own = " || '>' || ".join(ends if source.ends[1] else reversed(ends))
            parts.append(f"replace({own}, '|', '||')" if len(rule.key) > 1 else own)
        return " || ' | ' || ".join(parts)

    def gaps(self, events: Sequence[Event]) -> None:
        """Creates the tables of items that may be missing among these events.

        ``g`` (``id``, ``node``, ``lo``, ``hi``, ``n``, ``cause``) has all, ``gn`` those of each node, merged if they
        overlap, and ``gm`` those of all nodes, merged.
        """
        self.db.execute(f"""create or replace temp table g as
            select row_number() over (order by lo, hi, node) as id, * exclude (framed) from gaps_all
            where {self.concerning(events)}""")
        for name, part, by in (("gn", "partition by node", "node, "), ("gm", "", "")):
            self.db.execute(f"""create or replace temp table {name} as
                select {by}min(lo) as lo, max(hi) as hi, min_by(cause, lo) as cause from (
                    select *, sum(fresh::int) over ({part} order by lo, hi rows unbounded preceding) as part
                    from (select *, coalesce(lo > max(hi) over ({part} order by lo, hi rows between unbounded preceding
                                                                and 1 preceding), true) as fresh from g))
                group by {by}part""")

    def concerning(self, events: Sequence[Event]) -> str:
        """The condition for gaps that are about these events."""
        nodes = self.nodes_of(events)
        sources = [self._source(event, "event") for event in events]
        hidden = any(own.ids & self.masked for own in sources)
        kinds = {"true" for own in sources if own.framed} | {"false" for own in sources if own.items}
        return " and ".join([*([f"node in ({', '.join(map(str, nodes))})"] if nodes is not None else []),
                            f"(framed is null or framed in ({', '.join(sorted(kinds))}))",
                            *([] if hidden else ["cause <> 'masked'"]), *(["cause <> 'start'"] if self.fresh else [])])
