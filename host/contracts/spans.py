"""Rules of kinds ``duration``, ``exclusion`` and ``share``: spans of time between two events, the states of a program.

For ``duration``, an end ends the most recently begun span of its key, as in the table ``states``. For ``exclusion`` and
``share``, a node is inside from a begin to the next end, whatever the key.
"""

import math
from dataclasses import replace

import numpy as np
from hypermon.host.contracts.judged import FAILED, INNER, OK, SILENT, UNDECIDED, Judged, conclude, count_of, last_gap
from hypermon.host.contracts.lines.answers import next_to_gaps
from hypermon.host.contracts.lines.line import NOTHING, Line, Lines, Sieved, before
from hypermon.host.contracts.lines.pairs import brief_spans, separate, shares
from hypermon.host.contracts.portions import portions
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.scopes import hiding, inside, keep_inside, margin, runs
from hypermon.host.contracts.trace import ENDLESS, MANY, Trace

__all__ = ["duration", "exclusion", "share"]

_Durations = tuple[Sieved, Line, list[tuple[int, int, int]]]


def duration(trace: Trace, rule: Rule) -> Judged:
    """Spans last at least ``min`` and at most ``max``; with ``quantile``, that quantile of their durations does."""
    events = [*rule.events["begin"], *rule.events["end"]]
    lines = _one_each(trace, rule)
    if len(trace.nodes_of(events) or trace.nodes) == 1:
        rule = replace(rule, same_node=True)
    if lines is None:
        trace.select("begins", rule, "begin", rule.events["begin"])
        trace.select("ends", rule, "end", rule.events["end"])
    trace.gaps(events)
    slack = trace.slack(rule.same_node, events)
    least, most = rule.ps("min") or 0, rule.ps("max")
    found: _Durations = (NOTHING, np.empty(0, np.int64), [])
    if lines is not None and "quantile" in rule.values:
        found = brief_spans(trace, *lines, 0, None)
    elif lines is not None:
        found = brief_spans(trace, *lines, least + slack if least else 0, None if most is None else most - slack)
    # Losses after the time at which a span is too long do not matter. Nor do those after the time at which it is no
    # longer too short, if there is no maximum: each span that is too short has one in it, perhaps itself, in which
    # nothing begins or ends, and which is not longer.
    long_is_right = most is None and "quantile" not in rule.values
    longest = ENDLESS
    if most is not None and "quantile" not in rule.values:
        longest = most + slack
    elif long_is_right:
        longest = least + slack - 1
    _pairs(trace, rule, slack, longest)
    high = "false" if most is None else f"d > {most + slack}"
    fits = f"d >= {least + slack if least else 0}" + ("" if most is None else f" and d <= {most - slack}")
    trace.db.execute(f"""create or replace temp table judged as
        select t, node, case when until is not null and begun and not doubt then d end as value,
               case when early and {'false' if most is not None else f'd >= {least + slack}'} then {OK}
                    when not begun or doubt then {UNDECIDED}
                    when {high} or (until is not null and d < {least - slack}) then {FAILED}
                    when until is null and {'true' if most is not None else f'd < {least + slack}'} then {UNDECIDED}
                    when {fits} then {OK} else {UNDECIDED} end::tinyint as state,
               case when not begun then 'start' when doubt then cause when until is null and not ({high}) then 'end' end
                   as why
        from spans""")
    hides = INNER
    if long_is_right and not trace.brief:
        _only_harmful(trace, rule, least + slack, slack, lines)
        hides = "hides"
    if rule.scope is not None:
        hides = hiding(trace, rule, hides, alone=True)
        _begun_inside(trace, rule, slack)
    if "quantile" in rule.values:
        return _quantile(trace, rule, slack, found, hides)
    return conclude(trace, rule, hides=hides, slack=slack, scoped=True, beyond=True, sieved=found[0])


def _begun_inside(trace: Trace, rule: Rule, slack: int) -> None:
    """Removes the spans in ``judged`` that have not begun in the scope. ``g`` is that of :func:`.hiding`.

    A span whose begin was not seen began before the recording, in no scope; unless its begin was lost before its end,
    at a time that may be in the scope.
    """
    off, mine = (0, " and g.node = judged.node") if rule.same_node else (slack, "")
    trace.db.execute(f"""delete from judged where why = 'start' and coalesce(t + {off} < (
        select min(lo) from g where {INNER} and in_scope{mine}), true)""")
    placed = inside(trace, rule, "judged")
    trace.db.execute("create or replace temp table judged as "
                     f"select * replace (if(why = 'start', 2, inside)::tinyint as inside) from ({placed})")
    keep_inside(trace, rule)


def _only_harmful(trace: Trace, rule: Rule, enough: int, slack: int, lines: tuple[Lines, Lines] | None) -> None:
    """Adds ``hides`` to ``g``: whether a span that is shorter than ``enough`` may begin or end with a lost item.

    Its other end was seen, or lost, too, or it is outside the recording.
    """
    off, by = (1, "partition by node") if rule.same_node else (-slack, "")
    if lines is not None:
        next_to_gaps(trace, "next_end", INNER, lines[1], "lo", off, True)
        next_to_gaps(trace, "last_begin", INNER, lines[0], "hi", -off, True, find=before)
        near = "left join next_end as e using (id) left join last_begin as b using (id)"
    else:
        same = " and {0}.node = x.node" if rule.same_node else ""
        near = (f"asof left join (select *, 0 as one from ends) as e on e.one = x.node * 0{same.format('e')} "
                f"and e.t >= x.lo + {off} asof left join (select *, 0 as one from begins) as b "
                f"on b.one = x.node * 0{same.format('b')} and b.t <= x.hi - {off}")
    trace.db.execute(f"""create or replace temp table g as
        with near as (select *, lead(lo) over ({by} order by lo, hi) as later, max(hi) over ({by} order by lo, hi
                      rows between unbounded preceding and 1 preceding) as earlier from g)
        select x.id, x.node, x.lo, x.hi, x.n, x.cause, {INNER} and (x.n > 1 or coalesce(later < x.hi + {enough}, false)
               or coalesce(earlier > x.lo - {enough}, false) or coalesce(e.t < x.hi + {enough}, false)
               or coalesce(b.t > x.lo - {enough}, false)) as hides
        from near as x {near}""")


def _one_each(trace: Trace, rule: Rule) -> tuple[Lines, Lines] | None:
    """The lines of begins and of ends. A state with several of them has none."""
    lines = trace.lines(rule) if len(rule.events["begin"]) == len(rule.events["end"]) == 1 else None
    return None if lines is None else (lines["begin"][0], lines["end"][0])


def _pairs(trace: Trace, rule: Rule, slack: int, longest: int) -> None:
    """Creates the table ``spans``.

    t, node : of the begin; of the end, if the span has no begin.
    until : time of the end; null: the span is open at the end of the recording.
    d : duration; of an open span until after the end of the recording, at least; of one without a begin, since before
        its start, or since the last gap before the end of the span.
    begun : the span has a begin.
    early : the span has no begin, and began as early as ``d`` says, or earlier.
    doubt, cause : there is a gap in the first ``longest`` picoseconds of the span, and why.
    """
    by = ["key", *(["node"] if rule.same_node else [])]
    order = f"partition by {', '.join(by)} order by t, part, node"
    # The items of a node have different stamps: none was lost at the time of one that was seen.
    beside = int(rule.same_node)
    end = f"if(s.begun, least(coalesce(s.until - {beside}, s.last), s.t + {longest}), s.t - {beside})"
    # Stamps of different nodes are off by up to `slack`, so gaps of other nodes count up to that far outside a span,
    # and a begin may have come before an end whose stamp is as much smaller. Begins among begins change no duration.
    off = 0 if rule.same_node else slack
    near = f"over (partition by key order by t range between {slack} preceding and {slack} following)"
    mixed = "false" if rule.same_node else f"min(node) {near} <> max(node) {near}" + (
        f" and min(part) {near} <> max(part) {near}" if rule.scope is None else "")
    trace.db.execute(f"""create or replace temp table edges as
        select *, lead(t) over own as later, lead(part) over own as after, lag(part) over own as before
        from (select t, node, key, 1::tinyint as part from begins union all select t, node, key, 0 from ends)
        window own as ({order})""")
    # Spans in spans are rare, and need three more passes.
    nested = count_of(trace, "select count(*) from (from edges where part = 1 and after = 1 limit 1)")
    # What is open at the end ends after it, one after the other if it is of one node.
    paired = f"""marked as (select *, {mixed} as mixed from edges),
        summed as (select *, sum(2 * part - 1) over ({order} rows unbounded preceding) as sum,
                          sum(mixed::int) over ({order} rows unbounded preceding) as doubts from marked),
        opened as (select *, sum - least(0, min(sum) over ({order} rows unbounded preceding)) as depth,
                          last_value(doubts) over whole as all_doubts from summed
                   window whole as ({order} rows between unbounded preceding and unbounded following)),
        levels as (select *, if(part = 1, depth, lag(depth, 1, 0) over ({order})) as level,
                          last_value(depth) over ({order} rows between unbounded preceding and unbounded following)
                          as still_open from opened),
        paired as (select *, lead(t) over same as until, lead(doubts) over same as end_doubts from levels
                   window same as (partition by {', '.join(by)}, level order by t, part, node)),
        s as (select t, node, key, if(part = 1 and level > 0, until, null) as until, part = 1 as begun,
                     if(begun, coalesce(end_doubts, all_doubts) + mixed::int, doubts + doubts) > doubts as unsure,
                     {'still_open - level' if rule.same_node else '0'} as inner_ones, first, last
              from paired join extent using (node)
              where part = 1 or level = 0)""" if nested or not rule.same_node else """
        s as (select t, node, key, if(part = 1, later, null) as until, part = 1 as begun, false as unsure,
                     0 as inner_ones, first, last
              from edges join extent using (node) where part = 1 or before is distinct from 1)"""
    trace.db.execute(f"""create or replace temp table spans as with {paired}
        select s.t, s.node, until, if(begun, coalesce(until, last + 1 + inner_ones) - s.t,
                  s.t - greatest(s.first, least(coalesce(gap.hi + 1, s.first), s.t - {beside} + 1)) + 1) as d,
               begun, not begun and not unsure as early,
               unsure or (begun and coalesce(gap.hi >= s.t + {beside - off}, false)) as doubt,
               case when not unsure then gap.cause end as cause
        from s {last_gap(trace, rule.same_node, f"{end} + {off}")}
        where begun or gap.hi is not null or not {str(trace.fresh).lower()}""")


def _quantile(trace: Trace, rule: Rule, slack: int, found: _Durations, hides: str) -> Judged:
    """The quantile of durations as an interval, because unknown spans may have any length.

    ``found``: those that are not in ``judged``, as :func:`.brief_spans` returns them. ``hides``: the condition on ``g``
    for gaps that may have further ones.
    """
    _, durations, longest = found
    q, least, most = float(rule.values["quantile"]), rule.ps("min") or 0, rule.ps("max")
    rest = trace.db.execute("select value from judged where value is not null").fetchnumpy()["value"]
    values = np.concatenate((durations, np.asarray(rest, np.int64)))
    known = len(values)
    open_ = count_of(trace, "select count(*) from judged where value is null")
    lost = count_of(trace, f"select sum(n) from g where {hides}")
    unknown = open_ + min(lost, MANY)

    def at(rank: int) -> int:
        values.partition(max(rank, 1) - 1)
        return int(values[max(rank, 1) - 1])

    total = known + unknown
    upper_rank, lower_rank = max(math.ceil(q * total), 1), math.ceil(q * total) - unknown
    upper = at(upper_rank) if known and upper_rank <= known else None
    lower = at(lower_rank) if 0 < lower_rank <= known else 0
    middle = at(math.ceil(q * known)) if known else 0
    passes = known > 0 and (most is None or (upper is not None and upper + slack <= most)) and (
        not least or lower - slack >= least)
    fails = known > 0 and ((most is not None and lower - slack > most)
                           or (least > 0 and upper is not None and upper + slack < least))
    state = OK if passes else FAILED if fails else UNDECIDED
    shown = "" if upper == lower else f"; with what is not known, at least {lower / 1000:,.1f} ns" + (
        "" if upper is None else f" and at most {upper / 1000:,.1f} ns")
    for value, t, node in longest:
        trace.db.execute("insert into judged by name select ? as t, ? as node, ? as value", [t, node, value])
    trace.db.execute(f"""create or replace temp table judged as
        select t, node, {middle}::bigint as value, {state}::tinyint as state,
               {"coalesce(why, 'loss')" if unknown else 'why'} as why
        from (from judged order by value desc nulls last, t, node limit 1)""")
    notes = [f"quantile {q:g} of {known:,}: {middle / 1000:,.1f} ns{shown}"] if known else []
    return conclude(trace, rule, slack=slack, notes=notes, instances=known, scoped=True)


def _states(trace: Trace, groups: list[tuple[str, str]]) -> None:
    """Creates ``segments``: ``lane``, ``node``, ``t``, ``until``, ``state``: 0 outside, 1 inside, 2 not known; and
    ``steady``: nothing was lost within it, so that it is all inside, or all outside.

    Parameters
    ----------
    groups : tables of begins and of ends; the number of a group is ``lane``. The gaps of each are in ``gaps_LANE``.
    """
    marks = " union all ".join(
        f"select {lane}::int as lane, node, t, 1 as mark, 0 as opens, 1 as turn from {begins} union all "
        f"select {lane}, node, t, 0, 0, 0 from {ends} union all "
        f"select {lane}, node, lo, null, 1, -1 from gaps_{lane} union all "
        f"select {lane}, node, hi, null, -1, 2 from gaps_{lane}"
        for lane, (begins, ends) in enumerate(groups))
    order = "partition by lane, node order by t, turn"
    trace.db.execute(f"""create or replace temp table segments as
        with points as ({marks}),
        opened as (select *, sum(opens) over ({order} rows unbounded preceding) as depth from points),
        marked as (select *, case when depth > 0 then 2 else mark end as known from opened),
        held as (select lane, node, t, lead(t) over ({order}) as next, row_number() over ({order}) as nth, mark, opens,
                        coalesce(last_value(known ignore nulls) over ({order} rows unbounded preceding), 2) as state,
                        depth = 0 as steady
                 from marked)
        select lane, node, t, coalesce(next, last) as until, state, steady from held join extent using (node)
        union all
        select lane, node, first, t, if(opens = 0 and (mark = 1 or {str(trace.fresh).lower()}), 0, 2), true
        from held join extent using (node)
        where nth = 1""")


def share(trace: Trace, rule: Rule) -> Judged:
    """Each node is inside for a share of the recording's time that is at least ``min`` and at most ``max`` (0 to 1)."""
    events = [*rule.events["begin"], *rule.events["end"]]
    lines, slack = _one_each(trace, rule), trace.slack(True)
    trace.gaps(events)
    if lines is None:
        trace.select("begins", rule, "begin", rule.events["begin"])
        trace.select("ends", rule, "end", rule.events["end"])
        trace.db.execute("create or replace temp table regular (node smallint, sure bigint, may bigint, pairs bigint)")
    else:
        shares(trace, *lines, slack, [own.end for own in trace.nodes])
    trace.db.execute(f"create or replace temp table gaps_0 as select * from g where {INNER}")
    _states(trace, [("begins", "ends")])
    trace.db.execute("create or replace temp table seen as select node from begins union select node from ends")
    if lines is not None:
        found = [node for node, own in enumerate(zip(*lines, strict=True)) if any(map(len, own))]
        trace.give("seen", node=np.array(found, np.int16))
    if rule.scope is not None:
        return _share_inside(trace, rule)
    # The share is that of the time inside in the time inside and outside, whose sum is as uncertain as a stamp. The
    # longest time that is all inside or all outside may leave too much, or too little, and nothing in between. A node
    # of which nothing was seen may have written none of the events; then the rule is not about it.
    least, most = float(rule.values.get("min", 0.0)), float(rule.values.get("max", 1.0))
    nodes = trace.nodes_of(events)
    whose = "true" if nodes is None else f"node in ({', '.join(map(str, nodes))})"
    unseen = "0" if trace.fresh else "last - first"
    trace.db.execute(f"""create or replace temp table judged as
        with {_runs_of_states(slack)},
        block as (select node, if(bool_or(state <> 2), greatest(max(until - t) filter (state = 2 and steady)
                                  - {slack}, 0), 0) as block from segments group by node),
        sums as (select node, greatest(last - first - {slack}, 0) as short, last - first + {slack} as long,
                        coalesce(sure, 0) as sure, coalesce(may, {unseen}) as may, coalesce(block, 0) as block,
                        coalesce(out_sure, last - first - {unseen}) as out_sure,
                        coalesce(out_may, last - first) as out_may, first, may is null as quiet
                 from extent {'left ' if nodes is not None else ''}join times using (node)
                 left join block using (node) where {whose}),
        known as (select *, least(sure + out_may, long) as most_whole, greatest(may + out_sure, short) as least_whole
                  from sums where long > {slack})
        select first as t, node, null::bigint as value, sure / most_whole as low, least(may / least_whole, 1) as high,
               case when node in (from seen) and (high < {least!r} or low > {most!r} or (
                         (may - block) / least_whole < {least!r} and (sure + block) / most_whole > {most!r}))
                    then {FAILED}
                    when low < {least!r} or high > {most!r} then {UNDECIDED} else {OK} end::tinyint as state,
               case when quiet then '{SILENT if trace.fresh else 'start'}'
                    when high > low then (select min(cause) from g where {INNER} and g.node = known.node) end as why
        from known""")
    return _share_concluded(trace, rule, nodes, slack)


def _runs_of_states(slack: int) -> str:
    """SQL for ``times``: for how long each node is inside for sure, may be inside, and likewise ``out_sure`` and
    ``out_may`` for outside. The time between two edges is off by ``slack``, and edges of unknown times do not count.
    """
    took = f"sum(until - t) - {slack}"
    kinds = (("sure", "state = 1", f"greatest({took}, 0)"), ("may", "state <> 0", f"{took} + {2 * slack}"),
             ("out_sure", "state = 0", f"greatest({took}, 0)"), ("out_may", "state <> 1", f"{took} + {2 * slack}"))
    turns = ", ".join(f"sum((not ({of}))::int) over own as {name}_turn" for name, of, _ in kinds)
    runs = ", ".join(f"{name}_runs as (select node, sum(took) as {name} from (select node, {took} as took from turns "
                     f"where {of} group by node, {name}_turn) group by node)" for name, of, took in kinds)
    # The regular pairs are in times that are outside for sure without them, and leave one more of these.
    off = f"coalesce(r.may - 2 * {slack} * r.pairs, 0)"
    return f"""turns as (select *, {turns} from segments
                         window own as (partition by node order by t, until rows unbounded preceding)), {runs},
        times as (select node, coalesce(s.sure, 0) + coalesce(r.sure, 0) as sure,
                         coalesce(m.may, 0) + coalesce(r.may, 0) as may,
                         greatest(coalesce(out_sure, 0) - coalesce(r.may, 0), 0) as out_sure,
                         coalesce(out_may, 0) - {off} as out_may
                  from (select distinct node from segments) left join sure_runs as s using (node)
                  left join may_runs as m using (node) left join out_sure_runs using (node)
                  left join out_may_runs using (node) left join regular as r using (node))"""


def _share_concluded(trace: Trace, rule: Rule, nodes: list[int] | None, slack: int) -> Judged:
    rows = trace.db.execute(f"select node, low, high from judged order by state = {FAILED} desc, state desc, "
                            "high - low desc, node limit 1").fetchall()
    notes = [f"node {node}: {100 * low:.3g} to {100 * high:.3g} %" for node, low, high in rows]
    lost = "g.node not in (select node from judged)" if nodes is None else "false"
    instances = count_of(trace, "select count(*) from judged where node in (from seen)")
    return conclude(trace, rule, hides=f"{INNER} and {lost}", slack=slack, notes=notes, instances=instances,
                    scoped=True)


def _share_inside(trace: Trace, rule: Rule) -> Judged:
    """Like :func:`share`, but of the time in the rule's scope."""
    slack = max(trace.slack(True), margin(trace, rule))
    nodes = trace.nodes_of([*rule.events["begin"], *rule.events["end"]])
    whose = "true" if nodes is None else f"node in ({', '.join(map(str, nodes))})"
    state = 0 if trace.fresh else 2
    unseen = "" if nodes is None else (f"union all select node, first, last, {state}, true from extent where {whose} "
                                       "and node not in (select node from segments)")
    trace.db.execute(f"""create or replace temp table states as
        select node, t, until, state, steady from segments where {whose} {unseen}""")
    portions(trace, rule, "states", slack)
    return _share_concluded(trace, rule, nodes, slack)


def exclusion(trace: Trace, rule: Rule) -> Judged:
    """Spans of different groups never overlap; with one group, spans of different nodes."""
    events = list(rule.events["spans"])
    pairs = [(events[k], events[k + 1]) for k in range(0, len(events), 2)]
    groups, lined, merged = [], trace.lines(rule), []
    slack = max(trace.slack(False, events), margin(trace, rule))
    for lane, (begin, end) in enumerate(pairs):
        if lined is None:
            trace.select(f"begins_{lane}", rule, "spans", [begin])
            trace.select(f"ends_{lane}", rule, "spans", [end])
        trace.gaps([begin, end])
        merged.append(trace.gap_rows("select node, lo, hi from gn order by node, lo") if lined is not None else {})
        trace.db.execute(f"create or replace temp table gaps_{lane} as select * from g where {INNER}")
        groups.append((f"begins_{lane}", f"ends_{lane}"))
    trace.gaps(events)
    if lined is not None:
        lines = lined["spans"]
        separate(trace, [(lines[k], lines[k + 1]) for k in range(0, len(lines), 2)], merged,
                 [own.start for own in trace.nodes], slack)
    _states(trace, groups)
    whose = "lane" if len(pairs) > 1 else "node"
    for name, known, by in (("sure", "1", slack), ("may", "1, 2", -slack)):
        # Lanes that are inside at each time, in halves of a picosecond: each edge is moved by half the slack. Ends come
        # before begins of the same time.
        scopes, node, whole, enough = "", "", "", "lanes > 1"
        if rule.scope is not None:
            # The scope is a lane that is inside while it applies, and that all overlaps need.
            runs(trace, rule, "scope_runs", known)
            scopes = "".join(f"union all select -1, 0, 2 * {edge} {sign} {by}, {sign}1 from scope_runs "
                             f"where hi - lo > {by} " for edge, sign in ((f"greatest(lo, -{ENDLESS})", "+"),
                                                                         (f"least(hi, {ENDLESS})", "-")))
            whole = (", sum(if(lane < 0, step, null)) over (order by t, step, lane rows unbounded preceding) as scoped")
            node = (" replace (last_value(if(lane >= 0 and step > 0, node, null) ignore nulls)"
                     " over (order by t, step, lane rows unbounded preceding) as node)")
            enough = "lanes > 2 and scoped > 0"
        trace.db.execute(f"""create or replace temp table {name} as
            with inside as (select {whose} as lane, node, 2 * t + {by} as t, 2 * until - {by} as until
                            from segments
                            where state in ({known}) and 2 * until - {by} > 2 * t + {by}),
            edges as (select lane, node, t, 1 as step from inside union all select lane, node, until, -1 from inside
                      {scopes}),
            summed as (select *, sum(step) over (partition by lane order by t, step, node rows unbounded preceding)
                                 as depth from edges),
            turns as (select lane, node, t, step from summed where depth = (step + 1) // 2),
            active as (select *{node}, sum(step) over (order by t, step, lane rows unbounded preceding) as lanes{whole}
                       from turns)
            select (t - {by}) // 2 as t, node from active where step = 1 and {enough}""")
    trace.db.execute(f"""create or replace temp table judged as
        select t, node, null::bigint as value, {FAILED}::tinyint as state, null::varchar as why from sure union all
        select t, node, null, {UNDECIDED}::tinyint, (select min(cause) from g where {INNER}) from may
        where (t, node) not in (select t, node from sure)""")
    spans = sum(count_of(trace, f"select count(*) from {begins}") for begins, _ in groups) if lined is None else sum(
        len(line) for begins in lined["spans"][::2] for line in begins)
    return conclude(trace, rule, slack=slack, instances=spans, scoped=True)
