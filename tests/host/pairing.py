"""Beginnings and ends of one node's events put together, one by one: slow, obvious, and the oracle of the states."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
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


def pair(edges: Iterable[Edge], losses: Iterable[int] = ()) -> tuple[list[Span], list[int]]:
    """Puts beginnings and ends together: an end ends the span of its name and key that was begun last.

    Parameters
    ----------
    edges : of one node, in order.
    losses : times at which the node began to lose events. A span whose end never comes ends at the first one
        behind its beginning, because nobody knows more; without one it stays open.

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
    starts = np.sort(np.fromiter(losses, np.int64))
    for waiting in open_.values():
        for first in waiting:
            behind = int(np.searchsorted(starts, first.time))
            end = int(starts[behind]) if behind < len(starts) else None
            spans.append(Span(str(first.begin), first.time, end, first.row))
    return spans, idle
