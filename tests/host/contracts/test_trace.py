"""Slack, keys and gaps of a trace."""

import re
from pathlib import Path

import duckdb
import pytest
from hypermon.host.contracts import trace as trace_module
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import ENDLESS, GAPS, Extent, Source, Trace, UnfitError

from tests.host.contracts.traces import event, traced

HOST = Path(trace_module.__file__).parents[1]


@pytest.fixture
def boards():
    """Nodes 0 and 1 of board 0, node 2 of board 1, node 3 of board 2, which is not aligned."""
    db = duckdb.connect()
    db.execute(f"create temp table gaps ({GAPS})")
    yield Trace(db, [Extent(0, 9), Extent(0, 9), Extent(0, 9, 1), Extent(0, 9, 2)], lambda event: Source("select 1"),
                5, 1, {0: 0, 1: 40, 2: None})
    db.close()


def test_slack(boards):
    assert boards.slack(True) == 5
    assert boards.slack(False, event("a", 0, 1)) == 6
    assert boards.slack(False, event("a", 0, 2)) == 46
    assert boards.slack(False, event("a")) == ENDLESS
    boards.unsure_ps = {0: 0, 1: 40, 2: 7}
    assert boards.slack(False, event("a")) == 5 + 1 + 40 + 7


def test_gaps():
    trace = traced([], [(0, 5, 8, 1), (0, 7, 12, 2), (1, 9, 20, 1)], end=50)
    trace.gaps(event("a"))
    assert trace.db.execute("select node, lo, hi, n from g where cause = 'loss' order by lo").fetchall() == [
        (0, 5, 8, 1), (0, 7, 12, 2), (1, 9, 20, 1)]
    assert trace.db.execute("select node, lo, hi from gn where cause = 'loss' order by lo").fetchall() == [
        (0, 5, 12), (1, 9, 20)]
    assert trace.db.execute("select lo, hi from gm where cause = 'loss'").fetchall() == [(5, 20)]
    trace.gaps(event("a", 1))
    assert trace.db.execute("select count(*) from g where cause = 'loss'").fetchall() == [(1,)]
    assert trace.db.execute("select cause, count(*) from g group by 1 order by 1").fetchall() == [
        ("end", 1), ("loss", 1), ("start", 1)]
    trace = traced([], [(0, 5, 20, 1), (0, 7, 12, 2)], end=50)
    trace.gaps(event("a"))
    assert trace.db.execute("select lo, hi from gn where cause = 'loss'").fetchall() == [(5, 20)]


def test_masked_ids():
    trace = traced([])
    trace.masked = frozenset((7,))
    trace.db.execute("insert into gaps values (0, 0, 9, 3, 'masked', null)")
    trace.source = lambda event: Source("select 1", ids=frozenset((int(event.name),)))
    for name, count in (("7", 1), ("8", 0)):
        trace.gaps(event(name))
        assert trace.db.execute("select count(*) from g where cause = 'masked'").fetchall() == [(count,)]


def test_keys_of_messages():
    """A message has one sender and one receiver, whichever of the two wrote the event."""
    trace = traced([])
    sources = {"s": Source("select 1 as time_ps, 3 as node, 5 as peer, 'x|y' as k", ("peer", "k"), ends=("peer", True)),
               "r": Source("select 2 as time_ps, 5 as node, 3 as peer, 'x|y' as k", ("peer", "k"),
                           ends=("peer", False))}
    trace.source = lambda event: sources[event.name]
    rule = Rule("x", "response", 1, {"after": event("s"), "expect": event("r")}, ("peer", "k"))
    trace.select("a", rule, "after", event("s"))
    trace.select("b", rule, "expect", event("r"))
    assert trace.db.execute("select count(*) from a join b using (key)").fetchall() == [(1,)]


def test_conditions_and_fields():
    trace = traced([(5, 0, "a", 1), (6, 1, "a", 2)])
    rule = Rule("x", "absence", 1, {"event": event("a")})
    trace.select("a", rule, "event", (Event("a", None, "k = 2 -- the second one"),))
    assert trace.db.execute("select t, node, pos from a").fetchall() == [(6, 1, 0)]
    with pytest.raises(UnfitError, match="a has k, time_ps, node"):
        trace.select("a", rule, "event", (Event("a", None, "kk = 2"),))
    with pytest.raises(UnfitError, match="no node 9"):
        trace.select("a", rule, "event", event("a", 9))


@pytest.mark.parametrize(("kept", "found"), [(3, [(5, 0, 1, 1), (6, 1, 2, 1), (7, 1, 2, 0)]), (1, [(7, 1, 2, 0)])])
def test_events_are_read_once(monkeypatch, kept, found):
    """Those that two rules name, up to a number; what a rule is judged by is its own, and no table stays."""
    monkeypatch.setattr(trace_module, "_SHARED", kept)
    trace = traced([(5, 0, "a", 1), (6, 1, "a", 2), (7, 1, "b", 2)])
    rules = [Rule("x", "duration", 1, {"begin": event("a"), "end": event("b")}, ("k",)),
             Rule("y", "order", 1, {"events": event("b") + event("a")}, ("k",))]
    trace.share(rules)
    trace.select("ends", rules[0], "end", event("b"))
    trace.select("begins", rules[0], "begin", event("a"))
    trace.db.execute("update begins set t = -t")
    trace.db.execute("delete from ev")
    trace.select("a", rules[1], "events", event("b") + event("a"))
    assert trace.db.execute("select t, node, key, pos from a order by t").fetchall() == found
    assert not trace.db.execute("from duckdb_tables() where table_name like 'shared_%'").fetchall()


def test_no_window_counts_with_a_filter():
    """DuckDB 2.0 computes ``count(*) filter (...) over (...)`` anew for each row: minutes for a million rows."""
    slow = re.compile(r"filter \((?:[^()]|\([^()]*\))*\) over\b")
    found = [path.name for path in HOST.rglob("*.py") if slow.search(" ".join(path.read_text().split()))]
    assert not found


@pytest.mark.parametrize(("one", "other", "differ"), [
    # By their ids, whatever they are called; by the value that is read; or by their queries alone.
    (Source("a", ids=frozenset({17})), Source("b", ids=frozenset({17})), False),
    (Source("a", ids=frozenset({17})), Source("a", ids=frozenset({18})), True),
    (Source("a", rows="r", value=1), Source("a", rows="r", value=2), True),
    (Source("a", rows="r", value=1), Source("b", rows="r", value=1), False),
    (Source("a", rows="r", value=1), Source("b", rows="q", value=2), False),
    (Source("a", ids=frozenset({17})), Source("b"), False),
    (Source("a"), Source("b"), True), (Source("a"), Source("a"), False)])
def test_whether_an_item_can_be_one_of_two_events(one, other, differ):
    sources = {"one": one, "other": other}
    with duckdb.connect() as db:
        db.execute(f"create temp table gaps ({GAPS})")
        trace = Trace(db, [Extent(0, 1)], lambda event: sources[event.name])
        assert trace.differ([Event("one")], [Event("other")]) == differ
        assert not trace.differ([Event("one"), Event("other")], [Event("other")])
        assert trace.differ([Event("one")], [])
