"""Spans: beginnings and ends of one node's events, and rows to draw them in."""

import random
from itertools import combinations

import pytest
from hypermon.host.spans import Edge, Span, brackets, lanes, pair


def test_pairs() -> None:
    spans, idle = pair([
        Edge(0, 10, None, "a"), Edge(1, 20, None, "a"), Edge(2, 30, "a", None),
        Edge(3, 40, "a", "b"), Edge(4, 50, "a", None), Edge(5, 60, None, "call", 1), Edge(6, 70, None, "call", 2),
        Edge(7, 80, "call", None, 1), Edge(8, 90, "call", None, 3)])
    assert sorted(spans, key=lambda s: s.begin) == [
        Span("a", 10, 40, 0, 3), Span("a", 20, 30, 1, 2), Span("b", 40, None, 3), Span("call", 60, 80, 5, 7),
        Span("call", 70, None, 6)]
    assert idle == [4, 8]


def test_what_never_ends_ends_at_a_loss() -> None:
    edges = [Edge(0, 10, None, "a"), Edge(1, 20, None, "b"), Edge(2, 50, "b", None), Edge(3, 60, None, "c")]
    spans, _ = pair(edges, [40, 30, 5])
    assert sorted(spans, key=lambda s: s.begin) == [
        Span("a", 10, 30, 0), Span("b", 20, 50, 1, 2), Span("c", 60, None, 3)]


def end(span: Span) -> float:
    return float("inf") if span.end is None else span.end


def fits(a: Span, b: Span) -> bool:
    return end(a) <= b.begin or end(b) <= a.begin or (a.begin <= b.begin and end(b) <= end(a)) \
        or (b.begin <= a.begin and end(a) <= end(b))


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_nested(seed: int) -> None:
    rng = random.Random(seed)
    spans = []
    for number in range(rng.randrange(60)):
        begin = rng.randrange(100)
        length = rng.choice([0, 1, rng.randrange(50)])
        spans.append(Span(str(number), begin, None if rng.random() < 0.1 else begin + length))
    fixed, at = [], 0
    while (at := at + rng.randrange(1, 30)) < 100:
        fixed.append(Span(f"lost {at}", at, at := at + rng.randrange(20)))
    rows = lanes(spans, fixed)
    assert sorted((s for row in rows for s in row), key=str) == sorted([*spans, *fixed], key=str)
    assert [s for s in fixed if s not in rows[0]] == []
    for row in rows:
        assert [(a, b) for a, b in combinations(row, 2) if not fits(a, b)] == []
        stack: list[Span] = []
        seen, last = [], -1
        for time, span, begins in brackets(row):
            assert time >= last
            last = time
            if begins:
                stack.append(span)
                seen.append(span)
                assert time == span.begin
            else:
                # An end closes what was opened last, whatever it says: that is what viewers go by.
                assert stack.pop() is span
                assert time == span.end
        assert seen == row
        assert [s.end for s in stack] == [None] * len(stack)


def test_no_spans() -> None:
    assert lanes([]) == [[]]
