"""Spans of one node: from an event that begins something to the one that ends it, and rows to draw them in."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Edge", "Span", "brackets", "lanes", "pair"]


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


@dataclass(frozen=True)
class Span:
    """From ``begin`` to ``end``, which is None if it was still open at the end of the run.

    ``first`` and ``last`` are the rows of the events that began and ended it; ``last`` is None if
    that one was not seen, ``first`` if the span is none of an event's.
    """

    name: str
    begin: int
    end: int | None
    first: int | None = None
    last: int | None = None


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


def lanes(spans: Iterable[Span], fixed: Iterable[Span] = ()) -> list[list[Span]]:
    """Rows in which any two spans are apart, or one lies within the other.

    Parameters
    ----------
    spans : any.
    fixed : all of these go into the first row if they are apart; what crosses one of them goes into another.

    Returns
    -------
    rows, at least one; each sorted as nested brackets are opened.
    """
    pinned = list(fixed)
    walls = _union(pinned)
    waiting = sorted([*((s, _crosses(s, walls)) for s in spans), *((s, False) for s in pinned)],
                     key=lambda pair: (pair[0].begin, -_end(pair[0])))
    rows: list[list[Span]] = [[]]
    open_: list[list[float]] = [[]]
    for span, crosses in waiting:
        for number in range(int(crosses), len(rows) + 2):
            while number >= len(rows):
                rows.append([])
                open_.append([])
            stack = open_[number]
            while stack and stack[-1] <= span.begin:
                stack.pop()
            if not stack or _end(span) <= stack[-1]:
                rows[number].append(span)
                stack.append(_end(span))
                break
    return rows


def brackets(row: Iterable[Span]) -> Iterator[tuple[int, Span, bool]]:
    """The beginnings (True) and ends of a row of :func:`lanes` as nested brackets: time, span, which of the two.

    A span that stays open has no end.
    """
    stack: list[Span] = []
    for span in row:
        while stack and _end(stack[-1]) <= span.begin:
            yield int(_end(stack[-1])), stack.pop(), False
        yield span.begin, span, True
        stack.append(span)
    while stack:
        span = stack.pop()
        if span.end is not None:
            yield span.end, span, False


def _end(span: Span) -> float:
    return float("inf") if span.end is None else span.end


def _union(spans: list[Span]) -> npt.NDArray[Any]:
    """Disjoint stretches that together are the spans: beginnings and ends."""
    joined: list[list[float]] = []
    for span in sorted(spans, key=lambda s: s.begin):
        if joined and span.begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], _end(span))
        else:
            joined.append([span.begin, _end(span)])
    return np.array(joined, np.float64).reshape(-1, 2)


def _crosses(span: Span, walls: npt.NDArray[Any]) -> bool:
    """It begins within a stretch and ends outside, or the other way round."""
    if len(walls) == 0:
        return False
    at = int(np.searchsorted(walls[:, 0], span.begin, side="right")) - 1
    if at >= 0 and walls[at, 0] < span.begin < walls[at, 1] < _end(span):
        return True
    at = int(np.searchsorted(walls[:, 0], _end(span), side="left")) - 1
    return at >= 0 and bool(span.begin < walls[at, 0] < _end(span) < walls[at, 1])
