"""The strip of the timeline: what is drawn is what took the time."""

from itertools import pairwise

import numpy as np
import pytest
from hypermon.sim.demo.strip import Activity, Spans, rate_strip, spans, strip

KINDS = [Activity("first", "█", "#", "green"), Activity("second", "▒", "=", "yellow")]


def example() -> Spans:
    """First 0..300, second 300..400, nothing 400..700, first 700..1000. Event 9 is unknown."""
    time = np.array([0, 150, 300, 400, 700])
    return spans(time, np.array([1, 9, 2, 3, 1]), {1: 0, 2: 1, 3: -1}, 1000)


def test_spans_follow_events() -> None:
    own = example()
    assert list(zip(own.begin.tolist(), own.end.tolist(), own.kind.tolist(), strict=True)) == [
        (0, 300, 0), (300, 400, 1), (400, 700, -1), (700, 1000, 0)]


def test_shares_are_exact() -> None:
    shares = example().shares(2, np.array([-100, 0, 250, 350, 700, 701, 2000]))
    assert shares.tolist() == [[0, 250, 50, 0, 1, 299], [0, 0, 50, 50, 0, 0]]


@pytest.mark.parametrize("seed", range(10))
def test_shares_are_a_sum_over_moments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, 500, 20))
    own = spans(time, rng.integers(0, 4, 20), {0: 0, 1: 1, 2: 2, 3: -1}, 500)
    moments = np.full(600, -1)
    for begin, end, kind in zip(own.begin, own.end, own.kind, strict=True):
        moments[begin:end] = kind
    edges = np.unique(rng.integers(0, 600, 8))
    expected = [[np.count_nonzero(moments[a:b] == kind) for a, b in pairwise(edges)]
                for kind in range(3)]
    assert own.shares(3, edges).tolist() == expected


@pytest.mark.parametrize(("ascii_only", "row"), [(False, "   3 ███▒   ███"), (True, "   3 ###=   ###")])
def test_a_column_shows_what_took_most_of_it(ascii_only: bool, row: str) -> None:
    text = strip({3: example(), 12: spans(np.array([]), np.array([]), {}, 0)}, KINDS, 0, 1000, 10, ascii_only)
    lines = text.plain.split("\n")
    assert lines[0] == row
    assert lines[1].rstrip() == "  12"
    assert all(ord(c) < 128 for c in text.plain) == ascii_only


def test_the_axis_names_the_time_of_its_ticks() -> None:
    begin = 129_300_000_000
    text = strip({0: example()}, KINDS, begin, begin + 4_000_000_000, 80, True)
    ticks, numbers = (line[5:] for line in text.plain.split("\n")[-2:])
    places = [i for i, c in enumerate(ticks) if c == "+"]
    labels = numbers.split()
    assert len(ticks) == 80
    assert len(places) == len(labels) > 2
    for place, label in zip(places, labels, strict=True):
        assert numbers[place:].startswith(label)
        assert abs(float(label) - (129.3 + place * 4 / 80)) <= 4 / 80


def test_rate() -> None:
    bars, most = rate_strip(np.array([0, 1, 2, 3, 500, 999]), 0, 1000, 10, False)
    assert bars == "█    ▂   ▂"
    assert most == 4 / 100e-12
    assert rate_strip(np.array([0, 1, 2, 3, 500]), 0, 1000, 10, True)[0] == "@    -    "
