"""Scopes of rules: from one event to another one, and what leaves open whether an event is inside."""

from dataclasses import replace

import duckdb
import pytest
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import Event, Rule, Scope
from hypermon.host.contracts.scopes import inside, never

from tests.host.contracts.traces import event, traced

WORK = Scope(event("s"), event("e"))
#: Node 0 writes the edges.
EDGES = [(10, 0, "s", 0), (40, 0, "e", 0), (60, 0, "s", 0), (80, 0, "e", 0)]


def judged(kind, rows, scope, events, losses=(), slack=0, same_node=False, key=(), **values):
    rule = Rule("rule", kind, 1, events, key, same_node, values, scope=scope)
    with duckdb.connect(config={"threads": 1}) as db:
        return JUDGES[kind](traced(rows, losses, slack=slack, db=db), rule)


def states(rows, scope, at, losses=(), slack=0):
    """Whether items at some times and nodes are inside."""
    rule = Rule("rule", "absence", 1, {"event": event("x")}, scope=scope)
    with duckdb.connect(config={"threads": 1}) as db:
        trace = traced(rows, losses, slack=slack, db=db)
        db.execute("create temp table probes (t bigint, node smallint)")
        db.executemany("insert into probes values (?, ?)", at)
        return [row[0] for row in db.execute(f"select inside from ({inside(trace, rule, 'probes')}) order by t, node")
                .fetchall()]


@pytest.mark.parametrize(("scope", "expected"), [
    (WORK, [0, 1, 0, 1, 0]),
    (Scope(event("s"), ()), [0, 1, 1, 1, 1]),
    (Scope((), event("e")), [1, 1, 0, 0, 0]),
    (replace(WORK, same_node=True), [0, 0, 0, 0, 0])])
def test_from_one_event_to_another(scope, expected):
    assert states(EDGES, scope, [(t, 1) for t in (5, 20, 50, 70, 90)]) == expected


@pytest.mark.parametrize(("scope", "expected"), [(Scope(event("s"), (), True), [0, 0, 1, 2]),
                                                 (Scope((), event("s"), True), [1, 1, 0, 2])])
def test_an_edge_of_one_node_says_nothing_of_another(scope, expected):
    """Node 0 has an edge before node 1 loses an item, which may have been its own."""
    times = [(5, 0), (5, 1), (30, 0), (30, 1)]
    assert states([(10, 0, "s", 0)], scope, times, losses=[(1, 20, 22, 1)]) == expected


def test_the_begin_is_inside_and_the_end_is_not():
    assert states(EDGES, WORK, [(t, 0) for t in (9, 10, 39, 40)]) == [0, 1, 1, 0]


def test_stamps_near_an_edge():
    """Of another node; those of the same node are in order."""
    times = [(t, node) for t in (7, 8, 12, 13) for node in (0, 1)]
    assert states(EDGES, WORK, times, slack=2) == [0, 0, 0, 2, 1, 2, 1, 1]


def test_edges_near_each_other():
    """Which of two edges came last is not certain; of one node it is."""
    for node, found in ((1, 2), (0, 0)):
        assert states([(10, 0, "s", 0), (11, node, "e", 0)], WORK, [(30, 0)], slack=2) == [found]


@pytest.mark.parametrize(("loss", "expected"), [
    ((0, 20, 25, 1), [1, 2, 2, 0, 1]), ((0, 50, 55, 1), [1, 1, 1, 2, 1]), ((1, 2, 3, 1), [1, 1, 1, 0, 1])])
def test_a_loss_may_hide_an_edge(loss, expected):
    assert states(EDGES, WORK, [(t, 0) for t in (15, 22, 30, 55, 65)], [loss]) == expected


def test_what_was_lost_after_the_only_edge():
    scope = Scope(event("s"), ())
    assert states(EDGES, scope, [(5, 0), (15, 0), (30, 0)], [(0, 20, 25, 1)]) == [0, 1, 1]
    assert states(EDGES, scope, [(2, 0), (6, 0), (15, 0)], [(0, 3, 5, 1)]) == [0, 2, 1]


@pytest.mark.parametrize("scope", [Scope(event("s"), ()), Scope((), event("s"))])
@pytest.mark.parametrize("loss", [(1, 8, 12, 1), (1, 10, 12, 1)])
def test_what_was_lost_beside_the_only_edge(scope, loss):
    """After it, the scope is certain; what was lost at the same time began or ended it no earlier."""
    known = int(bool(scope.begin))
    assert states([(10, 0, "s", 0)], scope, [(5, 0), (11, 0), (20, 0)], [loss]) == [1 - known, known, known]


ONE = {"event": event("x")}
PAIR = {"after": event("x"), "expect": event("y")}
SPAN = {"begin": event("x"), "end": event("y")}
LISTED = {"events": (Event("x"), Event("y"))}


def items(text, node=1):
    """Items from ``x20 y30``."""
    return [(int(word[1:]), node, word[0], 0) for word in text.split()]


@pytest.mark.parametrize(("kind", "events", "values", "good", "bad"), [
    ("absence", ONE, {}, "x5 x50 x90", "x70"),
    ("response", PAIR, {"max": 5}, "x5 x20 y24", "x20 y30"),
    ("precedence", {"event": event("x"), "needs": event("y")}, {"within": 5}, "x5 y15 x20", "y12 x20"),
    ("absence", {"event": event("x"), "after": event("y")}, {"within": 5}, "y5 x7 y20 x30", "y20 x22"),
    ("period", ONE, {"every": 10, "tolerance": 1}, "x15 x25 x35 x65 x75 x90", "x15 x25 x36 x48 x65 x70"),
    ("rate", ONE, {"per": 10, "max": 1}, "x5 x6 x20 x39 x41", "x20 x25"),
    ("rate", ONE, {"per": 20, "min": 1}, "x20 x35 x70", "x12 x35"),
    ("duration", SPAN, {"max": 5}, "x1 y9 x20 y24", "x20 y30"),
    ("duration", SPAN, {"max": 5, "quantile": 1}, "x1 y9 x20 y24", "x20 y30"),
    ("order", LISTED, {}, "y5 y6 x20 y30 y50 y51 x61 y62", "x20 x21 y22"),
    ("share", SPAN, {"max": 0.5}, "x1 y9 x20 y30 x42 y58 x61 y65 x81 y99", "x12 y42 x60 y75")])
def test_each_kind(kind, events, values, good, bad):
    """Right within the scope, whatever is outside; wrong within it; and wrong where the scope is not certain."""
    same = kind in ("period", "rate", "duration", "order")
    rule = {"scope": WORK, "events": events, "same_node": same, **values}
    assert judged(kind, EDGES + items(good), **rule).verdict == "pass"
    assert judged(kind, EDGES + items(good), **{**rule, "scope": None}).verdict != "pass"
    assert judged(kind, EDGES + items(bad), **rule).verdict == "fail"
    doubt = [(0, 11, 11, 1), (0, 61, 61, 1)]
    assert judged(kind, EDGES + items(bad), losses=doubt, **rule).verdict == "undecided"
    for edges in ([], EDGES[1:2]):
        found = judged(kind, edges + items(bad), **rule)
        assert (found.verdict, found.instances) == ("undecided", 0)
        assert "the scope of the rule does not occur for sure" in found.notes


def test_exclusion_within():
    events = {"spans": (Event("x"), Event("y"))}
    apart = items("x30 y45", 0) + items("x42 y50") + items("x62 y65", 0) + items("x66 y70")
    assert judged("exclusion", EDGES + apart, WORK, events).verdict == "pass"
    assert judged("exclusion", EDGES + apart, None, events).verdict == "fail"
    found = judged("exclusion", EDGES + items("x45 y65", 0) + items("x50 y70"), WORK, events)
    assert (found.verdict, found.where[0].time_ps) == ("fail", 60)


def test_together_within():
    """A turn is inside if one of its events is."""
    rows = items("x5 x20 x90", 0) + items("x9 x21 x99")
    assert judged("together", EDGES + rows, WORK, ONE, within=2).verdict == "pass"
    assert judged("together", EDGES + rows, None, ONE, within=2).verdict == "fail"
    assert judged("together", EDGES + items("x8 x20", 0) + items("x12 x21"), WORK, ONE, within=2).verdict == "fail"


def test_an_event_of_a_key_that_may_have_come_after_the_scope():
    """It belongs to those in the scope; without a key, it is one of another turn."""
    rows, lost, scope = EDGES + items("x20", 0) + items("x21"), [(1, 90, 95, 1)], Scope(event("s", 0), event("e", 0))
    assert judged("together", rows, scope, ONE, key=("k",), within=2).verdict == "pass"
    assert judged("together", rows, scope, ONE, lost, key=("k",), within=2).verdict == "undecided"
    assert judged("together", rows, scope, ONE, lost, within=2).verdict == "pass"


def test_what_was_lost_outside():
    """It matters only where it may be inside."""
    rule = {"scope": Scope(event("s", 0), event("e", 0)), "events": ONE}
    assert judged("absence", EDGES, losses=[(1, 45, 55, 3)], **rule).verdict == "pass"
    assert judged("absence", EDGES, losses=[(1, 45, 60, 3)], **rule).verdict == "undecided"


@pytest.mark.parametrize(("rows", "losses", "values", "verdict"), [
    # A span began before the recording, in no scope; or its begin was lost, in the scope or outside.
    ("y14", [], {"max": 5}, "pass"),
    ("y14", [(1, 16, 16, 1)], {"max": 5}, "undecided"),
    ("y45", [(1, 50, 50, 1)], {"max": 5}, "pass"),
    ("y70", [(1, 50, 50, 1)], {"max": 5}, "pass"),
    ("y70", [(1, 30, 30, 1)], {"max": 5}, "undecided"),
    # One lost item is a begin of the scope or one of a span; of two, one is either.
    ("x20 y24", [(1, 50, 50, 1)], {"max": 5}, "pass"),
    ("x20 y24", [(1, 50, 50, 2)], {"max": 5}, "undecided"),
    ("x20 y24", [(1, 50, 50, 1), (0, 49, 51, 1)], {"max": 5}, "undecided"),
    ("x20 y24", [(1, 59, 59, 1)], {"max": 5}, "pass"),
    ("x20 y24", [(1, 59, 60, 1)], {"max": 5}, "undecided"),
    ("x20 y24", [(1, 40, 40, 1)], {"max": 5}, "undecided"),
    # No lost item makes a span too short if it is far enough from others, or outside.
    ("x20 y30", [(1, 25, 25, 1)], {"min": 5}, "pass"),
    ("x20 y30", [(1, 26, 26, 1)], {"min": 5}, "undecided"),
    ("x20 y30", [(1, 24, 24, 1)], {"min": 5}, "undecided"),
    ("x20 y30 y48", [(1, 46, 46, 1)], {"min": 5}, "pass"),
    ("x20 y30 y32", [(1, 25, 25, 1)], {"min": 5}, "pass"),
    ("x20 y29 y30", [(1, 25, 25, 1)], {"min": 5}, "undecided")])
def test_a_lost_begin_of_a_span(rows, losses, values, verdict):
    rows = EDGES + items(rows) + items("x74 y79")
    assert judged("duration", rows, WORK, SPAN, losses, same_node=True, **values).verdict == verdict


@pytest.mark.parametrize(("lost_at", "undecided"), [(30, 2), (50, 0), (72, 1)])
def test_a_span_whose_begin_was_lost_is_a_place(lost_at, undecided):
    """And so is the loss; unless it was outside the scope, or came after the span's end."""
    found = judged("duration", EDGES + items("y70 x74 y79"), WORK, SPAN, [(1, lost_at, lost_at + 1, 1)],
                   same_node=True, max=5)
    assert found.undecided == undecided


def test_a_span_that_began_before_the_recording():
    """It is in no scope, not even in one from the start of the recording; unless its begin was lost since."""
    rule = {"scope": Scope((), event("e")), "events": SPAN, "same_node": True, "max": 5}
    assert judged("duration", EDGES + items("y14 x20 y24"), **rule).verdict == "pass"
    assert judged("duration", EDGES + items("y14 x20 y24"), losses=[(1, 12, 12, 1)], **rule).verdict == "undecided"
    assert judged("duration", EDGES + items("y14 x20 y24"), losses=[(1, 60, 60, 1)], **rule).verdict == "pass"


def test_a_lost_item_that_begins_both():
    """The scope, and a span."""
    rows, own = items("x20 y24 e30"), Scope(event("x"), event("e"))
    assert judged("duration", rows, own, SPAN, [(1, 50, 50, 1)], same_node=True, max=5).verdict == "undecided"


def test_stamps_near_a_lost_item():
    """The begin of node 0 may have come before it."""
    rule = {"scope": WORK, "events": SPAN, "slack": 2, "same_node": True, "max": 5}
    for edge, verdict in ((52, "undecided"), (53, "pass")):
        rows = [(10, 0, "s", 0), (40, 0, "e", 0), (edge, 0, "s", 0), (80, 0, "e", 0), *items("x20 y22")]
        assert judged("duration", rows, losses=[(1, 50, 50, 1)], **rule).verdict == verdict


def test_the_reason():
    found = judged("absence", EDGES + items("x41"), WORK, ONE, slack=2)
    assert [place.why for place in found.where] == ["whether it is in the scope of the rule is not certain"]


def test_a_scope_that_never_is():
    rule = Rule("rule", "absence", 1, ONE, scope=WORK)
    with duckdb.connect(config={"threads": 1}) as db:
        assert never(traced(EDGES[1:2], db=db), rule)
        assert not never(traced(EDGES, db=db), replace(rule))


def test_events_of_two_nodes_are_in_no_scope_of_each_node():
    """Each is in its own: the time between them is not judged."""
    own = Scope(event("a"), event("e"), True)
    found = judged("period", [(3, node, "a", 0) for node in (0, 1)], own, {"event": event("a")}, every=5, tolerance=1)
    assert (found.verdict, found.instances) == ("undecided", 0)


@pytest.mark.parametrize(("slack", "verdict"), [(0, "fail"), (2, "undecided")])
def test_what_ends_just_before_a_scope_may_reach_into_it(slack, verdict):
    """Node 1 may have been inside until it wrote b, a time after s that its stamp does not show."""
    found = judged("share", [(6, 1, "b", 0), (7, 0, "s", 0)], Scope(event("s"), ()), {"begin": event("a"),
                   "end": event("b")}, slack=slack, min=0.01)
    assert found.verdict == verdict
