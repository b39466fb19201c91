"""Rows of nested brackets to draw spans in."""

import random
from collections import defaultdict
from itertools import combinations

import pytest
from hypermon.host.export.brackets import Span, brackets


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
    drawn = sorted(spans, key=lambda s: (s.begin, -end(s)))
    rows: dict[int, list[Span]] = defaultdict(list)
    stacks: dict[int, list[Span]] = defaultdict(list)
    last: dict[int, int] = defaultdict(int)
    for row, time, span, item, begins in brackets(((s, s.name) for s in drawn), ((s, s.name) for s in fixed)):
        assert item == span.name
        assert time >= last[row]
        last[row] = time
        if begins:
            rows[row].append(span)
            stacks[row].append(span)
            assert time == span.begin
        else:
            # An end closes what was opened last, whatever it says: that is what viewers go by.
            assert stacks[row].pop() is span
            assert time == span.end
    assert sorted((s for row in rows.values() for s in row), key=str) == sorted([*spans, *fixed], key=str)
    assert [s for s in fixed if s not in rows[0]] == []
    assert sorted(rows) == list(range(len(rows)))
    for number, row in rows.items():
        assert [(a, b) for a, b in combinations(row, 2) if not fits(a, b)] == []
        assert [s.end for s in stacks[number]] == [None] * len(stacks[number])


def test_no_spans() -> None:
    assert list(brackets([])) == []


@pytest.mark.parametrize(("begin", "end_", "row"), [
    (0, 10, 0), (0, 20, 0), (50, 60, 0), (40, 80, 0), (0, 100, 0), (10, 25, 1), (35, 60, 1), (10, 35, 1), (35, 95, 1),
    (70, 85, 1), (85, 95, 1), (81, 89, 0)])
def test_only_what_crosses_leaves_the_first_row(begin: int, end_: int, row: int) -> None:
    """Stretches that touch are one: what is within, around or beside one crosses nothing."""
    fixed = [Span("a", 20, 30), Span("b", 30, 40), Span("c", 80, 90)]
    found = brackets([(Span("s", begin, end_), "s")], ((s, s.name) for s in fixed))
    assert [at for at, _, span, _, begins in found if begins and span.name == "s"] == [row]
