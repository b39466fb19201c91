"""The share of a state in the time of a scope: the largest and the smallest one that is possible."""

import duckdb
import pytest
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import Rule, Scope

from tests.host.contracts.traces import event, traced

WORK, OWN = Scope(event("s"), event("e")), Scope(event("s"), event("e"), True)
ENDS = Scope((), event("e"), True)


def items(*nodes):
    """Items of each node from ``x20 y30``."""
    return [(int(word[1:]), node, word[0], 0) for node, text in enumerate(nodes) for word in text.split()]


def judged(rows, scope=WORK, losses=(), slack=0, nodes=(), **values):
    span = {"begin": event("x", *nodes), "end": event("y", *nodes)}
    rule = Rule("rule", "share", 1, span, (), False, values, scope=scope)
    with duckdb.connect(config={"threads": 1}) as db:
        return JUDGES["share"](traced(rows, losses, slack=slack, db=db), rule)


@pytest.mark.parametrize(("rows", "scope", "losses", "slack", "low", "high"), [
    # Each time is late by the slack at most: x and e, or s and y.
    (items("s10 e40", "x20 y30"), WORK, [], 2, (8, 32), (12, 28)),
    # More begins, and more edges of the scope, do not make the time inside more uncertain.
    (items("s10 e40", "x20 x22 x24 y30"), WORK, [], 2, (8, 32), (12, 28)),
    (items("s10 s15 s20 e40", "x20 y30"), WORK, [], 2, (8, 32), (12, 28)),
    # Two edges that begin the scope with a begin and an end beside them.
    (items("s10 e20 s50 e60", "x11 y19 x51 y59"), WORK, [], 1, (14, 22), (18, 18)),
    # If a begin of the scope was lost at 5, all the time from 5 to 50 is in it; else nothing of it is.
    (items("s50 e90", "x10 y30 x60 y62"), WORK, [(0, 5, 5, 1)], 0, (2, 40), (22, 85)),
    (items("s50 e90", "x30 y31 x60 y80"), WORK, [(0, 5, 5, 1)], 0, (21, 85), (20, 40)),
    # An end of the scope that was lost at 20 came until 22. No time before or after makes up for that.
    (items("s10 e40", "x14 y30"), WORK, [(0, 20, 20, 1)], 2, (4, 10), (8, 10)),
    # The same of one node, which may have lost an end of the state instead.
    (items("", "s10 x14 y30 e40"), OWN, [(1, 20, 20, 1)], 2, (4, 32), (8, 10)),
    # Edges that are near to each other, then one that is not, then some more.
    (items("s10 e40", "x15 y18 x20 y60 x62 y64"), WORK, [], 2, (19, 30), (27, 30)),
    # A state from the start.
    (items("s10 e40", "x0 y20"), WORK, [], 0, (10, 30), (10, 30))])
def test_the_largest_and_the_smallest_share(rows, scope, losses, slack, low, high):
    """At the limit the rule passes; a bit beyond, something that is possible violates it."""
    rule = {"rows": rows, "scope": scope, "losses": losses, "slack": slack, "nodes": [1]}
    least, most = (part / whole for part, whole in (low, high))
    assert judged(**rule, min=least, max=most).verdict == "pass"
    assert judged(**rule, min=most + 0.001).verdict == "fail"
    assert judged(**rule, max=least - 0.001).verdict == "fail"
    if least < most:
        assert judged(**rule, max=most - 0.001).verdict == "undecided"
        assert judged(**rule, min=least + 0.001).verdict == "undecided"


def test_a_node_knows_the_order_of_its_own_edges():
    """Each is inside all the time since the item that began the scope; unless another one began it before that."""
    scope = Scope(event("x"), ())
    assert judged(items("", "x90"), scope, slack=5, max=0.99).verdict == "fail"
    assert judged(items("x80", "x90"), scope, slack=5, max=0.99).verdict == "fail"
    assert judged(items("x88", "x90 y94"), scope, slack=5, min=0.5).verdict == "undecided"
    assert judged(items("", "x90 y91"), scope, slack=5, max=0.61).verdict == "pass"


def test_what_ends_just_before_a_scope_enters_it_as_far_as_it_can():
    """Until 11, if the scope began at 10. That both begin and end late is possible, but not at the same time."""
    rule = {"rows": items("s10 e40", "x5 y9"), "slack": 2}
    assert judged(**rule, max=1 / 28).verdict == "pass"
    assert judged(**rule, max=1 / 30 - 0.001).verdict == "undecided"
    assert judged(**rule, min=1 / 28 + 0.001).verdict == "fail"


def test_what_begins_just_after_a_scope_is_in_it_if_the_scope_ends_late():
    assert judged(items("s10 e40", "x41 y60"), slack=2, max=0).verdict == "undecided"
    assert judged(items("s10 e40", "x42 y60"), slack=2, max=0).verdict == "pass"


def test_all_inside_or_all_outside():
    """Inside for at least 18 of 30, or not at all."""
    rule = {"rows": items("s10 e40", "y30"), "slack": 2}
    assert judged(**rule, min=0.3, max=0.56).verdict == "fail"
    assert judged(**rule, min=0.3, max=0.61).verdict == "undecided"
    assert judged(**rule, min=0.05, max=0.56, losses=[(1, 12, 12, 1)]).verdict == "undecided"


def test_a_node_of_which_nothing_was_seen():
    """The item that it lost may be another one; if it is an x or a y, the share is too small or too large."""
    rule = {"rows": items("s10 e40"), "losses": [(1, 39, 39, 1)], "min": 0.3, "max": 0.6}
    assert judged(**rule).verdict == "undecided"
    assert judged(**{**rule, "rows": items("s10 e40", "y60")}).verdict == "fail"


@pytest.mark.parametrize("limits", [{"max": 0.1}, {"min": 0.9}])
def test_a_scope_that_may_have_no_length(limits):
    """It has ended as soon as it began: then the rule holds."""
    rows = items("s10", "x5 y10", "e11") if "min" in limits else items("s10", "x5", "e11")
    assert judged(rows, slack=2, **limits).verdict == "undecided"


@pytest.mark.parametrize(("rows", "scope", "low", "high"), [
    # The recording ends at 100 to 102. The state begins or ends at 100 to 102, too: before the end, or after it.
    (items("", "s10 x100"), OWN, (0, 92), (2, 90)),
    (items("", "s10 x60 y100"), OWN, (38, 92), (42, 90)),
    (items("s10", "x100"), WORK, (0, 92), (2, 90)),
    (items("s10", "x60 y100"), WORK, (38, 92), (42, 90)),
    # It begins at 0 to 2, and so does the recording.
    (items("", "x0 y90 e98"), ENDS, (88, 100), (92, 98)),
    (items("", "y0 x90 e98"), ENDS, (6, 98), (12, 100)),
    (items("e98", "x0 y90"), Scope((), event("e")), (88, 100), (92, 98)),
    (items("e98", "y0 x90"), Scope((), event("e")), (6, 98), (12, 100))])
def test_an_edge_with_the_first_or_the_last_stamp(rows, scope, low, high):
    test_the_largest_and_the_smallest_share(rows, scope, [], 2, low, high)
