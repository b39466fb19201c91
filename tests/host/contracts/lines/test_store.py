"""What is read into lines."""

import duckdb
import pytest
from hypermon.host.contracts.lines import store
from hypermon.host.contracts.lines.store import LineStore

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


def test_lines_of_many_batches(db, monkeypatch):
    """They are put in order, wherever in them the order is wrong."""
    monkeypatch.setattr(store, "_BATCH", 2048)
    db.execute("insert into ev select 100 + i * 7919 % 10000, i % 2, 2 from range(10000) t(i)")
    [[first, second]] = lists(LineStore(db, 2, [[B]]).get([B]))
    assert first == [15, *sorted(100 + i * 7919 % 10000 for i in range(0, 10000, 2))]
    assert second == sorted(100 + i * 7919 % 10000 for i in range(1, 10000, 2))


def test_more_lines_than_numbers_of_16_bits(db):
    """800 nodes and 100 ids: the last line has a number above 65,536."""
    db.execute("insert into ev select 1000 * node + event, node, event from range(800) n(node), range(100) e(event)")
    kinds = [(ROWS, event) for event in range(100)]
    for event, own in enumerate(lists(LineStore(db, 800, [kinds]).get(kinds))):
        assert all(1000 * node + event in line for node, line in enumerate(own))


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
