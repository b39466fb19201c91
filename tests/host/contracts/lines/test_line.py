"""Neighbours in lines, and what gaps touch."""

import numpy as np
from hypermon.host.contracts.lines.line import (
    NEVER,
    Sieved,
    after,
    before,
    each,
    gaps_of,
    merged,
    ranges,
    touched,
)


def test_neighbours():
    line, times = np.array([10, 20, 20, 30]), np.array([5, 10, 15, 20, 31])
    assert after(line, times).tolist() == [10, 10, 20, 20, NEVER]
    assert before(line, times).tolist() == [-NEVER, 10, 10, 20, 30]
    assert after(line[:0], times[:1]).tolist() == [NEVER]
    assert before(line[:0], times[:1]).tolist() == [-NEVER]
    assert after(line, times[:0]).tolist() == []
    assert merged([line, np.array([15])]).tolist() == [10, 15, 20, 20, 30]
    assert merged([]).tolist() == []


def test_ranges():
    assert ranges(np.array([0, 2, 7]), np.array([3, 4, 7])).tolist() == [0, 1, 2, 3]
    assert ranges(np.array([5]), np.array([2])).tolist() == []
    assert ranges(np.array([], np.int64), np.array([], np.int64)).tolist() == []


def test_intervals_that_a_gap_touches():
    rows = {"node": np.array([0, 0, 1]), "lo": np.array([12, 35, 0]), "hi": np.array([20, 40, 99])}
    line = np.array([0, 10, 20, 30, 50])
    assert touched(line[:-1], line[1:], gaps_of(rows, 0)).tolist() == [1, 2, 3]
    assert touched(line[:-1], line[1:], gaps_of(rows, 2)).tolist() == []
    assert touched(line[:-1], line[1:], (np.array([20]), np.array([25]))).tolist() == [1, 2]
    assert gaps_of(rows)[1].tolist() == [20, 40, 99]


def test_each_returns_results_in_order():
    assert each(lambda k: k * k, range(5)) == [0, 1, 4, 9, 16]
    assert each(lambda k: k, []) == []


def test_what_is_sorted_out_adds_up():
    assert Sieved(2, 5) + Sieved(3) + Sieved(0, 7) == Sieved(5, 7)
    assert Sieved() + Sieved() == Sieved()
