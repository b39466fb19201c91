"""Figures of an interval of a run: items, rates, shares of states, latencies of messages, losses."""

from collections.abc import Sequence
from typing import Any

from hypermon.host.decode.table_files import event_files
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.recording.parts import PARTS
from hypermon.host.view.bynode import NAMES_MOST, by_node, named_nodes, of_nodes
from hypermon.host.view.picture import Pictures
from hypermon.host.view.search import counted

__all__ = ["statistics"]


def statistics(pictures: Pictures, from_ps: int, to_ps: int, only: Sequence[int] | None = None,
               text: str = "") -> dict[str, Any]:
    """Figures of what happened at ``from_ps`` or later, and before ``to_ps``, as plain values.

    Durations, rates and shares are of the part of the interval in which there is a recording.

    Parameters
    ----------
    only : of these nodes, and of the messages between them; None: of all.
    text : of a search, whose matches in the interval are counted.

    Returns
    -------
    dict
        ``from_ps``, ``to_ps``: of that part.
        ``nodes``: node, events, items, items lost within the interval. ``events``, ``items``, ``lost``: their sums.
        Without events of several items each, ``framed`` is false, and ``events`` are the items. ``edges``: items lost
        in outages that overlap an edge of the interval, which may or may not have been in it. ``states``: name, share
        of the time of all nodes that have states, how many there are. ``messages``: name, how many were sent in the
        interval and received, their shortest, median, 99 % and longest latency in picoseconds, and how many are in none
        of these, because a loss leaves open which of them were received. ``by_node``: as :func:`.by_node` returns it.
        ``of``: the number of these nodes, and of all. ``hits``: as :func:`.counted` returns them for ``text``, of these
        nodes; None without one.
    """
    tables, own = pictures.tables, of_nodes("node", only)
    within: dict[str, Any] = {"from": from_ps, "to": to_ps} | named_nodes(only)
    within_it = f"where time_ps >= $from and time_ps < $to{own} group by node"
    events: dict[int, int] = dict(tables.ask(f"select node, count(*) from items {within_it}", within))
    items = events
    if pictures.framed:
        files = [str(path) for path in event_files(pictures.run, pictures.account[PARTS])]
        items = dict(tables.ask(f"select node, count(*) from read_parquet($files, hive_partitioning=false) {within_it}",
                                {**within, "files": files}))
    lost, edges = dict[int, int](), 0
    for node, inside, beside in tables.ask(
            "select node, coalesce(sum(lost) filter (from_ps >= $from and to_ps <= $to), 0)::bigint, "
            "coalesce(sum(lost) filter (from_ps < $from or to_ps > $to), 0)::bigint from loss "
            f"where from_ps < $to and to_ps > $from{own} group by node", within):
        lost[node] = inside
        edges += beside
    nodes = sorted({*events, *items, *lost})
    hits = counted(pictures, text, from_ps, to_ps, only) if text else None
    states, messages = list[list[Any]](), list[list[Any]]()
    from_ps, to_ps = _recorded(pictures, from_ps, to_ps)
    if tables.stories:
        until = known_until(str(pictures.end_ps))
        states = [list(row) for row in tables.ask(
            f"select name, sum(least({until}, $to) - greatest(begin_ps, $from))::double "
            f"/ ({to_ps - from_ps}::double * (select greatest(count(distinct node), 1) from states where true{own})), "
            f"count(*) from states where begin_ps < $to and (end_ps is null or end_ps >= $from) and {until} > $from"
            f"{own} group by name order by 2 desc limit {NAMES_MOST}", within | {"from": from_ps, "to": to_ps})]
        known = "filter (lost_ps is null)"
        messages = [list(row) for row in tables.ask(
            f"select name, count(*) {known}, min(latency_ps) {known}, quantile_disc(latency_ps, 0.5) {known}, "
            f"quantile_disc(latency_ps, 0.99) {known}, max(latency_ps) {known}, count(lost_ps) from messages "
            "where sent_ps >= $from and sent_ps < $to and latency_ps is not null"
            f"{of_nodes('sender', only)}{of_nodes('receiver', only)} "
            f"group by name order by count(*) desc limit {NAMES_MOST}", within)]
    return {"from_ps": str(from_ps), "to_ps": str(to_ps), "framed": pictures.framed, "events": sum(events.values()),
            "items": sum(items.values()), "lost": sum(lost.values()), "edges": edges,
            "nodes": [[node, events.get(node, 0), items.get(node, 0), lost.get(node, 0)] for node in nodes],
            "states": states, "messages": messages, "stories": tables.stories,
            "by_node": by_node(pictures, from_ps, to_ps, only), "hits": hits,
            "of": [pictures.run.info.nodes if only is None else len(only), pictures.run.info.nodes]}


def _recorded(pictures: Pictures, from_ps: int, to_ps: int) -> tuple[int, int]:
    """The part of an interval in which there is a recording; of one beside it, all of it."""
    begin, end = pictures.extent
    low, high = max(from_ps, begin), min(to_ps, end)
    return (low, high) if low < high else (from_ps, to_ps)
