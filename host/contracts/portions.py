"""The share of a state in the time of a scope: bounds on what it may be, whatever was lost and however late stamps are.

The rule holds for a node if i - r w is at most 0 for the maximum r, and at least 0 for the minimum r, where w is the
time in the scope, and i the part of it inside. Both bounds of i - r w are sums over the *zones* of the scope:

0, off: nothing counts.
1, on: an unknown state is inside for the upper bound, and outside for the lower one.
2, on or off at any time, because an item was lost there, or the order of two edges is not certain: what makes the sum
   more extreme counts, nothing else does.
3, all on or all off: nothing was lost in it, and the scope is not known. All of it counts, or nothing.

A true time is up to the slack after its stamp. The times are moved there from their stamps one after the other, the
last one first, so that those of a node stay in order. A zone's part of the sum then rises by no more than what is
passed on the way: while its end moves, by what is extreme; while its begin moves, by what is not; and while a time
moves at which the node leaves the extreme state, by all of it. Edges with an earlier stamp are still at it, and enter
a zone later by as much as they can pass its begin.

The recording begins and ends at times of their own, as late as a stamp may be. An edge of the node with the first or
the last stamp may come before it, or after it, even where the order of all events is certain. So the state before an
edge with the first stamp counts, and that after one with the last stamp, though neither has a length by the stamps. Of
what is passed at such an edge, each moment makes the sum larger or the time in the scope smaller, not both.
"""

from hypermon.host.contracts.judged import SILENT
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.scopes import exact, prepare
from hypermon.host.contracts.trace import FAILED, FAR, INNER, OK, UNDECIDED, Trace

__all__ = ["portions"]

def portions(trace: Trace, rule: Rule, table: str, slack: int) -> None:
    """Creates ``judged``: ``t``, ``node``, ``value``, ``state``, ``why``; and the node's share is from ``low`` to
    ``high``. A node that is not in the table ``seen`` may have written none of the events, and then the rule is not
    about it.

    Parameters
    ----------
    table : states of nodes within the recording: ``node``, ``t``, ``until``, ``state`` (0 outside, 1 inside, 2 not
        known), and ``steady``: it does not change.
    slack : by how much the difference of two times may be off.
    """
    prepare(trace, rule)
    ordered = exact(trace, rule)
    _pieces(trace, rule, table)
    if not ordered:
        _crowds(trace, slack)
    least, most = (float(rule.values.get(name, default)) for name, default in (("min", 0.0), ("max", 1.0)))
    bounds = ", ".join(f"coalesce(sum({name}) filter (kind in (1, 2) or {kept}), 0)::double as {name}_{limit}"
                       for high in (True, False) for limit, kept in (("most", _better(high, most)),
                                                                     ("least", _better(high, least)))
                       for name in (("ih", "wh") if high else ("il", "wl")))
    # A time that is all inside or all outside may be too much and too little, and nothing in between.
    trace.db.execute(f"""create or replace temp table judged as
        with zones as ({_zones(slack, ordered)}),
        blocks as (select node, max(took) as block from (
                       select node, part, sum(greatest(until - t - {slack}, 0)) as took from pieces
                       where kind = 1 and state = 2 and steady group by node, part) group by node),
        sums as (select node, {bounds}, {_sum('ih')} as in_may, {_sum('wh - ih', 1)} as out_sure,
                        {_sum('il', 1)} as in_sure, {_sum('wl - il')} as out_may
                 from zones group by node),
        known as (select *, node in (from seen) as seen,
                         {_is('il_least', 'wl_least', '>=', least)} or {least <= 0} as enough,
                         {_is('ih_most', 'wh_most', '<=', most)} or {most >= 1} as little,
                         {_is('ih_least', 'wh_least', '<', least)} as too_little,
                         {_is('il_most', 'wl_most', '>', most)} as too_much,
                         {_is('ih_least - coalesce(block, 0)', 'wh_least', '<', least)}
                         and {_is('il_most + coalesce(block, 0)', 'wl_most', '>', most)} as either
                  from sums left join blocks using (node))
        select first as t, node, null::bigint as value,
               case when seen and (too_little or too_much or either) then {FAILED} when enough and little then {OK}
                    else {UNDECIDED} end::tinyint as state,
               coalesce((select min(cause) from g where {INNER} and g.node = known.node),
                        if(seen, null, '{SILENT if trace.fresh else 'start'}')) as why,
               greatest(if(in_sure > 0, in_sure / (in_sure + out_may), 0), if(enough, {least!r}, 0),
                        if(too_much, {most!r}, 0)) as low,
               least(if(out_sure > 0, in_may / (in_may + out_sure), if(in_may > 0, 1, 0)), if(little, {most!r}, 1),
                     if(too_little, {least!r}, 1)) as high
        from known join extent using (node)""")


def _pieces(trace: Trace, rule: Rule, table: str) -> None:
    """Creates ``pieces``: from each edge of a node's state or its scope (``t``) to the next one (``until``).

    ``opens``, ``closes``: a zone begins and ends with it; ``starts``: the recording begins with it; ``ends_all``: its
    zone ends with the recording. ``prior``, ``next_state``: the state before it, and at the begin of the next piece.
    The last piece of a node has zone :data:`FAR`, no length, and the state after the last edge.
    """
    lane = "e.node" if rule.scope is not None and rule.scope.same_node else "0"
    trace.db.execute(f"""create or replace temp table zone_begins as
        with cells as (select lane, t, lead(t, 1, {FAR}) over (partition by lane order by t) as until,
                              if(state = 2 and steady, 3, state) as kind, coalesce(owner, -1) as owner
                       from scope_cells),
        turned as (select *, kind = 3 or kind is distinct from lag(kind) over (partition by lane order by t) as fresh
                   from cells),
        turns as (select *, sum(fresh::int) over (partition by lane order by t rows unbounded preceding)::bigint as zone
                  from turned),
        merged as (select lane, zone, min(t) as t, max(until) as until, any_value(kind) as kind,
                          min_by(owner, t) as owner from turns group by lane, zone),
        zones as (select *, lag(kind) over own as prev_kind, lead(kind) over own as next_kind,
                         lead(owner) over own as next_owner
                  from merged window own as (partition by lane order by zone)),
        nodes as (from extent where node in (select node from {table}))
        select e.node, greatest(t, first) as t, least(until, last) as until, zone, kind, owner, t < first as starts,
               t = first as follows, until > last as ends_all, if(starts, null, prev_kind) as prev_kind,
               if(ends_all, 0, next_kind) as next_kind, if(ends_all, -1, next_owner) as next_owner
        from nodes as e join zones on lane = {lane} and t <= last and until >= first
        union all select node, last, last, {FAR}, 0, -1, false, true, true, 0, 0, -1 from nodes""")
    # States with no length do not count, but for the one before the first edge, and the one after the last edge. Where
    # an edge of the state and one of a zone have the same stamp, the zone's edge begins a piece.
    trace.db.execute(f"""create or replace temp table pieces as
        with borns as (select node, min_by(state, until) as born from {table} join extent using (node) where t = first
                       group by node),
        kept as (select node, t, until, state, steady from {table} where until > t
                 union all select node, t, t, max(state), true from {table} join extent using (node)
                           where until = t and t = last group by node, t),
        own_states as (select kept.*, last, coalesce(lag(state) over own, born) as prior,
                              lead(state, 1, state) over own as later
                       from kept join borns using (node) join extent using (node)
                       window own as (partition by node order by t)),
        points as (
            select s.node, s.t, s.t as part, s.until as stop, state, steady, prior, later, z.until as zone_until, zone,
                   kind, owner, false as opens, false as starts, ends_all, prev_kind, next_kind, next_owner
            from own_states as s asof join (from zone_begins where until > t) as z on z.node = s.node and z.t <= s.t
            where z.t < s.t and s.t < last
            union all
            select z.node, z.t, s.t, s.until, state, steady, if(s.t = z.t and not follows, prior, state), later,
                   z.until, zone, kind, owner, true, starts, ends_all, prev_kind, next_kind, next_owner
            from zone_begins as z asof join own_states as s on s.node = z.node and s.t <= z.t)
        select * exclude (stop, later, zone_until), least(stop, zone_until) as until, zone_until <= stop as closes,
               if(zone_until = stop, later, state) as next_state
        from points""")


def _crowds(trace: Trace, slack: int) -> None:
    """Creates ``crowd``, the times of edges of nodes that are at most the slack from another one, and ``crowds``, these
    and the next ones before and after them."""
    trace.db.execute(f"""create or replace temp table crowd as
        select node, t from pieces where until - t <= {slack} union select node, until from pieces
        where until - t <= {slack}""")
    trace.db.execute("""create or replace temp table crowds as
        with own as (select node, t, until from pieces
                     where (node, t) in (from crowd) or (node, until) in (from crowd))
        select node, t from own union select node, until from own""")


def _better(high: bool, limit: float) -> str:
    """Whether a zone makes the sum more extreme."""
    return f"ih - {limit!r} * wh > 0" if high else f"il - {limit!r} * wl < 0"


def _sum(value: str, kind: int = 0) -> str:
    """The sum of what is not negative; of zones of one kind, if it is given."""
    which = f" filter (kind = {kind})" if kind else ""
    return f"coalesce(sum(greatest({value}, 0)){which}, 0)::double"


def _is(inside: str, whole: str, sign: str, limit: float) -> str:
    """Whether i {sign} r w: as a ratio, which is rounded as the limit is. If w is negative, r w is from w to 0."""
    bound = whole if sign.startswith("<") else 0
    return f"if({whole} > 0, ({inside}) / {whole} {sign} {limit!r}, {inside} {sign} {bound})"


def _zones(slack: int, ordered: bool) -> str:
    """SQL: for each zone of ``pieces``, how long the node is inside, and the whole: the pair (``ih``, ``wh``) for which
    i - r w is largest, and (``il``, ``wl``) for which it is least, for any r from 0 to 1.

    ordered : the order of the edges of states and scopes is certain.
    """
    # A zone of kind 2 begins when an item may have been lost, or the first of two edges may have come, at the earliest:
    # no edge moves. It has ended when the last item that was lost has come, at the latest (scopes add the slack; they
    # add none where the order is certain, and there, one edge ends this zone and begins the next one).
    fixed = "next_kind <> 2" + ("" if ordered else " and not (kind = 2 and next_kind = 3)")
    begins = "" if ordered else " and not (kind = 3 and prev_kind = 2)"
    sums = []
    for name, high in (("h", 1), ("l", 0)):
        y, before, sign = f"y_{name}", f"before_{name}", 1 if high else -1
        late = f"(opens and other_{name} and not (starts and {before}){begins})::int * {slack}"
        grown = f"(closes and near_{name} and {fixed})::int * {slack}"
        if ordered:
            grown = f"({grown} - (opens and {before} and {y} and kind = 3 and prev_kind = 2)::int * {slack})"
        ended = f"if(opens, entered_{name}, ({before} and not {y})::int * {slack})"
        sums.append(f"""sum(if(kind = 2, {high} * (took * {y}::int + {grown} + {ended}),
                   took * if({y}, {high}, {1 - high}) + {high} * {grown} - {1 - high} * {late} + {sign} * {ended}))
                   as i{name},
               sum(if(kind = 2, took * {y}::int + {grown} + {ended}, took + {grown} - {late})) as w{name}""")
    return f"""select node, zone, kind, {', '.join(sums)} from ({_beside(slack, ordered)}) where kind <> 0
               group by node, zone, kind"""


def _beside(slack: int, ordered: bool) -> str:
    """SQL: ``pieces`` with what is passed while the edges of zones move, for either bound: whether the end of the zone
    may pass what is extreme (``near``), and its begin what is not (``other``), and how much ``entered``.

    Edges before the moving one are still at their stamps. They may follow later, as far as they can pass it; what a
    zone that is on had of their time was counted there. The order of the edges of a node and of its own scope, or of a
    scope that it owns, is certain.
    """
    ends = "(ends_all and {})" if ordered else "(next_owner <> node and {})"
    found: dict[str, list[str]] = {name: [] for name in ("known", "calm", "windows", "crowded")}
    for name, extreme in (("h", "{} <> 0"), ("l", "{} <> 1")):
        y, before, after = (extreme.format(state) for state in ("state", "prior", "next_state"))
        enters = f"(before_{name} and not y_{name} and (kind <> 1 or opens))::int"
        entered = f"if({'starts' if ordered else 'owner <> node'}, {enters} * {slack}, 0)"
        own = "partition by node order by t range between"
        soon, past = f"{own} current row and {max(slack - 1, 0)} following", f"{own} {slack} preceding and current row"
        found["known"].append(f"{y} as y_{name}, {before} as before_{name}, {after} as after_{name}")
        found["calm"].append(f"y_{name} or {ends.format(f'after_{name}')} as near_{name}, "
                             f"not y_{name} as other_{name}, {entered} as entered_{name}")
        found["windows"].append(f"bool_or(y_{name}) over ({soon}) as soon_{name}, "
                                f"bool_or(not y_{name}) over ({soon}) as not_soon_{name}, "
                                f"sum({enters} * (t + {slack})) over ({past}) - t * sum({enters}) over ({past}) "
                                f"as past_{name}")
        found["crowded"].append(f"y_{name} or {ends.format(f'lead(soon_{name}) over own')} as near_{name}, "
                                f"if(owner = node, not y_{name}, not_soon_{name}) as other_{name}, "
                                f"if(owner = node, 0, past_{name}) as entered_{name}")
    texts = {name: ", ".join(parts) for name, parts in found.items()}
    kept = ", ".join(("node", "until - t as took", "zone", "kind", "starts", "opens", "closes", "prev_kind",
                      "next_kind", "y_h", "y_l", "before_h", "before_l"))
    if ordered:
        return f"select {kept}, {texts['calm']} from (select *, {texts['known']} from pieces)"
    # The windows take long, and few pieces need them.
    near = "((node, t) in (from crowd) or (node, until) in (from crowd))"
    return f"""select {kept}, {texts['calm']} from (select *, {texts['known']} from pieces where not {near})
        union all
        select * exclude (crowded) from (
            select {kept}, {texts['crowded']}, {near} as crowded
            from (select *, {texts['windows']} from (select *, {texts['known']} from pieces
                  where (node, t) in (from crowds) or (node, until) in (from crowds)))
            window own as (partition by node order by t, zone))
        where crowded"""
