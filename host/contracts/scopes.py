"""Scopes of rules: which instances of a rule are inside, for sure, not, or perhaps.

A scope begins with an event, and ends with another one; both are of the recording. It is a sequence of *cells* from one
edge to the next: 0 outside, 1 inside, 2 not known, because an edge may have been lost, or two edges of different nodes
are too near to each other. An event is inside for sure if all cells are 1 that it may be in, as its stamp is uncertain.
"""

from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import FAILED, FAR, INNER, UNDECIDED, Trace

__all__ = ["UNSURE", "between", "hiding", "inside", "keep_inside", "margin", "never", "prepare", "runs"]

#: The cause of a doubt about the scope.
UNSURE = "scope"
_CELL = "state, nz, chg, n, tos"


def prepare(trace: Trace, rule: Rule) -> None:
    """Creates the cells of a rule's scope: ``scope_cells`` (``lane``, ``t``, when a cell begins, its ``state``;
    ``steady``: nothing changes it before the next cell; ``owner``: the node whose edge it begins with, if no other node
    has one as near; and so far: ``nz`` cells that are not outside, ``chg`` changes, ``n`` edges, ``tos`` ends), and
    ``scope_own``, the edges of each node. Nothing is done if they are there.

    A lane is a node if the scope is of each node, else 0.
    """
    scope = rule.scope
    if scope is None or trace.scoped is rule:
        return
    trace.scoped = rule
    plain, every = rule.unkeyed(), scope.events
    for name, events in (("scope_begins", scope.begin), ("scope_ends", scope.end)):
        trace.select(name, plain, "scope", events or every)
        if not events:
            trace.db.execute(f"delete from {name}")
    lane = "node::smallint" if scope.same_node else "0::smallint"
    slack = margin(trace, rule)
    marks = f"""select {lane} as lane, node, t, 1::tinyint as mark from scope_begins
                       union all select {lane}, node, t, 0 from scope_ends"""
    if exact(trace, rule):
        question = f"select *, node as owner, false as mixed from ({marks})"
    else:
        # Few marks have another one near; the windows for these take long.
        question = f"""with marks as ({marks}),
            spaced as (select *, coalesce(t - lag(t) over own > {slack}, true)
                                 and coalesce(lead(t) over own - t > {slack}, true) as lone
                       from marks window own as (partition by lane order by t))
            select * exclude (lone), node as owner, false as mixed from spaced where lone
            union all
            select * exclude (lone), if(min(node) {_near(slack)} = max(node) {_near(slack)}, node, null),
                   min(mark) {_near(slack)} <> max(mark) {_near(slack)}
                   and min(node) {_near(slack)} <> max(node) {_near(slack)}
            from spaced where not lone"""
    trace.db.execute(f"create or replace temp table scope_marks as {question}")
    trace.db.execute(f"""create or replace temp table scope_gaps as
        select {lane} as lane, node, lo, hi + {slack} as hi from gaps_all
        where {trace.concerning(every)} and {INNER}""")
    unless = ""
    if not (scope.begin and scope.end):     # nothing ends it, or begins it again: only losses before its edge matter
        unless = " and mark is null"
        trace.db.execute("delete from scope_gaps as x where exists (from scope_marks as own where own.lane = x.lane "
                         "and own.t < x.lo)")
    lanes = f"select unnest(range({len(trace.nodes) if scope.same_node else 1}))::smallint"
    first = 0 if scope.begin else 1
    order = "partition by lane order by t, turn, mark"
    trace.db.execute(f"""create or replace temp table scope_cells as
        with points as (
            select lane, t, if(mixed, 2, mark)::tinyint as mark, mark as edge, 0 as opens, 1 as turn, owner
            from scope_marks
            union all select lane, lo, null, null, 1, 0, null from scope_gaps
            union all select lane, hi, null, null, -1, 2, null from scope_gaps
            union all select *, -{FAR}, {first}, null, 0, -1, null from ({lanes})),
        opened as (select *, sum(opens) over ({order} rows unbounded preceding) as depth from points),
        known as (select *, last_value(if(depth > 0{unless}, 2, mark) ignore nulls) over so_far as state,
                            row_number() over ({order}) as nth,
                            depth = 0 and last_value(if(depth > 0, true, mark <> 2) ignore nulls) over so_far as steady
                  from opened window so_far as ({order} rows unbounded preceding)),
        summed as (select lane, t, nth, state::tinyint as state, steady, owner, nth - 1 as n, turn, mark,
                          sum((state <> 0)::int) over ({order} rows unbounded preceding)::bigint as nz,
                          sum(coalesce(edge = 0, false)::int) over ({order} rows unbounded preceding)::bigint as tos,
                          state <> lag(state) over ({order}) as changed from known),
        changes as (select *, coalesce(sum(changed::int) over ({order} rows unbounded preceding), 0)::bigint as chg
                    from summed)
        select lane, t, max_by(state, nth) as state, max_by(steady, nth) as steady, arg_max_null(owner, nth) as owner,
               max(nz) as nz, max(chg) as chg, max(n) as n, max(tos) as tos
        from changes group by lane, t""")
    trace.db.execute("""create or replace temp table scope_own as
        select lane, node, t, sum(count(*)) over (partition by lane, node order by t rows unbounded preceding)::bigint
               as n from scope_marks group by lane, node, t""")


def _near(slack: int) -> str:
    return f"over (partition by lane order by t range between {slack} preceding and {slack} following)"


def exact(trace: Trace, rule: Rule) -> bool:
    """The order of the rule's events and of the scope's edges is certain: all are of one node."""
    scope = rule.scope
    if scope is None or scope.same_node:
        return True
    nodes = trace.nodes_of(_every(rule))
    return len(trace.nodes if nodes is None else nodes) == 1


def margin(trace: Trace, rule: Rule) -> int:
    """By how much stamps of events and of edges may be off, as far as that leaves their order open."""
    return 0 if exact(trace, rule) else trace.slack(False, _every(rule))


def _every(rule: Rule) -> list[Event]:
    return [*(event for events in rule.events.values() for event in events), *(rule.scope.events if rule.scope else ())]


def _lane(rule: Rule, name: str) -> str:
    return f"{name}.node" if rule.scope is not None and rule.scope.same_node else f"{name}.t * 0"


def _cell(rule: Rule, name: str, of: str, at: str) -> str:
    """Joins the cell at a time."""
    return f"asof join scope_cells as {name} on {name}.lane = {_lane(rule, of)} and {name}.t <= {at}\n"


def inside(trace: Trace, rule: Rule, table: str) -> str:
    """A query for the rows of a table (``t``, ``node``) with ``inside``: 0, 1, or 2, not known."""
    prepare(trace, rule)
    if exact(trace, rule):
        return f"select x.*, c.state as inside from {table} as x {_cell(rule, 'c', 'x', 'x.t')}"
    slack = margin(trace, rule)
    own = "asof left join scope_own as {0} on {0}.node = x.node and {0}.t <= {1}"
    return f"""select x.*, case when hi.chg = lo.chg then c.state
                                when hi.n - lo.n = coalesce(own_hi.n, 0) - coalesce(own_lo.n, 0) then c.state
                                else 2 end::tinyint as inside
        from {table} as x {_cell(rule, 'c', 'x', 'x.t')} {_cell(rule, 'lo', 'x', f'x.t - {slack + 1}')}
        {_cell(rule, 'hi', 'x', f'x.t + {slack}')} {own.format('own_lo', f'x.t - {slack + 1}')}
        {own.format('own_hi', f'x.t + {slack}')}"""


def between(trace: Trace, rule: Rule, table: str) -> str:
    """Like :func:`inside`, for spans from ``since`` (an event of ``since_node``) to ``t``. A span is inside if all of
    it is in one scope. Events of two nodes are in no scope of each node."""
    slack = margin(trace, rule)
    apart = " or x.node <> y.node" if rule.scope is not None and rule.scope.same_node else ""
    ends = inside(trace, rule, f"(select *, row_number() over () as nth from {table})")
    begins = inside(trace, rule, f"(select nth, since as t, since_node as node from ({ends}))")
    return f"""with whole as ({ends}), firsts as ({begins})
        select x.* exclude (nth, inside), case
            when x.inside = 0 or y.inside = 0 or late.tos > early.tos{apart} then 0
            when x.inside = 1 and y.inside = 1 and here.chg = there.chg then 1 else 2 end::tinyint as inside
        from whole as x join firsts as y using (nth)
        {_cell(rule, 'here', 'x', 'x.t')} {_cell(rule, 'there', 'x', 'x.since')}
        {_cell(rule, 'late', 'x', f'greatest(x.t - {slack + 1}, x.since)')}
        {_cell(rule, 'early', 'x', f'x.since + {slack}')}"""


def keep_inside(trace: Trace, rule: Rule) -> None:
    """Removes the instances in ``judged`` that are outside, and makes violations undecided that may be.

    ``judged`` may have ``inside`` already; or ``since`` and ``since_node``, of instances that are longer than an event.
    """
    columns = {row[0] for row in trace.db.execute("describe judged").fetchall()}
    query = "from judged" if "inside" in columns else (
        between(trace, rule, "judged") if "since" in columns else inside(trace, rule, "judged"))
    drop = ", ".join(name for name in ("since", "since_node", "inside") if name in {*columns, "inside"})
    doubt = f"inside = 2 and state = {FAILED}"
    trace.db.execute(f"""create or replace temp table scoped as
        select * exclude ({drop}) replace (if({doubt}, {UNDECIDED}, state)::tinyint as state,
                if({doubt}, '{UNSURE}', why) as why, if(inside = 2, null, value) as value)
        from ({query}) where inside <> 0""")
    trace.db.execute("create or replace temp table judged as from scoped")


def hiding(trace: Trace, rule: Rule, hides: str, alone: bool = False) -> str:
    """The condition on ``g`` for gaps that could hide a violation in the scope, among those that could hide one. Adds
    ``in_scope`` to ``g``: whether an item that was lost may be in the scope.

    alone : a violation needs an event of the rule that is in the scope. If one item was lost, it has not begun the
        scope as well, unless an event does both: then the scope was on before, or began with another item.
    """
    prepare(trace, rule)
    slack = margin(trace, rule)
    before = 0 if exact(trace, rule) else slack + 1
    lane = "x.node" if rule.scope is not None and rule.scope.same_node else "x.node * 0"
    only = "false"
    if alone and rule.scope is not None and trace.differ(
            [event for own in rule.events.values() for event in own], rule.scope.begin):
        # Nothing but the begin and the end of this gap is known of the scope at this time.
        only = f"""x.n = 1 and f.state = 0 and h.n - f.n = 2
                   and (x.node, x.lo, x.hi + {slack}) in (select node, lo, hi from scope_gaps)"""
    trace.db.execute(f"""create or replace temp table g as
        select x.*, (l.state <> 0 or h.nz > l.nz) and not ({only}) as in_scope
        from (select *, {hides} as hidden from g) as x
        asof join scope_cells as f on f.lane = {lane} and f.t <= greatest(x.lo - {slack + 1}, -{FAR})
        asof join scope_cells as l on l.lane = {lane} and l.t <= greatest(x.lo - {before}, -{FAR})
        asof join scope_cells as h on h.lane = {lane} and h.t <= x.hi + {slack}""")
    return "hidden and in_scope"


def runs(trace: Trace, rule: Rule, name: str, states: str) -> None:
    """Creates a table of the times for which the scope is in some states: ``lane``, ``lo``, ``hi``."""
    prepare(trace, rule)
    trace.db.execute(f"""create or replace temp table {name} as
        with cells as (select lane, t, state in ({states}) as own, lead(t, 1, {FAR}) over (partition by lane order by t)
                              as until from scope_cells),
        turns as (select *, sum((not own)::int) over (partition by lane order by t rows unbounded preceding)
                            as run from cells)
        select lane, min(t) as lo, max(until) as hi from turns where own group by lane, run having min(t) < max(until)
        """)


def never(trace: Trace, rule: Rule) -> bool:
    """No instance can be inside for sure: there is no such time."""
    prepare(trace, rule)
    return not trace.db.execute("from scope_cells where state = 1 limit 1").fetchall()
