"""Small traces in DuckDB, and rules on them, for the tests of the judges."""

import duckdb
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.judged import Judged
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import GAPS, Extent, Source, Trace

__all__ = ["event", "judged", "traced"]


def traced(items, losses=(), end=100, nodes=2, slack=0, db=None) -> Trace:
    """A trace from 0 to ``end``: items are (time, node, event, key), losses (node, from, to, count)."""
    db = db or duckdb.connect(config={"threads": 1})
    db.execute("create or replace temp table ev (time_ps bigint, node smallint, ev varchar, k bigint)")
    db.execute(f"create or replace temp table gaps ({GAPS})")
    if items:
        db.executemany("insert into ev values (?, ?, ?, ?)", list(items))
    if losses:
        db.executemany("insert into gaps values (?, ?, ?, ?, 'loss', false)", list(losses))
    return Trace(db, [Extent(0, end)] * nodes,
                 lambda event: Source(f"select time_ps, node, k from ev where ev = '{event.name}'", ("k",),
                                      frozenset("k")), slack)


def event(name, *nodes) -> tuple[Event, ...]:
    return (Event(name, nodes or None),)


def judged(kind, items, losses=(), *, key=(), same_node=False, end=100, nodes=2, slack=0, events=None,
           fresh=False, **values) -> Judged:
    """The verdict on a rule; the events are called as the keys of the rule name them."""
    rule = Rule("rule", kind, 1, {name: event(own) if isinstance(own, str) else own for name, own in events.items()},
                key, same_node, values)
    with duckdb.connect(config={"threads": 1}) as db:
        trace = traced(items, losses, end, nodes, slack, db)
        trace.fresh = fresh
        return JUDGES[kind](trace, rule)
