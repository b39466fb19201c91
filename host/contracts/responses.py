"""Rules of kinds ``response``, ``precedence`` and ``absence``: an event, and another one within a time of it.

``response`` requires an event B within a time after each A. ``precedence`` is its mirror image in time. ``absence``
with ``after`` requires that there is no such B; ``absence`` with ``between`` is about the last B or C before each A.
"""

from dataclasses import dataclass

import numpy as np
from hypermon.host.contracts.judged import FAILED, INNER, OK, UNDECIDED, Judged, conclude, count_of
from hypermon.host.contracts.lines.answers import Reach, answered, between, mirrored, next_to_gaps, span_of_gaps
from hypermon.host.contracts.lines.line import NOTHING, Lines, Sieved
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import ENDLESS, Trace

__all__ = ["absence", "precedence", "response"]

_UNMIRRORED = "create or replace temp table judged as select * replace (-t as t) from judged"


def response(trace: Trace, rule: Rule) -> Judged:
    """After each ``after``, an ``expect`` comes within ``min`` to ``max``."""
    least, most = rule.ps("min") or 0, rule.ps("max")
    pair = _prepare(trace, rule, "after", "expect")
    slack, sieved = _match(trace, rule, pair, least, ENDLESS if most is None else most)
    return _concluded(trace, rule, pair, least, ENDLESS if most is None else most, slack, sieved)


def precedence(trace: Trace, rule: Rule) -> Judged:
    """Before each ``event``, a ``needs`` came, at most ``within`` earlier."""
    most = rule.ps("within")
    pair = _prepare(trace, rule, "event", "needs", mirror=True)
    slack, sieved = _match(trace, rule, pair, 0, ENDLESS if most is None else most)
    return _concluded(trace, rule, pair, 0, ENDLESS if most is None else most, slack, sieved)


def absence(trace: Trace, rule: Rule) -> Judged:
    """There is no ``event``; or none between two events; or none ``within`` a time after an event."""
    if "between" in rule.events:
        return _between(trace, rule)
    if "after" in rule.events:
        return _none_after(trace, rule)
    events, lines = rule.events["event"], trace.lines(rule)
    if lines is None:
        trace.select("a", rule, "event", events)
    else:
        own = lines["event"][0]
        trace.give("a", t=np.concatenate(own), node=np.repeat(np.arange(len(own), dtype=np.int16), list(map(len, own))))
    trace.gaps(events)
    trace.db.execute(f"create or replace temp table judged as select t, node, null::bigint as value, "
                     f"{FAILED} as state, null::varchar as why from a")
    return conclude(trace, rule, hides=INNER, vacuous=True)


@dataclass(frozen=True)
class _Pair:
    """The two kinds of events of a rule: the keys that name them, and their lines.

    If it is mirrored, all times are negated, so that before means after. Without lines, the tables ``a`` and ``b`` have
    the events.
    """

    trigger: str
    wanted: str
    mirrored: bool
    asked: Lines | None = None
    answers: Lines | None = None


def _prepare(trace: Trace, rule: Rule, trigger: str, wanted: str, mirror: bool = False) -> _Pair:
    lines = trace.lines(rule)
    if lines is not None:
        pair = lines[trigger][0], lines[wanted][0]
        return _Pair(trigger, wanted, mirror, *(map(mirrored, pair) if mirror else pair))
    trace.select("a", rule, trigger, rule.events[trigger])
    trace.select("b", rule, wanted, rule.events[wanted])
    return _Pair(trigger, wanted, mirror)


def _alone(trace: Trace, rule: Rule, *keys: str) -> bool:
    """The events of a rule belong to one node each time: it says so, or there is only one node."""
    nodes = trace.nodes_of([event for key in keys for event in rule.events[key]])
    return rule.same_node or len(trace.nodes if nodes is None else nodes) == 1


def _match(trace: Trace, rule: Rule, pair: _Pair, least: int, most: int) -> tuple[int, Sieved]:
    """Creates ``judged``: whether each trigger has an event that is wanted from ``least`` to ``most`` after it.

    Returns the slack, and what is not in ``judged``.
    """
    trigger, wanted = pair.trigger, pair.wanted
    trace.gaps(rule.events[wanted])
    if pair.mirrored:
        for table in ("a", "b") if pair.asked is None else ():
            trace.db.execute(f"create or replace temp table {table} as select * replace (-t as t) from {table}")
        for table in ("g", "gn", "gm"):
            trace.db.execute(f"update {table} set lo = -hi, hi = -lo")
    events = [*rule.events[trigger], *rule.events[wanted]]
    own = trace.slack(True)
    alone = _alone(trace, rule, trigger, wanted)
    slack = own if alone else trace.slack(False, events)
    reach = Reach(least, most, own, slack, alone, rule.kind == "absence")
    first, after_own, sieved = reach.first, reach.after_own, NOTHING
    if pair.asked is not None and pair.answers is not None:
        sieved = answered(trace, pair.asked, pair.answers, reach)
    elif alone:
        certain, more = ("may", "") if first == after_own else ("sure", _first("sure", after_own, node=True))
        trace.db.execute(f"""create or replace temp table staged as
            select a.t, a.node, a.key, may.t - a.t as value, coalesce(may.t <= a.t + {most + own}, false) as may,
                   coalesce({certain}.t <= a.t + {most - own}, false) as sure
            from a {_first("may", first, node=True)} {more}""")
    if alone:
        _judge_rest(trace, may="", is_may="a.may",
                    gap=f"asof left join gn as gap on gap.node = a.node and gap.lo <= a.t + {most + own}",
                    is_gap=f"gap.hi >= a.t + {first}")
        return own, sieved
    low, high = least - slack, most + slack
    is_gap, gap = f"gap.hi >= a.t + {low}", f"asof left join gm as gap on gap.lo <= a.t + {high}"
    if pair.asked is not None:
        _judge_rest(trace, may="", is_may="a.may", is_gap=is_gap, gap=gap)
        return slack, sieved
    # Mostly the next event is an answer beyond doubt, and others need not be looked for.
    trace.db.execute(f"""create or replace temp table nexts as
        select a.t, a.node, a.key, next.t - a.t as value,
               coalesce(next.t between a.t + {least + slack} and a.t + {most - slack}, false) as sure
        from a {_first("next", max(least, 1), node=False)}""")
    trace.db.execute(f"""create or replace temp table staged as
        select a.t, a.node, a.key, a.value,
               coalesce(sure.t <= a.t + {most - slack}, false) or coalesce(own.t <= a.t + {most - own}, false) as sure
        from (from nexts where not sure) as a {_first("own", after_own, node=True)}
        {_first("sure", least + slack, node=False)}
        union all from nexts where sure""")
    counted = low <= 0
    may = (f"""asof left join counts as n2 on n2.key = a.key and n2.t <= a.t + {high}
               asof left join counts as n1 on n1.key = a.key and n1.t <= a.t + {low - 1}
               asof left join counts_own as o2 on o2.key = a.key and o2.node = a.node and o2.t <= a.t
               asof left join counts_own as o1 on o1.key = a.key and o1.node = a.node and o1.t <= a.t + {low - 1}
               """ if counted else _first("may", low, node=False))
    is_may = ("coalesce(n2.n, 0) - coalesce(n1.n, 0) > coalesce(o2.n, 0) - coalesce(o1.n, 0)" if counted
              else f"may.t <= a.t + {high}")
    _judge_rest(trace, counted=counted, may=may, is_may=is_may, is_gap=is_gap, gap=gap)
    return slack, sieved


def _first(name: str, after: int, node: bool) -> str:
    """Joins the first row of ``b`` at least that long after a row of ``a``."""
    same = f" and {name}.node = a.node" if node else ""
    return f"asof left join b as {name} on {name}.key = a.key{same} and {name}.t >= a.t + {after}\n"


def _counts(trace: Trace) -> None:
    """Tables of how many rows of ``b`` there are up to a time: of a key, and of a key and a node."""
    for name, by in (("counts", "key"), ("counts_own", "key, node")):
        trace.db.execute(f"""create or replace temp table {name} as
            select {by}, t, sum(count(*)) over (partition by {by} order by t rows unbounded preceding)::bigint as n
            from b where exists (from a) group by {by}, t""")


def _judge_rest(trace: Trace, *, may: str, is_may: str, gap: str, is_gap: str, counted: bool = False) -> None:
    """Creates ``judged`` from ``staged``. What is possible is asked only for what is not certain."""
    trace.db.execute("create or replace temp table a as from staged where not sure")
    if counted:
        _counts(trace)
    trace.db.execute(f"""create or replace temp table judged as
        select a.t, a.node, a.value,
               case when {is_may} or {is_gap} then {UNDECIDED} else {FAILED} end::tinyint as state,
               case when {is_gap} then gap.cause end as why
        from a
        {may}
        {gap}
        union all select t, node, value, {OK}, null from staged where sure""")


def _concluded(trace: Trace, rule: Rule, pair: _Pair, least: int, most: int, slack: int, sieved: Sieved) -> Judged:
    """Lost triggers have to be answered as well, by one event for all times at which they may have been."""
    if trace.brief:
        if pair.mirrored:
            trace.db.execute(_UNMIRRORED)
        return conclude(trace, rule)
    alone = _alone(trace, rule, pair.trigger, pair.wanted)
    trace.db.execute("create or replace temp table wanted as from g")
    trace.gaps(rule.events[pair.trigger])
    if pair.mirrored:
        trace.db.execute("update g set lo = -hi, hi = -lo")
    if rule.key:
        trace.db.execute("create or replace temp table hiding as from g where " + INNER)
    else:
        early = 1 if alone and not least else max(least + slack, 1)
        same = " and b.node = h.node" if alone else ""
        joined = f"asof left join b on b.key = 0::bigint{same} and b.t >= h.hi + {early}"
        if pair.answers is not None:
            next_to_gaps(trace, "nexts", INNER, pair.answers, "hi", early, alone)
            joined = "join nexts as b using (id)"
        trace.db.execute(f"""create or replace temp table hiding as
            select h.* from (from g where {INNER}) as h {joined}
            where b.t is null or b.t > h.lo + {most - slack}""")
    if pair.mirrored:
        trace.db.execute("update hiding set lo = -hi, hi = -lo")
        trace.db.execute(_UNMIRRORED)
        trace.db.execute("update wanted set lo = -hi, hi = -lo")
    trace.db.execute("""create or replace temp table g as
        select *, true as hides from hiding union all select *, false from wanted""")
    return conclude(trace, rule, hides="hides", slack=slack, sieved=sieved)


def _none_after(trace: Trace, rule: Rule) -> Judged:
    """No ``event`` within a time after ``after``: the response that must not come."""
    within = rule.ps("within") or 0
    pair = _prepare(trace, rule, "after", "event")
    slack, sieved = _match(trace, rule, pair, 0, within)
    trace.db.execute(f"update judged set state = case state when {OK} then {FAILED} when {FAILED} then {OK} "
                     f"else {UNDECIDED} end")
    if trace.brief:
        return conclude(trace, rule)
    trace.db.execute(f"update judged set value = null where state <> {FAILED}")
    trace.db.execute("create or replace temp table wanted as from g")
    triggers, both = rule.events["after"], [*rule.events["after"], *rule.events["event"]]
    trace.gaps(both)
    nodes = trace.nodes_of(triggers)
    mine = "true" if nodes is None else f"node in ({', '.join(map(str, nodes))})"
    joined = ("asof left join (select 0 as one, t from b) as b on b.one = mine.node * 0 "
              f"and b.t >= mine.lo - {slack}")
    if pair.answers is not None:
        next_to_gaps(trace, "nexts", "true", pair.answers, "lo", -slack, False)
        joined = "join nexts as b using (id)"
    # A lost trigger matters if an event follows that was seen, that was lost, too, or that comes after the end.
    trace.db.execute(f"""create or replace temp table g as
        with near as (select *, lead(lo) over (order by lo, hi) as later, max(hi) over (order by lo, hi
                      rows between unbounded preceding and 1 preceding) as earlier from g),
        mine as (from near where {INNER} and {mine}),
        seen as (select mine.*, b.t as found from mine {joined})
        select id, node, lo, hi, n, cause, true as hides from seen
        where found <= hi + {within + slack} or n > 1 or later <= hi + {within + slack} or earlier >= lo - {slack}
        union all select *, false from wanted""")
    return conclude(trace, rule, hides="hides", slack=slack, vacuous=True, sieved=sieved)


def _between(trace: Trace, rule: Rule) -> Judged:
    """No ``event`` after a B that a C follows, if none came in between."""
    begin, end = rule.events["between"]
    lines = trace.lines(rule)
    if lines is None:
        trace.select("a", rule, "event", rule.events["event"])
        trace.select("b", rule, "between", [begin])
        trace.select("c", rule, "between", [end])
    same = _alone(trace, rule, "event", "between")
    every: list[Event] = [*rule.events["event"], begin, end]
    slack = trace.slack(same, every)
    step = 1 if same else slack + 1
    trace.gaps([begin])
    trace.db.execute("create or replace temp table gb as from gn" if same else
                     "create or replace temp table gb as select 0 as node, * from gm")
    trace.gaps([end])
    trace.db.execute("create or replace temp table gc as from gn" if same else
                     "create or replace temp table gc as select 0 as node, * from gm")
    # An event is inside for sure if a B came before it, and between the two no C can have come, but one comes later;
    # it is outside for sure if a C came before it, and after that no B can have come. What was lost less than
    # ``step`` before an event may have come after it.
    own = "and {0}.node = a.node" if same else ""
    gap = "{0}.node = a.node" if same else "{0}.node = a.node * 0"
    sides = (("b_sure", "b", "<=", f"- {step}"), ("b_may", "b", "<=", f"+ {0 if same else step - 1}"),
             ("c_sure", "c", "<=", f"- {step}"), ("c_may", "c", "<=", f"+ {0 if same else step - 1}"),
             ("c_next", "c", ">=", f"+ {step}"))
    joins = "".join(
        f"asof left join {table} as {name} on {name}.key = a.key {own.format(name)} and {name}.t {way} a.t {by}\n"
        for name, table, way, by in sides)
    staged = f"select a.t, a.node, {', '.join(f'{name}.t as {name}' for name, *_ in sides)} from a {joins}"
    sieved = NOTHING
    opened: Lines = ()
    closed: Lines = ()
    if lines is not None:
        staged, [opened, closed] = "from staged", lines["between"]
        sieved = between(trace, lines["event"][0], opened, closed, step, same)
    trace.db.execute(f"""create or replace temp table judged as
        select a.t, a.node, null::bigint as value,
               case when b_sure is not null and c_next is not null
                         and (c_may is null or c_may <= b_sure - {step})
                         and not coalesce(no_c.hi > b_sure - {step}, false) then {FAILED}
                    when c_sure is not null and (b_may is null or b_may <= c_sure - {step})
                         and not coalesce(no_b.hi > c_sure - {step}, false) then {OK}
                    when b_may is null and no_b.hi is null then {OK}
                    else {UNDECIDED} end::tinyint as state,
               case when no_c.hi > coalesce(b_sure, a.t) - {step} then no_c.cause
                    when no_b.hi > coalesce(c_sure, no_b.hi) - {step} then no_b.cause
                    when c_next is null then 'end' end as why
        from ({staged}) as a
        asof left join gc as no_c on {gap.format('no_c')} and no_c.lo <= a.t + {step}
        asof left join gb as no_b on {gap.format('no_b')} and no_b.lo <= a.t + {step}""")
    if trace.brief:
        return conclude(trace, rule)
    scopes = count_of(trace, "select count(*) from b") if lines is None else sum(map(len, opened))
    trace.gaps(rule.events["event"])
    trace.db.execute(f"create or replace temp table hiding as from g where {INNER}")
    trace.gaps(every)
    # A lost event is outside for sure only if the same holds for all times at which it may have been.
    if not rule.key:
        same_h = "and {0}.node = h.node" if same else ""
        gap_h = "{0}.node = h.node" if same else "{0}.node = h.node * 0"
        beside = f"""
            asof left join (select *, t as c_sure from c) as last_c
                on last_c.key = h.node * 0 {same_h.format('last_c')} and last_c.t <= h.lo - {step}
            asof left join (select *, t as b_may from b) as last_b
                on last_b.key = h.node * 0 {same_h.format('last_b')} and last_b.t <= h.hi + {step}"""
        if lines is not None:
            span_of_gaps(trace, opened, closed, step, same)
            beside = "join edges using (id)"
        trace.db.execute(f"""create or replace temp table hiding as
            select h.* from hiding as h {beside}
            asof left join gb as no_b on {gap_h.format('no_b')} and no_b.lo < h.lo
            asof left join gb as at_b on {gap_h.format('at_b')} and at_b.lo <= h.hi + {step}
            where c_sure is null or b_may > c_sure - {step} or no_b.hi > c_sure - {step}
                  or (at_b.hi > c_sure - {step} and (h.n > 1 or at_b.lo <> h.lo or at_b.hi <> h.hi))""")
    trace.db.execute("create or replace temp table g as select *, true as hides from hiding "
                     f"union all select *, false from g where {INNER} or cause in ('start', 'end')")
    return conclude(trace, rule, hides="hides", slack=slack, instances=scopes, vacuous=True, sieved=sieved)
