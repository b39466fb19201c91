"""Lines: what is read, and neighbours in them."""

import duckdb
import numpy as np
import pytest
from hypermon.host.contracts.lines import (
    NEVER,
    LineStore,
    Sieved,
    after,
    before,
    each,
    gaps_of,
    merged,
    ranges,
    touched,
)

ROWS = "select time_ps, node, event as value from ev"
A, B, C = (ROWS, 1), (ROWS, 2), (ROWS, 200)


@pytest.fixture
def db():
    with duckdb.connect() as db:
        db.execute("create table ev (time_ps bigint, node smallint, event utinyint)")
        db.executemany("insert into ev values (?, ?, ?)", [
            (30, 0, 1), (10, 0, 1), (20, 1, 1), (15, 0, 2), (40, 1, 200), (50, 0, 7)])
        yield db


def lists(lines):
    return [[line.tolist() for line in own] for own in lines]


def test_lines_are_in_order_for_each_node(db):
    store = LineStore(db, 2, [[A, B], [C]])
    assert lists(store.get([A, B])) == [[[10, 30], [20]], [[15], []]]
    assert lists(store.get([C])) == [[[], [40]]]
    assert store.get([A]) is None                                   # not announced


def test_what_does_not_fit_into_memory_is_read_later_or_not_at_all(db):
    reads = []
    store = LineStore(db, 2, [[A], [C], [A, B], [B]], most=3)
    store._read, read = lambda rows, values: (reads.append(values), read(rows, values)), store._read
    assert lists(store.get([A])) == [[[10, 30], [20]]]
    assert lists(store.get([C])) == [[[], [40]]]
    assert store.get([A, B]) is None                                # four times
    assert lists(store.get([B])) == [[[15], []]]
    assert reads == [[1], [200, 2]] or reads == [[1], [200], [2]]


def test_an_event_of_an_unknown_node_has_no_line(db):
    db.execute("insert into ev values (5, 2, 2), (6, null, 200)")
    store = LineStore(db, 2, [[B], [C], [A]])
    assert store.get([B]) is None
    assert store.get([C]) is None
    assert lists(store.get([A])) == [[[10, 30], [20]]]


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
    assert gaps_of(rows)[1].tolist() == [20, 40, 99]


def test_each_returns_results_in_order():
    assert each(lambda k: k * k, range(5)) == [0, 1, 4, 9, 16]
    assert each(lambda k: k, []) == []


def test_what_is_sorted_out_adds_up():
    assert Sieved(2, 5) + Sieved(3) + Sieved(0, 7) == Sieved(5, 7)
    assert Sieved() + Sieved() == Sieved()
