"""Rules of kinds ``order`` and ``together``: events one after the other, and events of all nodes at the same time."""

import numpy as np
from hypermon.host.contracts.judged import (
    FAILED,
    INNER,
    OK,
    UNDECIDED,
    Judged,
    conclude,
    count_of,
    is_calm,
    last_gap,
    lost_since,
)
from hypermon.host.contracts.lines.line import NOTHING
from hypermon.host.contracts.lines.sieves import in_order, turns
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.scopes import inside
from hypermon.host.contracts.trace import FAR, Trace, UnfitError

__all__ = ["order", "together"]


def order(trace: Trace, rule: Rule) -> Judged:
    """The events come in the order of the list, again and again, with none of the list in between.

    Each event is an instance: it must follow its predecessor in the list, and the last event of all must be followed by
    the rest of the list, which may come after the end of the recording.
    """
    events = rule.events["events"]
    _refuse_twice(rule)
    lines = trace.lines(rule)
    if lines is None:
        trace.select("a", rule, "events", events)
    trace.gaps(events)
    sieved = NOTHING if lines is None else in_order(trace, lines["events"])
    by = [*(["key"] if rule.key else []), *(["node"] if rule.same_node else [])]
    part = f"partition by {', '.join(by)} " if by else ""
    slack = trace.slack(rule.same_node, events)
    # Events of different nodes whose stamps differ by less than the slack may have come in either order.
    near = f"over ({part}order by t range between {slack} preceding and {slack} following)"
    alone = "true" if rule.same_node else f"min(node) {near} = max(node) {near}"
    # A lost event of another node may have come before one whose stamp is as much smaller.
    last, off = len(events) - 1, 0 if rule.same_node else slack
    before = "true" if rule.same_node else f"lag(alone, 1, true) over ({part}order by t, node)"
    # Without anything before the recording, nor a loss before an event, the event is the first one of all.
    lost = f"before is not null and gap.hi >= since - {off}"
    fresh = "gap.hi is null" if trace.fresh else "false"
    placed = ("select t, node, pos, nullif(before, -1) as before, since, nullif(after, -1) as after, true as alone "
              "from placed") if lines is not None else f"""
        select t, node, key, pos, lag(pos) over own as before, lag(t) over own as since, lead(pos) over own as after,
               {alone} as alone{'' if rule.same_node else _between_equals(trace, len(events), part, slack)}
        from a window own as ({part}order by t, node)"""
    enough, joins = _enough(trace, rule, len(events), off)
    trace.db.execute(f"""create or replace temp table judged as
        with neighbours as ({placed}),
        s as (select *, {before} as alone_before from neighbours)
        select s.t, s.node, null::bigint as value,
               case when not ({enough}) then {FAILED}
                    when not (alone and alone_before) or ({lost}) then {UNDECIDED}
                    when before is null and pos > 0 and not ({fresh}) then {UNDECIDED}
                    when before is null and pos > 0 then {FAILED}
                    when before is not null and pos <> (before + 1) % {len(events)} then {FAILED}
                    when after is null and pos < {last} then {UNDECIDED}
                    else {OK} end::tinyint as state,
               case when not (alone and alone_before) then null
                    when {lost} then gap.cause
                    when before is null and pos > 0 then coalesce(gap.cause, 'start')
                    when after is null and pos < {last} then 'end' end as why
        from s {last_gap(trace, rule.same_node, f"s.t + {off}")}{joins}""")
    return conclude(trace, rule, hides=INNER, slack=slack, sieved=sieved)


def _between_equals(trace: Trace, events: int, part: str, slack: int) -> str:
    """Columns: when the event before came that is the same one of the list, and how many other ones of the list cannot
    have come between the two, however uncertain the times are. Nothing is missing if the stamps are in order."""
    if not count_of(trace, f"select count(*) from (from (select pos, lag(pos) over ({part}order by t, node) as before "
                           f"from a) where pos <> (before + 1) % {events} limit 1)"):
        return ", null::bigint as equal, 0 as absent"
    equal, near = "lag(t) over (" + (part + ", pos " if part else "partition by pos ") + "order by t, node)", (
        f"over ({part}order by t range between unbounded preceding and {slack} following)")
    absent = " + ".join(f"(pos <> {other} and coalesce(max(t) filter (pos = {other}) {near} < equal - {slack}, true))"
                        "::int" for other in range(events))
    return f", {equal} as equal, {absent} as absent"


def _enough(trace: Trace, rule: Rule, events: int, off: int) -> tuple[str, str]:
    """The condition that enough was lost for the events that are missing before an event, and joins for it.

    In a scope, it might be one of the lost events that is wrong, and outside.
    """
    if rule.scope is not None or (rule.same_node and is_calm(trace)):
        return "true", ""
    by = "node" if rule.same_node else "0::smallint"
    lost_since(trace, by, "true")

    def lost(name: str, since: str) -> tuple[str, str]:
        return f"coalesce({name}2.n, 0) - coalesce({name}1.n, 0)", f"""
            asof left join lost_lo as {name}2 on {name}2.node = {own} and {name}2.t <= s.t + {off}
            asof left join lost_hi as {name}1 on {name}1.node = {own} and {name}1.t < {since} - {off}"""

    own = "s.node" if rule.same_node else "s.node * 0"
    count, joins = lost("l", "s.since")
    enough = (f"not (alone and alone_before) or before is null or (pos + {events - 1} - before) % {events} <= {count} "
              f"or (pos + {events - 1} - before) % {events} = 0")
    if rule.same_node:
        return enough, joins
    fits, more = lost("e", "s.equal")
    return f"({enough}) and (equal is null or absent <= {fits})", joins + more


def _refuse_twice(rule: Rule) -> None:
    names = [(event.name, event.nodes, event.where) for event in rule.events["events"]]
    if len(set(names)) < len(names):
        raise UnfitError("events", "an event is in the list twice")


def together(trace: Trace, rule: Rule) -> Judged:
    """The first events of all nodes lie within a time of each other, the second ones, and so on.

    The nodes are those that the rule names, or all that are seen to write the event. Events are counted from the start
    of the recording. With a key, the events of one key belong together instead.
    """
    [event] = rule.events["event"]
    within = rule.ps("within") or 0
    found = trace.lines(rule)
    lines = None if found is None else found["event"][0]
    if lines is None:
        trace.select("a", rule, "event", [event])
    else:
        trace.give("a", node=np.flatnonzero([len(line) for line in lines]).astype(np.int16))
    trace.gaps([event])
    slack = trace.slack(False, [event])
    scoped = ("", "") if rule.scope is None else (
        ", case when bool_or(inside = 1) then 1 when bool_or(inside = 2) then 2 else 0 end as inside", ", inside")
    if rule.scope is not None:
        trace.db.execute(f"create or replace temp table placed as {inside(trace, rule, 'a')}")
        trace.db.execute("create or replace temp table a as from placed")
    nodes = count_of(trace, "select count(distinct node) from a") if event.nodes is None else len(event.nodes)
    late = event.nodes is not None or nodes > 0
    if rule.key:
        _together_by_key(trace, within, slack, nodes, scoped, event)
        # An event that was lost after the scope may be of a key that is in it.
        return conclude(trace, rule, hides=INNER, slack=slack, notes=_alone(trace, nodes), beyond=True)
    ends = count_of(trace, f"select min(lo) from g where cause = 'end' and "
                           f"{'node in (select node from a)' if event.nodes is None else 'true'}") if late else 0
    # From its first gap on, the numbers of a node's events are not known.
    firsts = f"""
        firsts as (select node, min(lo) as lo, min_by(cause, lo) as cause from g where {INNER} group by node),
        first as (select coalesce(min(lo), {FAR}) as lo from firsts)"""
    counted, sieved = rule.scope is None and not is_calm(trace), NOTHING
    trace.db.execute(f"create or replace temp table whose as {_whose(event)}")
    _latest(trace, counted and lines is None)
    if lines is None:
        numbered = f""",
        numbered as (select t, node, row_number() over (partition by node order by t) as k{scoped[1]} from a),
        doubted as (select numbered.*, firsts.cause, coalesce(t >= firsts.lo, false) as doubt
                    from numbered left join firsts using (node)),
        turns as (select k, min(t) as t, max(t) as last, count(*) as nodes, bool_or(doubt) as doubt,
                         arg_min(node, t::hugeint * 65536 + node) as node, min(cause) as cause{scoped[0]}
                  from doubted group by k)"""
    else:
        numbered, sieved = "", turns(trace, lines, nodes, within - slack, counted)
    trace.db.execute(f"""create or replace temp table judged as
        with {firsts}{numbered}
        select t, node, case when nodes = {nodes} and not doubt then last - t end as value,
               case when late > t + {within + slack} then {FAILED}
                    when doubt then {UNDECIDED}
                    when nodes = {nodes} and last - t <= {within - slack} then {OK}
                    when last - t > {within + slack} then {FAILED}
                    when nodes = {nodes} then {UNDECIDED}
                    when t + {within + slack} < least((select lo from first), {ends}) then {FAILED}
                    else {UNDECIDED} end::tinyint as state,
               case when doubt or (nodes < {nodes} and (select lo from first) <= t + {within + slack})
                         then coalesce(cause, (select min_by(cause, lo) from firsts))
                    when nodes < {nodes} then 'end' end as why{scoped[1]}
        from turns left join latest using (k) where {nodes} > 1""")
    return conclude(trace, rule, hides=INNER, slack=slack, notes=_alone(trace, nodes), sieved=sieved)


def _alone(trace: Trace, nodes: int) -> list[str]:
    """A note if there is nothing to compare."""
    return ["one node alone writes it: nothing is compared"] if nodes == 1 else []


def _whose(event: Event) -> str:
    """A query for the nodes that a rule is about."""
    return "select distinct node from a" if event.nodes is None else (
        f"select unnest([{', '.join(map(str, event.nodes))}])::smallint as node")


def _latest(trace: Trace, counted: bool) -> None:
    """Creates ``latest``: when at the earliest the last node can have had its ``k``-th event, if all that was lost were
    events: ``late``. It has no rows if that is not asked for."""
    if not counted:
        trace.db.execute("create or replace temp table latest (k bigint, late bigint)")
        return
    # A table of its own: DuckDB joins few rows in a loop, and takes unnested rows for few.
    trace.db.execute("""create or replace temp table due as
        with numbers as (select max(n) as n from (select count(*) as n from a group by node))
        select k, node from (select unnest(range(1, n + 1)) as k from numbers) cross join whose""")
    trace.db.execute(f"""create or replace temp table latest as
        with points as (select node, t, sum(n) over (partition by node order by t rows unbounded preceding)::bigint as n
                   from (select node, t, 1 as n from a
                         union all select node, lo, n from g where {INNER} or cause = 'end'))
        select k, max(points.t) as late from due as x
        asof join points on points.node = x.node and points.n >= x.k group by k""")


def _together_by_key(trace: Trace, within: int, slack: int, nodes: int, scoped: tuple[str, str],
                     event: Event) -> None:
    """Creates ``judged``: the events of each key. A node's event that is missing may be in a gap near the others."""
    far = within + slack
    trace.db.execute(f"""create or replace temp table absent as
        with turns as (select key, min(t) as t, max(t) as last from a group by key
                       having count(distinct node) < {nodes}),
        missing as (select turns.*, whose.node from turns cross join ({_whose(event)}) as whose
                    anti join a on a.key = turns.key and a.node = whose.node)
        select distinct key from missing asof left join gn as gap on gap.node = missing.node and gap.lo <= t + {far}
        where not coalesce(gap.hi >= last - {far}, false)""")
    trace.db.execute(f"""create or replace temp table judged as
        with turns as (select key, min(t) as t, max(t) as last, count(distinct node) as nodes,
                              arg_min(node, t::hugeint * 65536 + node) as node{scoped[0]} from a group by key)
        select turns.t, turns.node,
               case when nodes = {nodes} or last - turns.t > {far} then last - turns.t end as value,
               case when last - turns.t > {far} then {FAILED}
                    when key in (from absent) then {FAILED}
                    when nodes = {nodes} and last - turns.t <= {within - slack} then {OK}
                    else {UNDECIDED} end::tinyint as state,
               case when nodes < {nodes} then gap.cause end as why{scoped[1]}
        from turns asof left join gm as gap on gap.lo <= turns.t + {far}
        where {nodes} > 1""")
