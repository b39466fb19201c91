"""Spans of one node as rows of nested brackets, to draw them in."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Bracket", "Span", "brackets"]

T = TypeVar("T")


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


class Bracket(NamedTuple, Generic[T]):
    """A beginning (``begins``) or an end of a span, in a row; ``item`` is what came with the span."""

    row: int
    time: int
    span: Span
    item: T
    begins: bool


def brackets(spans: Iterable[tuple[Span, T]], fixed: Iterable[tuple[Span, T]] = ()) -> Iterator[Bracket[T]]:
    """Puts spans into rows in which any two are apart, or one lies within the other.

    In each row they are nested brackets in order of time; the rows take turns. What is held is what is open.

    Parameters
    ----------
    spans : by their beginnings, of those that begin together the longest first.
    fixed : in the same order; all of these go into the first row if they are apart; what crosses one of them goes
        into another.
    """
    pinned = list(fixed)
    walls = _union([span for span, _ in pinned])
    open_: list[list[tuple[Span, T]]] = []

    def ended(row: int, time: float) -> Iterator[Bracket[T]]:
        """The ends in a row until then; a span that stays open has none."""
        while row < len(open_) and open_[row] and _end(open_[row][-1][0]) <= time:
            span, item = open_[row].pop()
            if span.end is not None:
                yield Bracket(row, span.end, span, item, False)

    free = ((span, item, int(_crosses(span, walls))) for span, item in spans)
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
