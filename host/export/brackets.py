"""Arranges spans of one node in rows of nested brackets, for drawing."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

__all__ = ["Bracket", "Span", "brackets"]

T = TypeVar("T")


class Span(NamedTuple):
    """From ``begin`` to ``end``, which is None if it was still open at the end of the run.

    ``first`` and ``last`` are the rows of the events that began and ended it; ``last`` is None if that one was not
    seen, ``first`` if the span does not come from events.
    """

    name: str
    begin: int
    end: int | None
    first: int | None = None
    last: int | None = None


class Bracket(NamedTuple, Generic[T]):
    """A beginning (``begins``) or an end of a span, in a row; ``item`` is the data of the span."""

    row: int
    time: int
    span: Span
    item: T
    begins: bool


def brackets(spans: Iterable[tuple[Span, T]], fixed: Iterable[tuple[Span, T]] = ()) -> Iterator[Bracket[T]]:
    """Assigns spans to rows in which any two are disjoint, or one is within the other.

    In each row they are nested brackets in order of time; the rows take turns. Only open spans are in memory.

    Parameters
    ----------
    spans : by their beginnings; among those that begin together, the longest first.
    fixed : in the same order; all of these go into the first row if they are disjoint. A span that crosses one of them
        goes into another row.
    """
    pinned = list(fixed)
    begins, ends = _union([span for span, _ in pinned])
    open_: list[list[tuple[Span, T]]] = []

    def ended(row: int, time: float) -> Iterator[Bracket[T]]:
        """The ends in a row until the given time; a span that stays open has none."""
        while row < len(open_) and open_[row] and _end(open_[row][-1][0]) <= time:
            span, item = open_[row].pop()
            if span.end is not None:
                yield Bracket(row, span.end, span, item, False)

    free = ((span, item, int(_crosses(span, begins, ends))) for span, item in spans)
    walled = ((span, item, 0) for span, item in pinned)
    for span, item, row in heapq.merge(free, walled, key=lambda entry: (entry[0].begin, -_end(entry[0]))):
        while True:
            yield from ended(row, span.begin)
            if row >= len(open_) or not open_[row] or _end(span) <= _end(open_[row][-1][0]):
                break
            row += 1
        while row >= len(open_):
            open_.append([])
        open_[row].append((span, item))
        yield Bracket(row, span.begin, span, item, True)
    for row in range(len(open_)):
        yield from ended(row, float("inf"))


def _end(span: Span) -> float:
    return float("inf") if span.end is None else span.end


def _union(spans: list[Span]) -> tuple[list[int], list[float]]:
    """The beginnings and the ends of disjoint stretches whose union is that of the spans."""
    begins: list[int] = []
    ends: list[float] = []
    for span in sorted(spans, key=lambda s: s.begin):
        if ends and span.begin <= ends[-1]:
            ends[-1] = max(ends[-1], _end(span))
        else:
            begins.append(span.begin)
            ends.append(_end(span))
    return begins, ends


def _crosses(span: Span, begins: list[int], ends: list[float]) -> bool:
    """It begins within a stretch and ends outside, or the other way round."""
    at, end = bisect_right(begins, span.begin) - 1, _end(span)
    if at >= 0 and begins[at] < span.begin < ends[at] < end:
        return True
    at = bisect_left(begins, end) - 1
    return at >= 0 and span.begin < begins[at] < end < ends[at]
