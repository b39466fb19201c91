"""Which spans are taken out; the verdicts on all kinds of traces are in :mod:`.test_sieves`."""

import numpy as np
from hypermon.host.contracts.lines.pairs import regular_pairs

NO_GAPS = np.array([], np.int64), np.array([], np.int64)


def apart(begins, ends, gaps=NO_GAPS):
    return regular_pairs(np.array(begins, np.int64), np.array(ends, np.int64), gaps).apart.tolist()


def test_a_pair_is_regular_after_another_end():
    assert apart([10, 20, 30], [12, 22, 32]) == [False, True, True]
    assert apart([10, 20], [5, 12, 22]) == [True, True]


def test_a_begin_in_a_span_and_one_without_an_end_are_not():
    assert apart([10, 20, 21, 30, 40], [12, 22, 32]) == [False, False, False, True, False]
    assert apart([10, 20], []) == [False, False]
    assert apart([], [5]) == []


def test_an_end_at_the_time_of_a_begin_comes_before_it():
    assert apart([10, 20], [12, 20]) == [False, False]
    assert apart([10, 20], [12, 20, 25]) == [False, True]


def test_a_gap_since_the_end_before_is_a_doubt():
    assert apart([10, 20, 30], [12, 22, 32], (np.array([15]), np.array([15]))) == [False, False, True]
    assert apart([10, 20, 30], [12, 22, 32], (np.array([22]), np.array([25]))) == [False, False, False]


def test_what_is_not_taken_out():
    pairs = regular_pairs(np.array([10, 20, 30]), np.array([12, 22, 25, 32]), NO_GAPS)
    (_, begins), (_, ends) = pairs.rest(3)
    assert begins["t"].tolist() == [10]
    assert ends["t"].tolist() == [12, 25]
    assert ends["node"].tolist() == [3, 3]
