"""Rules of kinds ``period`` and ``rate``: how often an event comes."""

import numpy as np
from hypermon.host.contracts.judged import FAILED, INNER, OK, UNDECIDED, Judged, conclude, is_calm, last_gap, lost_since
from hypermon.host.contracts.lines.line import NOTHING, Line, Lines, Sieved
from hypermon.host.contracts.lines.sieves import around_gaps, quantiles, rare, steady, windows
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.scopes import UNSURE, between, inside, keep_inside, margin, runs
from hypermon.host.contracts.trace import Trace

__all__ = ["period", "rate"]


def period(trace: Trace, rule: Rule) -> Judged:
    """From one event to the next it takes ``every``, give or take ``tolerance``.

    Each event after the first one is an instance. A lost event makes an interval that is too long undecided. An
    interval that is too short stays wrong. ``worst_ps`` is the largest deviation.
    """
    events = rule.events["event"]
    every, tolerance = rule.ps("every") or 0, rule.ps("tolerance") or 0
    lines = trace.lines(rule)
    if lines is None:
        trace.select("a", rule, "event", events)
    trace.gaps(events)
    slack = trace.slack(rule.same_node, events)
    part, same, gaps = _parts(rule)
    sieved, deviations = (NOTHING, None) if lines is None else steady(trace, lines["event"][0], every,
                                                                       tolerance - slack)
    # If no two events can be too near to each other, what was lost between two makes nothing worse.
    loose = str(tolerance >= every).lower()
    too_long, joins = "", ""
    if not is_calm(trace):
        # Outside the gaps no event was lost; and even if all lost items are events, one period remains too long.
        most, own = every + tolerance, "node" if rule.same_node else "0::smallint"
        lost_since(trace, own)
        too_long = (f" or s.t - greatest(gap.hi, s.t - d) > {most + slack} or least(first.lo, s.t) - s.t + d > "
                    f"{most + slack} or d - {slack} > {most}::hugeint * (1 + coalesce(l2.n, 0) - coalesce(l1.n, 0))")
        joins = f""" asof left join {gaps} as first on {same.replace('gap.', 'first.')}first.hi >= s.t - d
            asof left join lost_lo as l2 on l2.node = s.{own} and l2.t <= s.t
            asof left join lost_hi as l1 on l1.node = s.{own} and l1.t < s.t - d"""
        joins = joins.replace("s.0::smallint", "s.node * 0")
    since = "" if rule.scope is None else (f", lag(t) over ({part}order by t, node) as since, "
                                           f"lag(node) over ({part}order by t, node) as since_node")
    known = "" if lines is not None else (
        f"with s as (select t, node, t - lag(t) over ({part}order by t, node) as d{since} from a), "
        "known as (from s where d is not null)")
    trace.db.execute(f"""create or replace temp table judged as {known}
        select s.t, s.node, abs(d - {every}) as value,
               case when d < {every - tolerance - slack}{too_long} then {FAILED}
                    when {loose} and d <= {every + tolerance - slack} then {OK}
                    when gap.hi >= s.t - d then {UNDECIDED}
                    when d > {every + tolerance + slack} then {FAILED}
                    when abs(d - {every}) <= {tolerance - slack} then {OK}
                    else {UNDECIDED} end::tinyint as state,
               case when gap.hi >= s.t - d then gap.cause end as why, d{', since, since_node' * bool(since)}
        from known as s {last_gap(trace, rule.same_node, "s.t")}{joins}""")
    hides = INNER
    if rule.scope is not None:
        keep_inside(trace, rule)
    elif tolerance >= every and not trace.brief:
        _outer_gaps(trace, rule, every + tolerance - slack, None if lines is None else lines["event"][0])
        hides = "hides"
    return conclude(trace, rule, hides=hides, slack=slack, scoped=True, sieved=sieved,
                    notes=[] if trace.brief else _figures(trace, every, deviations))


def _outer_gaps(trace: Trace, rule: Rule, longest: int, lines: Lines | None) -> None:
    """Adds ``hides`` to ``g``: whether an item that was lost may be farther than ``longest`` before the first event, or
    after the last one. Those between two events make no interval longer."""
    by = "node" if rule.same_node else "0::smallint"
    ends = f"select {by} as own, min(t) as first, max(t) as last from a group by own"
    if lines is not None:
        some = [node for node, line in enumerate(lines) if len(line)]
        trace.give("outmost", own=np.array(some, np.int16), first=np.array([lines[node][0] for node in some], np.int64),
                   last=np.array([lines[node][-1] for node in some], np.int64))
        ends = "from outmost"
    trace.db.execute(f"""create or replace temp table g as
        with lost as (select *, {by} as own, sum(n) over lane as every, max(hi) over lane - min(lo) over lane as wide
                      from g where {INNER} window lane as (partition by {by}))
        select x.id, x.node, x.lo, x.hi, x.n, x.cause, case when e.first is null then every > 1 and wide > {longest}
               else greatest(e.first - x.lo, x.hi - e.last, 0) > {longest} end as hides
        from lost as x left join ({ends}) as e using (own)
        union all select id, node, lo, hi, n, cause, false from g where not ({INNER})""")


def _figures(trace: Trace, every: int, deviations: Line | None) -> list[str]:
    missing, extra, low, half, high = trace.db.execute(f"""
        select sum(case when d > {every} then greatest(round(d / {every}) - 1, 0) end) filter (state = {FAILED}),
               count(*) filter (state = {FAILED} and d < {every}),
               quantile_disc(d - {every}, 0.01), quantile_disc(d - {every}, 0.5), quantile_disc(d - {every}, 0.99)
        from judged""").fetchall()[0]
    if deviations is not None:
        low, half, high = quantiles(deviations, (1, 50, 99))
    if half is None:
        return []
    return [f"deviations of 1, 50 and 99 %: {low / 1000:+,.1f}, {half / 1000:+,.1f}, {high / 1000:+,.1f} ns",
            *([f"{int(missing):,} missing"] if missing else []), *([f"{extra:,} too early"] if extra else [])]


def _parts(rule: Rule) -> tuple[str, str, str]:
    """SQL for events of each node, or of all: the partition, the join with gaps, and the table of gaps."""
    if rule.same_node:
        return "partition by node ", "gap.node = s.node and ", "gn"
    return "", "", "gm"


def rate(trace: Trace, rule: Rule) -> Judged:
    """In each window of ``per`` within the recording, there are at least ``min`` and at most ``max`` events.

    Instances are the windows that begin at an event, or for ``min`` just after one.
    """
    events, per = rule.events["event"], rule.ps("per") or 0
    least, most = rule.ps("min"), rule.ps("max")
    slack = trace.slack(rule.same_node, events)
    short = min((own.end - own.start for own in trace.nodes), default=0) + slack < per
    found = None if short or most == 0 else trace.lines(rule)
    lines = None if found is None else found["event"][0]
    sieved = NOTHING
    if lines is None:
        trace.select("a", rule, "event", events)
    trace.gaps(events)
    trace.db.execute("create or replace temp table judged (t bigint, node smallint, value bigint, state tinyint, "
                     "why varchar, beyond bigint, beyond_node smallint, lost bigint)")
    hides = None
    if most is not None:
        sieved += _at_most(trace, rule, most, slack, lines)
        hides = None if trace.brief else "hides"
    if rule.scope is not None:
        _keep_windows(trace, rule)
    if least and rule.scope is None:
        sieved += _at_least(trace, rule, least, slack, lines)
    elif least:
        _at_least_inside(trace, rule, least, slack)
    notes = []
    if short:
        notes.append("the recording is shorter than one window")
        trace.db.execute(f"update judged set state = {UNDECIDED}, why = 'end' where state = {OK}")
    if hides is None:
        trace.db.execute("create or replace temp table g as select *, false as hides from g")
    return conclude(trace, rule, hides=hides, slack=slack, notes=notes, scoped=True, sieved=sieved)


def _at_most(trace: Trace, rule: Rule, most: int, slack: int, lines: Lines | None) -> Sieved:
    """Windows that begin at an event that was seen, and those that begin at one that was lost."""
    per = rule.ps("per") or 0
    part, _, _ = _parts(rule)
    by = "node" if rule.same_node else "0::smallint"
    db = trace.db
    inner, outer = ("", "") if rule.scope is None else (
        f", lead(node, {max(most, 1)}) over own as beyond_node", ", beyond, beyond_node, lost")
    lost_since(trace, by)
    # The lost items that may be in a window: those of gaps that begin before its end, without those of gaps that end
    # before its beginning.
    lost = f"""asof left join lost_lo as l2 on l2.node = s.own and l2.t < s.t + s.long + {per + slack}
               asof left join lost_hi as l1 on l1.node = s.own and l1.t < s.t"""
    sieved = NOTHING
    if lines is not None:
        sieved = windows(trace, lines, most, per + slack)
        seen, counts = "seen", ""
        rest = "(select *, node as own, 0 as long from windows)"
    else:
        # Without losses, a window is right if as many events as are allowed are followed by none, or by one after its
        # end.
        calm = most > 0 and is_calm(trace)
        plain = f"coalesce(beyond - t >= {per + slack}, true) and coalesce(before < t, true)" if calm else "false"
        db.execute(f"""create or replace temp table windows as
            select *, {plain} as calm
            from (select t, node, {by} as own, 0 as long, lead(t, {max(most, 1)}) over own as beyond,
                         lag(t) over own as before{inner}
                  from a window own as ({part}order by t, node))""")
        db.execute(f"""create or replace temp table counts as
            select {by} as node, t, sum(count(*)) over (partition by {by} order by t rows unbounded preceding)::bigint
                   as n
            from a where exists (from windows where not calm) group by {by}, t""")
        db.execute(f"insert into judged by name select t, node, {OK} as state from windows where calm")
        seen, rest = "c2.n - coalesce(c1.n, 0)", "(from windows where not calm)"
        counts = f"""asof left join counts as c2 on c2.node = s.own and c2.t < s.t + {per + slack}
                     asof left join counts as c1 on c1.node = s.own and c1.t < s.t"""
    db.execute(f"""insert into judged by name
        with counted as (select s.*{'' if seen == 'seen' else f', {seen} as seen'},
                                coalesce(l2.n, 0) - coalesce(l1.n, 0) as lost from {rest} as s
                         {counts}
                         {lost})
        select t, node, case when {'true' if most == 0 else f'beyond - t < {per - slack}'} then {FAILED}
                             when seen + lost > {most} then {UNDECIDED} else {OK} end as state,
               case when lost > 0 then (select min(cause) from g where {INNER}) end as why{outer} from counted""")
    if trace.brief:
        return sieved
    if lines is not None:
        around_gaps(trace, lines, per + slack, slack)
        seen, counts = "near.seen", "join near using (id)"
    else:
        seen = "coalesce(c2.n, 0) - coalesce(c1.n, 0)"
        counts = f"""asof left join counts as c2 on c2.node = s.own and c2.t < s.t + s.long + {per + slack}
                     asof left join counts as c1 on c1.node = s.own and c1.t < s.t - {slack}"""
    db.execute(f"""create or replace temp table g as
        with s as (select *, {by} as own, lo as t, hi - lo as long from g where {INNER})
        select s.id, s.node, s.lo, s.hi, s.n, s.cause,
               {seen} + coalesce(l2.n, 0) - coalesce(l1.n, 0) > {most} as hides
        from s {counts}
        {lost} union all select *, false from g where not ({INNER})""")
    return sieved


def _keep_windows(trace: Trace, rule: Rule) -> None:
    """Of the windows with too many events: those whose events may all be in one scope."""
    alone = "true" if rule.ps("max") == 0 else "beyond is null"
    trace.db.execute(f"""create or replace temp table whole as
        select t as since, node as since_node, if({alone}, t, beyond) as t, if({alone}, node, beyond_node) as node,
               value, state, why, lost from ({inside(trace, rule, 'judged')}) where inside <> 0""")
    # With what was lost, fewer of those that were seen may violate it.
    trace.db.execute(f"""create or replace temp table judged as
        select since as t, since_node as node, value,
               case when state = {OK} or (inside = 0 and coalesce(lost, 0) = 0) then {OK}
                    when inside = 1 then state else {UNDECIDED} end::tinyint as state,
               case when inside <> 1 and why is null then '{UNSURE}' else why end as why
        from ({between(trace, rule, 'whole')})""")


def _at_least_inside(trace: Trace, rule: Rule, least: int, slack: int) -> None:
    """Like :func:`_at_least`, in each scope. A violation where the scope is not certain is undecided."""
    slack = max(slack, margin(trace, rule))
    lane = "node" if rule.scope is not None and rule.scope.same_node else "0"
    nodes = trace.nodes_of(rule.events["event"])
    whose = f"node in ({', '.join(map(str, nodes))})" if nodes is not None else "node in (select node from a)"
    extents = f"select node, first, last from extent where {whose}" if rule.same_node else (
        "select 0::smallint as node, max(first) as first, min(last) as last from extent")
    db = trace.db
    db.execute("create or replace temp table most as from judged")
    db.execute(f"create or replace temp table a as select t, {'node' if rule.same_node else '0::smallint'} as node, "
               f"node as own from a")
    for name, states in (("sure", "1"), ("may", "1, 2")):
        runs(trace, rule, "scope_runs", states)
        db.execute(f"""create or replace temp table scope_runs as
            select e.node, greatest(first, lo) as lo, least(last, hi) as hi
            from ({extents}) as e join scope_runs as r on r.lane = e.{lane} and r.lo < last and r.hi > first
            """.replace("e.0", "0"))
        db.execute("truncate judged")
        _windows(trace, rule, least, slack, """
            select a.t, a.node, 1 as edge, r.lo as run from a asof join scope_runs as r
                on r.node = a.node and r.lo <= a.t where a.t <= r.hi
            union all select lo, node, 0, lo from scope_runs union all select hi, node, 2, lo from scope_runs""",
                 "partition by node, run ")
        db.execute(f"create or replace temp table {name} as from judged")
    db.execute(f"""create or replace temp table judged as
        from sure where state = {FAILED}
        union all select * replace (if(state = {FAILED}, {UNDECIDED}, state)::tinyint as state,
                                    if(state = {FAILED}, '{UNSURE}', why) as why)
        from may where (t, node) not in (select t, node from sure where state = {FAILED})
        union all by name from most""")


def _at_least(trace: Trace, rule: Rule, least: int, slack: int, lines: Lines | None) -> Sieved:
    """The time from an event to the one that is ``least`` events later, ends of the recording included."""
    part, _, _ = _parts(rule)
    if lines is not None:
        nodes, per = trace.nodes_of(rule.events["event"]), rule.ps("per") or 0
        mine = [node for node, line in enumerate(lines) if len(line)] if nodes is None else nodes
        extents = {node: (trace.nodes[node].start, trace.nodes[node].end) for node in mine}
        sieved = rare(trace, lines, extents, least, per - slack, per + slack)
        _judge_windows(trace, rule, slack, "from gone")
        if not is_calm(trace):
            _too_few(trace, rule, least, slack, "from probes")
        return sieved
    if rule.same_node:
        nodes = trace.nodes_of(rule.events["event"])
        whose = f"node in ({', '.join(map(str, nodes))})" if nodes is not None else "node in (select node from a)"
        edges = f"select {{0}} as t, node, {{1}} as edge from extent where {whose}"
    else:
        # All of the recording that all boards have.
        edges = "select {2}({0}) as t, 0::smallint as node, {1} as edge from extent having count(*) > 0"
    _windows(trace, rule, least, slack, f"""select t, node, 1 as edge from a
        union all {edges.format('first', 0, 'max')} union all {edges.format('last', 2, 'min')}""", part)
    return NOTHING


def _windows(trace: Trace, rule: Rule, least: int, slack: int, every: str, part: str) -> None:
    """Judges the times between events and ends of what was recorded. ``every``: a query for these."""
    _judge_windows(trace, rule, slack, f"""
        with every as ({every}),
        s as (select t, node, edge, coalesce(lead(t, {least}) over ({part}order by edge, t),
                                             last_value(t) over ({part}order by edge, t rows between unbounded
                                             preceding and unbounded following)) as until from every)
        from s where edge < 2""")
    if is_calm(trace) or rule.scope is not None:
        return
    by = "node" if rule.same_node else "0::smallint"
    which = "node in (select node from judged)" if rule.same_node else "true"
    per = rule.ps("per") or 0
    _too_few(trace, rule, least, slack, f"""
        with probes as (select t, node from ({every}) where edge < 2
                        union all select hi, {by} from g where {INNER} and {which}),
        seen as (select {by} as node, t, sum(count(*)) over (partition by {by} order by t rows unbounded preceding)
                        ::bigint as n from a group by {by}, t)
        select s.t, s.node, coalesce(c2.n, 0) - coalesce(c1.n, 0) as seen
        from probes as s asof left join seen as c2 on c2.node = s.node and c2.t <= s.t + {per + slack}
        asof left join seen as c1 on c1.node = s.node and c1.t <= s.t""")


def _judge_windows(trace: Trace, rule: Rule, slack: int, spans: str) -> None:
    """Judges the spans of a query: from ``t`` to ``until``, in which there are too few events."""
    per = rule.ps("per") or 0
    _, same, gaps = _parts(rule)
    trace.db.execute(f"""insert into judged by name
        select s.t, s.node, case when until - s.t <= {per - slack} then {OK}
                                 when until - s.t > {per + slack} and not coalesce(gap.hi > s.t, false)
                                     then {FAILED}
                                 else {UNDECIDED} end as state,
               case when gap.hi > s.t then gap.cause end as why
        from ({spans}) as s asof left join {gaps} as gap
             on {same}gap.lo < least(s.until, s.t + {per + slack + 1})""")


def _too_few(trace: Trace, rule: Rule, least: int, slack: int, probes: str) -> None:
    """Adds windows in which all that was lost, if it were events, would be too few. ``probes``: a query for the times
    after which they begin, with the number of events that were seen in them."""
    per = rule.ps("per") or 0
    by = "node" if rule.same_node else "0::smallint"
    lasts = "select last, node from extent" if rule.same_node else "select min(last) as last, 0 as node from extent"
    lost_since(trace, by)
    trace.db.execute(f"""insert into judged by name
        with s as (select t, probes.node, seen from ({probes}) as probes join ({lasts}) as lasts using (node)
                   where t + {per + slack + 1} <= last)
        select s.t, s.node, {FAILED} as state, null as why
        from s asof left join lost_lo as l2 on l2.node = s.node and l2.t <= s.t + {per + slack}
        asof left join lost_hi as l1 on l1.node = s.node and l1.t <= s.t
        where seen + coalesce(l2.n, 0) - coalesce(l1.n, 0) < {least}
              and (s.t, s.node) not in (select t, node from judged where state = {FAILED})""")
