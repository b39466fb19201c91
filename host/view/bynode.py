"""The time of each node in each state of an interval, and the longest state, loss or unknown time of a node in it."""

from collections.abc import Sequence
from typing import Any

from hypermon.host.dictionary.semantics import known_until
from hypermon.host.errors import HypermonError
from hypermon.host.view.picture import Pictures
from hypermon.host.view.search import Found

__all__ = ["KINDS", "NAMES_MOST", "NODES_MOST", "by_node", "longest", "named_nodes", "of_nodes"]

#: Names of states and nodes of a table, at most.
NAMES_MOST, NODES_MOST = 40, 256
#: What :func:`longest` finds.
KINDS = ("state", "loss", "unknown")
#: Before all times.
_NEVER = -2**62
#: States that overlap an interval.
_OVERLAP = "begin_ps < $to and (end_ps is null or end_ps >= $from) and {until} > $from"


def by_node(pictures: Pictures, from_ps: int, to_ps: int, only: Sequence[int] | None = None) -> dict[str, Any]:
    """The time of each node in each state, as plain values; the shares are those of :func:`.statistics`, per node.

    Parameters
    ----------
    only : these nodes; None: all.

    Returns
    -------
    dict
        ``names``: of the dictionary, in its order; of more than :data:`NAMES_MOST` those that took most time. ``out``:
        how many names are left out. ``nodes``: the first :data:`NODES_MOST`. ``cells``: node, number of the name,
        picoseconds; states that overlap add up. ``unknown``: node, picoseconds in which no state of it is known: from a
        loss, or from an event that was cut short and may be of a state, to the next beginning of a state.
    """
    tables = pictures.tables
    if not tables.stories:
        return {"names": [], "out": 0, "nodes": [], "cells": [], "unknown": []}
    nodes = list(range(pictures.run.info.nodes) if only is None else only)
    within: dict[str, Any] = {"from": from_ps, "to": to_ps}
    until = known_until(str(pictures.end_ps))
    rows = tables.ask(f"select node, name, sum(least({until}, $to) - greatest(begin_ps, $from))::double from states "
                      f"where {_OVERLAP.format(until=until)}{of_nodes('node', only)} group by node, name",
                      within | named_nodes(only))
    took = dict.fromkeys(_names(pictures), 0.0)
    for _, name, took_ps in rows:
        took[name] = took.get(name, 0.0) + took_ps
    kept = set(sorted(took, key=lambda name: -took[name])[:NAMES_MOST])
    nodes = nodes[:NODES_MOST]
    names, own = [name for name in took if name in kept], set(nodes)
    number = {name: k for k, name in enumerate(names)}
    unknown = tables.ask(f"select node, sum(to_ps - from_ps)::double from ({_unknown(until)}) group by node order by 1",
                         within)
    return {"names": names, "out": len(took) - len(names), "nodes": nodes,
            "cells": [[node, number[name], took_ps] for node, name, took_ps in rows
                      if name in number and node in own],
            "unknown": [list(row) for row in unknown if row[0] in own]}


def longest(pictures: Pictures, from_ps: int, to_ps: int, kind: str, node: int, name: str = "") -> Found | None:
    """The longest state of a name and node in an interval, loss, or time in which no state of the node is known.

    Only what is in the interval counts; of a loss, the whole outage must be.

    Raises
    ------
    HypermonError
        if the kind is none of :data:`KINDS`, or there are no states.
    """
    tables = pictures.tables
    values: dict[str, Any] = {"from": from_ps, "to": to_ps, "node": node}
    if kind not in KINDS:
        raise HypermonError(f"{kind[:40]!r} is not one of {', '.join(KINDS)}")
    if kind != "loss" and not tables.stories:
        raise HypermonError("this run has no states")
    until = known_until(str(pictures.end_ps))
    if kind == "state":
        values |= {"name": name}
        question = ("select begin_ps, node, name || coalesce(' ' || key, ''), end_ps, -1, 'state', false, false, "
                    f"lost_ps from states where {_OVERLAP.format(until=until)} and node = $node and name = $name "
                    f"order by least({until}, $to) - greatest(begin_ps, $from) desc, {until} - begin_ps desc, begin_ps")
    elif kind == "loss":
        question = ("select from_ps, node, 'lost ' || lost, to_ps, -1, 'loss' from loss where from_ps >= $from and "
                    "to_ps <= $to and node = $node order by to_ps - from_ps desc, from_ps")
    else:
        question = (f"select from_ps, node, 'no state is known', to_ps, -1, 'unknown' from ({_unknown(until)}) "
                    "where node = $node order by to_ps - from_ps desc, from_ps")
    return next((Found(*row) for row in tables.ask(f"{question} limit 1", values)), None)


def of_nodes(column: str, only: Sequence[int] | None) -> str:
    """A further condition: only these nodes; see :func:`named_nodes`."""
    return "" if only is None else f" and {column} in (select unnest($nodes::bigint[]))"


def named_nodes(only: Sequence[int] | None) -> dict[str, Any]:
    """The value of :func:`of_nodes`."""
    return {} if only is None else {"nodes": list(only)}


def _names(pictures: Pictures) -> list[str]:
    """The states of the dictionary, in its order, and any others that the tables have."""
    events = pictures.dictionary.events if pictures.dictionary is not None else ()
    given = [name for kind in events for name in (kind.begin, kind.end) if name is not None]
    return list(dict.fromkeys([*given, *pictures.tables.names]))


def _unknown(until: str) -> str:
    """A question: node, from and to of the times in an interval in which no state of the node is known.

    ``points`` : when something that may be of a state was lost. ``segments`` : from one beginning of a state to the
    next, and until when an earlier state is known to last. A segment is unknown from its first point on.
    """
    return f"""
        with points as (select node, from_ps as at_ps from loss where from_ps < $to union all
                        select node, lost_ps from states where lost_ps < $to),
        latest as (select node, max(begin_ps) as latest_ps from states where begin_ps <= $from group by node),
        begins as (select node, begin_ps, max({until}) as until_ps from states left join latest using (node)
                   where begin_ps < $to and ({until} > $from or begin_ps >= coalesce(latest_ps, {_NEVER}))
                   and node in (select node from points) group by node, begin_ps
                   union all select distinct node, {_NEVER}, {_NEVER} from points),
        segments as (select node, begin_ps, lead(begin_ps, 1, $to) over own as next_ps,
                     max(until_ps) over (own rows unbounded preceding) as known_ps from begins
                     window own as (partition by node order by begin_ps)),
        first as (select segments.node, begin_ps, any_value(next_ps) as next_ps, any_value(known_ps) as known_ps,
                  min(at_ps) as at_ps from points asof join segments
                  on points.node = segments.node and points.at_ps >= segments.begin_ps group by 1, 2)
        select node, greatest(at_ps, known_ps, $from) as from_ps, least(next_ps, $to) as to_ps from first
        where least(next_ps, $to) > greatest(at_ps, known_ps, $from)"""
