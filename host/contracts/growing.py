"""Judges rules while a recording grows. Reports a violation as soon as no lost and no later event can undo it.

For each rule, only the events since a certain time are kept. They are a trace as well, whose start is that time. A rule
that fails there also fails in the whole recording, because nothing is assumed about the time before. The time is chosen
so that all events that have not been judged can still be judged. A rule that is undecided or passes is judged after the
end, on the whole RUN.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.locked import SETTINGS
from hypermon.host.contracts.doubts import apart_of, kept_back, masked_of, slack_of
from hypermon.host.contracts.events import Vocabulary
from hypermon.host.contracts.judge import JUDGES, fitted
from hypermon.host.contracts.judged import count_of
from hypermon.host.contracts.rules import Event, Rule, Rules
from hypermon.host.contracts.suspects import suspicion
from hypermon.host.contracts.trace import FAR, GAPS, MANY, Extent, Trace, UnfitError
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo
from hypermon.host.tables.selection import BATCH_ROWS

__all__ = ["Growing", "Violation", "only_at_end", "refuse_unfit"]

#: Number of kept events of a rule above which those that are no longer needed are discarded; and the maximum to keep.
_SPARE, _MOST = 1 << 12, 1 << 18
#: Number of gaps above which old ones are discarded.
_GAPS = 1 << 10


#: Up to this number of gaps are merged without a query.
_FEW = 256
_EXTENT = pa.schema([("node", pa.int16()), ("first", pa.int64()), ("last", pa.int64())])
_MERGED = pa.schema([("node", pa.int16()), ("lo", pa.int64()), ("hi", pa.int64()), ("cause", pa.string())])
_GAPS_ALL = pa.schema([("id", pa.int64()), *list(_MERGED)[:3], ("n", pa.int64()), ("cause", pa.string())])


@dataclass(frozen=True)
class Violation:
    """The first violation of a rule: when, and of which node."""

    rule: Rule
    time_ps: int
    node: int


def only_at_end(rule: Rule) -> bool:
    """Whether the first violation of a rule is known only after the end of the recording.

    That is so if the rule concerns the whole recording, or if the event that it needs may still come, or may have come
    before the recording began.
    """
    return (rule.scope is not None or rule.kind == "share" or "quantile" in rule.values
            or (rule.kind == "response" and "max" not in rule.values)
            or (rule.kind == "precedence" and "within" not in rule.values and not rule.fresh_start)
            or (rule.kind == "together" and not rule.key))


def _reach(rule: Rule) -> int | None:
    """How long before a violation its first event can be, in picoseconds; None: there is no limit."""
    if rule.kind in ("response", "duration"):
        return max(rule.ps("min") or 0, rule.ps("max") or 0)
    if rule.kind == "rate":
        return rule.ps("per")
    if rule.kind == "absence":
        return None if "between" in rule.events else rule.ps("within") or 0
    return rule.ps("within")     # of precedence and together; the others have none


def _columns(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([row[k] for row in rows], field.type) for k, field in enumerate(schema)], schema=schema)


class _Watched(Trace):
    """The events that are kept for each rule. ``number``: the rule that is being judged."""

    def __init__(self, db: duckdb.DuckDBPyConnection, vocabulary: Vocabulary, begin: int, nodes: int):
        super().__init__(db, [Extent(begin, begin - 1)] * nodes, vocabulary.source, brief=True)
        self.number = 0
        #: For each rule: the tables that its judge asks for, and the queries that fill them.
        self.kept: dict[int, dict[str, str]] = {}
        #: For each rule and node: since when all events are kept.
        self.since: dict[int, list[int]] = {}

    def select(self, table: str, rule: Rule, key: str, events: Sequence[Event]) -> None:
        tables = self.kept.setdefault(self.number, {})
        name = f"kept_{self.number}_{table}"
        if table not in tables:
            tables[table] = self.question(rule, key, events)
            try:
                self.db.execute(f"create temp table {name} as {tables[table]}")
            except duckdb.Error as error:
                raise UnfitError(key, f"where: {str(error).splitlines()[0]}") from None
        self.db.execute(f"create or replace temp table {table} as from {name}")

    def extend(self, nodes: Sequence[Extent]) -> None:
        self.nodes = nodes
        self._create("extent", _columns([(node, own.start, own.end) for node, own in enumerate(nodes)], _EXTENT))

    def gaps(self, events: Sequence[Event]) -> None:
        # Few gaps are merged here, because a query that merges them takes longer than all other queries.
        rows = self.db.execute(f"select node, lo, hi, n, cause from gaps_all where {self.concerning(events)} "
                               f"order by lo, hi, node limit {_FEW + 1}").fetchall()
        if len(rows) > _FEW:
            super().gaps(events)
            return
        merged: dict[str, list[tuple[int, int, int, str]]] = {"gn": [], "gm": []}
        last: dict[int, int] = {}
        for node, lo, hi, _, cause in rows:
            for name, own in (("gn", node), ("gm", -1)):
                found = merged[name]
                if own in last and lo <= found[last[own]][2]:
                    before = found[last[own]]
                    found[last[own]] = (before[0], before[1], max(before[2], hi), before[3])
                else:
                    last[own] = len(found)
                    found.append((own, lo, hi, cause))
        self._create("g", _columns([(k, *row) for k, row in enumerate(rows, 1)], _GAPS_ALL))
        for name, found in merged.items():
            self._create(name, _columns(found, _MERGED), "*" if name == "gn" else "lo, hi, cause")

    def _create(self, name: str, table: pa.Table, columns: str = "*") -> None:
        self.db.register("given", table)
        self.db.execute(f"create or replace temp table {name} as select {columns} from given")

    def names(self, number: int) -> dict[str, str]:
        """The tables of a rule, by the names that its judge uses."""
        return {table: f"kept_{number}_{table}" for table in self.kept.get(number, {})}


class Growing:
    """Judges rules on the items and losses that have arrived.

    Parameters
    ----------
    info : of the recording, which is of one board.
    begin : when the recording begins, in picoseconds.
    schema : the columns of its items, those of the dictionary included.
    apart, masked : ``apart_ps`` and ``masked`` of :class:`.Trace`.

    Members
    -------
    watched : the rules that are judged while it grows, and are not violated yet.
    later : those that are judged after the end only.

    Raises
    ------
    InputError
        if a rule does not fit the recording.
    """

    def __init__(self, rules: Rules, info: RunInfo, schema: pa.Schema, dictionary: Dictionary | None, begin: int = 0,
                 apart: int = 0, masked: frozenset[int] = frozenset()):
        self._info, self._nodes, self._begin = info, info.nodes, begin
        self._db = duckdb.connect(config={**SETTINGS, "threads": 1, "preserve_insertion_order": False})
        self._db.execute("set enable_external_access = false")
        self._db.execute("set lock_configuration = true")
        self._db.execute(f"create temp table gaps ({GAPS})")
        self._arrived(schema.empty_table())
        self._trace = _Watched(self._db, Vocabulary(dictionary, {"events": tuple(schema.names)},
                                                    bool(info.item_modes.events), info.port_bits), begin, info.nodes)
        self._trace.slack_ps, self._trace.apart_ps, self._trace.masked = slack_of(info, 0), apart, masked
        self._waiting: list[pa.Table] = []
        self._known = [begin - 1] * info.nodes
        self._fresh, self._whole, self._rows = True, [0] * (info.nodes + 1), 0
        self._sizes: dict[int, int] = {}
        found = fitted(self._trace, rules, dictionary)
        self.watched = {number: rule for number, rule in enumerate(found) if not only_at_end(rule)}
        self.later = [rule for rule in found if only_at_end(rule)]
        for number, rule in self.watched.items():
            self._trace.since[number] = [begin] * info.nodes
            self._sizes[number] = 0
            try:
                self._judge(number, rule)      # creates its tables
            except UnfitError as error:
                raise rules.wrong(rule, error.key, str(error)) from None

    @classmethod
    def of(cls, rules: Rules, run: RunDirectory, schema: pa.Schema, dictionary: Dictionary | None,
           begin: int) -> "Growing":
        """Judges rules on a RUN that is being recorded."""
        return cls(rules, run.info, schema, dictionary, begin, apart_of(run, False), masked_of(run))

    def close(self) -> None:
        self._db.close()

    def add(self, items: pa.Table) -> None:
        """Adds items, in order of time, none before those that were added."""
        self._waiting.append(items)

    def lose(self, node: int, lost: int, from_ps: int, to_ps: int) -> None:
        """Adds a loss: between these two times the node lost ``lost`` items."""
        # The overflow packet of an ITM does not say how many items were lost.
        unknown = MANY if self._info.itm_nodes >> node & 1 else 0
        self._db.execute("insert into gaps values (?, ?, ?, ?, 'loss', false)", [node, from_ps, to_ps, lost + unknown])

    def forget(self) -> None:
        """Forgets all items, because a ring has overwritten the items that would come next."""
        self._waiting.clear()
        for number in self.watched:
            for name in self._trace.names(number).values():
                self._db.execute(f"delete from {name}")

    def know(self, begin: int, known: Sequence[int], late: int, rejected: Sequence[int], discarded: int) -> None:
        """Declares what is known.

        Parameters
        ----------
        begin : when the data begin. It changes after :meth:`forget`.
        known : for each node, the time up to which all items and all losses have been added.
        late : the largest number of windows by which an item was carried.
        rejected : number of items of each node that its filters rejected.
        discarded : number of items that the board's triggers and masks discarded.
        """
        if begin != self._begin:
            self._begin, self._fresh, self._known = begin, False, list(known)
            for number in self.watched:
                self._trace.since[number] = [begin] * self._nodes
        self._known = [max(own, new) for own, new in zip(self._known, known, strict=True)]
        self._trace.slack_ps = slack_of(self._info, late)
        if [*rejected, discarded] == self._whole:
            return
        self._whole = [*rejected, discarded]
        self._db.execute("delete from gaps where cause in ('filter', 'masked', 'unsure')")
        rows = [*((node, n, "filter") for node, n in enumerate(rejected)),
                *kept_back(self._info, self._nodes, discarded)]
        for node, n, cause in rows:
            if n:
                self._db.execute("insert into gaps values (?, ?, ?, ?, ?, null)",
                                 [node, self._begin, FAR, n, cause])

    def look(self) -> list[Violation]:
        """The first violation of each rule for which none was known yet, in order of time."""
        self._take()
        found = []
        for number, rule in list(self.watched.items()):
            violation = self._judge(number, rule)
            if violation is not None:
                found.append(violation)
                del self.watched[number]
                for name in self._trace.names(number).values():
                    self._db.execute(f"drop table {name}")
            elif self._sizes[number] > _SPARE:
                self._discard(number, rule)
        if self._rows > _GAPS:
            oldest = min((min(since) for number, since in self._trace.since.items() if number in self.watched),
                         default=0)
            self._db.execute(f"delete from gaps where hi < {oldest - 4 * self._trace.slack(False)}")
        return sorted(found, key=lambda one: (one.time_ps, one.node))

    def _take(self) -> None:
        """Adds the items that wait to the tables of the rules."""
        if not self._waiting:
            return
        items = pa.concat_tables(self._waiting)
        self._waiting.clear()
        for begin in range(0, len(items), BATCH_ROWS):
            self._arrived(items.slice(begin, BATCH_ROWS))
            for number in self.watched:
                for table, question in self._trace.kept[number].items():
                    [(rows,)] = self._db.execute(f"insert into kept_{number}_{table} {question}").fetchall()
                    self._sizes[number] += rows
            if "aborted" in items.column_names:
                self._db.execute("insert into gaps select node, time_ps, time_ps, 1, 'aborted', false from events "
                                 "where aborted")
        self._rows = count_of(self._trace, "select count(*) from gaps")
        newest = items.group_by("node").aggregate([("time_ps", "max")])
        # A loss is always reported before the next item of its node.
        for node, time_ps in zip(newest["node"].to_pylist(), newest["time_ps_max"].to_pylist(), strict=True):
            self._known[node] = max(self._known[node], time_ps)

    def _arrived(self, items: pa.Table) -> None:
        # A table, because each rule reads it.
        self._db.register("arrived", items)
        self._db.execute("create or replace temp table events as from arrived")

    def _judge(self, number: int, rule: Rule) -> Violation | None:
        trace, since = self._trace, self._trace.since[number]
        trace.number = number
        trace.fresh = rule.fresh_start and self._fresh and max(since) == self._begin
        if number in trace.kept and not self._suspicious(number, rule):
            return None
        trace.extend([Extent(first, last) for first, last in zip(since, self._known, strict=True)])
        judged = JUDGES[rule.kind](trace, rule)
        if judged.verdict != "fail":
            return None
        return Violation(rule, judged.where[0].time_ps, judged.where[0].node)

    def _suspicious(self, number: int, rule: Rule) -> bool:
        """Whether the events that are kept can violate a rule."""
        question = suspicion(rule, self._trace.names(number), self._slack(rule), max(self._known), self._trace.fresh)
        return question is None or bool(self._db.execute(question).fetchall())

    def _slack(self, rule: Rule) -> int:
        return self._trace.slack(False, [event for events in rule.events.values() for event in events])

    # ------------------------------------------------------------------------------ what is no longer needed

    def _discard(self, number: int, rule: Rule) -> None:
        """Discards events of a rule that are judged and no longer needed; if too many are left, also the older half."""
        trace, names = self._trace, self._trace.names(number)
        since = self._needed(rule, names, self._slack(rule))
        trace.since[number] = [max(old, new) for old, new in zip(trace.since[number], since, strict=True)]
        if self._delete(number) > _MOST:
            every = " union all ".join(f"select t from {name}" for name in names.values())
            middle = count_of(trace, f"select quantile_disc(t, 0.5) from ({every})")
            trace.since[number] = [max(old, middle) for old in trace.since[number]]
            self._delete(number)

    def _delete(self, number: int) -> int:
        """Deletes the events of a rule from before ``since``. Returns how many are left."""
        trace, names = self._trace, self._trace.names(number)
        trace.extend([Extent(first, last) for first, last in zip(trace.since[number], self._known, strict=True)])
        for name in names.values():
            self._db.execute(f"delete from {name} using extent where extent.node = {name}.node and t < extent.first")
        self._sizes[number] = 0
        return sum(count_of(trace, f"select count(*) from {name}") for name in names.values())

    def _needed(self, rule: Rule, names: dict[str, str], slack: int) -> list[int]:
        """For each node, since when events of a rule are needed."""
        reach, never = _reach(rule), [self._begin] * self._nodes
        if reach is not None:
            whose = self._trace.nodes_of([event for events in rule.events.values() for event in events])
            known = min(self._known[node] for node in (range(self._nodes) if whose is None else whose))
            return [known - reach - 4 * slack - 1] * self._nodes
        if rule.key:
            return never
        if rule.kind == "period" or rule.kind == "order":
            tables = [names["a"]]
        elif rule.kind == "exclusion":
            tables = [f"(from {names[f'begins_{lane}']} union all from {names[f'ends_{lane}']})"
                      for lane in range(len(names) // 2)]
        elif rule.kind == "absence":
            tables = [names["c"]]
        else:
            return never
        lasts = [dict(self._db.execute(f"select node, max(t) from {table} group by node").fetchall())
                 for table in tables]
        if rule.same_node or rule.kind == "exclusion":
            return [min((last[node] for last in lasts if node in last), default=own)
                    for node, own in enumerate(never)]
        last = max((time for last in lasts for time in last.values()), default=self._begin)
        return [last - 2 * slack - 2 if rule.kind != "period" else last] * self._nodes


def refuse_unfit(rules: Rules, info: RunInfo, schema: pa.Schema, dictionary: Dictionary | None) -> None:
    """Raises InputError if a rule does not fit what will be recorded."""
    Growing(rules, info, schema, dictionary).close()
