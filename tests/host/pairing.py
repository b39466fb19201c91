"""Beginnings and ends of one node's events put together, one by one: slow, obvious, and the oracle of the states."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from hypermon.host.export.brackets import Span

__all__ = ["Edge", "pair"]


@dataclass(frozen=True)
class Edge:
    """What one event does: the span that it ends, then the one that it begins; None for neither.

    Parameters
    ----------
    row : of the event.
    key : which of several open spans of that name.
    """

    row: int
    time: int
    end: str | None
    begin: str | None
    key: Hashable = None


def pair(edges: Iterable[Edge], losses: Iterable[tuple[int, int]] = ()) -> tuple[list[Span], list[int]]:
    """Puts beginnings and ends together: an end ends the span of its name and key that was begun last.

    Parameters
    ----------
    edges : of one node, in order.
    losses : from when to when the node lost events. A span during which something was lost ends there, because its
        own end may have been lost: the end that comes later may be another's. Its ``last`` is None, like that of a
        span whose end never comes.

    Returns
    -------
    the spans in no order, and the rows of events that ended nothing and began nothing.
    """
    spans: list[Span] = []
    open_: dict[Hashable, list[Edge]] = {}
    idle: list[int] = []
    for edge in edges:
        used = edge.begin is not None
        if edge.end is not None:
            waiting = open_.get((edge.end, edge.key))
            if waiting:
                first = waiting.pop()
                spans.append(Span(edge.end, first.time, edge.time, first.row, edge.row))
                used = True
        if edge.begin is not None:
            open_.setdefault((edge.begin, edge.key), []).append(edge)
        if not used:
            idle.append(edge.row)
    for waiting in open_.values():
        spans += [Span(str(first.begin), first.time, None, first.row) for first in waiting]
    gaps = list(losses)
    return [_cut(span, gaps) for span in spans], idle


def _cut(span: Span, gaps: list[tuple[int, int]]) -> Span:
    within = [max(low, span.begin) for low, high in gaps
              if (high > span.begin or low == high == span.begin) and (span.end is None or low < span.end)]
    return Span(span.name, span.begin, min(within), span.first) if within else span
