"""Order and together on small traces."""

import pytest
from hypermon.host.contracts.rules import Event
from hypermon.host.contracts.trace import UnfitError

from tests.host.contracts.traces import event, judged

ABC = {"events": (Event("a"), Event("b"), Event("c"))}


def items(text, node=0, key=0, step=10):
    return [(step * (k + 1), node, name, key) for k, name in enumerate(text)]


@pytest.mark.parametrize(("text", "losses", "verdict"), [
    ("abcabc", [], "pass"), ("abxc", [], "pass"), ("acb", [], "fail"), ("aabc", [], "fail"), ("abcab", [], "undecided"),
    ("bcabc", [], "undecided"), ("ac", [(0, 15, 16, 1)], "undecided"), ("abc", [(0, 95, 96, 1)], "undecided"),
    ("abc", [(1, 15, 16, 1)], "undecided"), ("acb", [(0, 95, 96, 1)], "fail")])
def test_order(text, losses, verdict):
    assert judged("order", items(text), losses, events=ABC, same_node=True).verdict == verdict


def test_why_an_order_is_open():
    found = judged("order", items("ac"), [(0, 15, 16, 1)], events=ABC, same_node=True)
    [place] = [place for place in found.where if place.time_ps == 20]
    assert place.why == "node 0 lost 1 item between 0.000000000015 s and 0.000000000016 s"


@pytest.mark.parametrize("lines", [True, False])
def test_what_should_have_followed_was_lost(lines):
    """Not the end of the recording, which is later. Without a loss, it is the end."""
    more = {} if lines else {"key": ("k",)}
    found = judged("order", items("a"), [(0, 60, 61, 1), (0, 80, 81, 2)], events=ABC, same_node=True, **more)
    assert found.where[0].why.startswith("node 0 lost 1 item between")
    found = judged("order", items("a"), [(0, 5, 6, 1), (1, 50, 51, 1)], events=ABC, same_node=True, **more)
    assert "where the recording of node 0 ends" in {place.time_ps: place.why for place in found.where}[10]


@pytest.mark.parametrize(("text", "losses", "verdict"), [
    ("ca", [(0, 15, 16, 1)], "undecided"), ("cc", [(0, 15, 16, 1)], "fail"), ("cc", [(0, 15, 16, 2)], "undecided"),
    ("cc", [(0, 11, 12, 1), (0, 17, 18, 1)], "undecided"), ("cc", [(0, 11, 12, 1), (0, 27, 28, 1)], "fail"),
    ("cc", [(0, 11, 12, 1), (1, 17, 18, 1)], "fail"), ("ba", [(0, 15, 16, 1)], "undecided")])
def test_fewer_were_lost_than_are_missing(text, losses, verdict):
    assert judged("order", items(text), losses, events=ABC, same_node=True).verdict == verdict


@pytest.mark.parametrize(("more", "losses", "verdict"), [
    ([], [], "fail"), ([(53, 0, "b")], [], "fail"), ([(53, 0, "b"), (52, 1, "c")], [], "undecided"),
    ([(53, 0, "b"), (54, 1, "c")], [], "fail"), ([(53, 0, "b"), (48, 1, "c")], [], "undecided"),
    ([(53, 0, "b"), (47, 1, "c")], [], "fail"),
    ([(53, 0, "b")], [(0, 53, 54, 1)], "undecided"), ([(53, 0, "b")], [(0, 54, 54, 1)], "fail"),
    ([(53, 0, "b")], [(1, 47, 48, 1)], "undecided"), ([(53, 0, "b")], [(1, 46, 47, 1)], "fail"),
    ([], [(0, 50, 52, 1)], "fail"), ([], [(0, 50, 52, 2)], "undecided")])
def test_the_same_event_of_two_nodes(more, losses, verdict):
    """Whichever came first: a B and a C must have come in between."""
    two = [(50, 0, "a", 1), (51, 1, "a", 1)]
    assert judged("order", [*two, *((*item, 1) for item in more)], losses, events=ABC, key=("k",),
                  slack=2).verdict == verdict


def test_order_by_key():
    mixed = items("abc", 0, 1) + items("abc", 1, 2, step=11)
    assert judged("order", mixed, events=ABC, key=("k",)).verdict == "pass"
    # Events of two nodes that are closer than their times are certain may have come in either order.
    crossing = [(10, 0, "a", 1), (12, 1, "b", 1), (20, 0, "c", 1)]
    assert judged("order", crossing, events=ABC, key=("k",), slack=1).verdict == "pass"
    assert judged("order", crossing, events=ABC, key=("k",), slack=2).verdict == "undecided"


@pytest.mark.parametrize(("text", "losses", "verdict"), [
    ("bcabc", [], "fail"), ("bcabc", [(0, 5, 6, 1)], "undecided"), ("abc", [], "pass")])
def test_nothing_before_the_start(text, losses, verdict):
    assert judged("order", items(text), losses, events=ABC, same_node=True, fresh=True).verdict == verdict


def test_an_event_twice():
    with pytest.raises(UnfitError, match="twice"):
        judged("order", [], events={"events": (Event("a"), Event("b"), Event("a"))})


@pytest.mark.parametrize(("times", "losses", "verdict", "instances"), [
    ([(10, 12), (20, 21)], [], "pass", 2),
    ([(10, 12), (20, 27)], [], "fail", 2),
    ([(10, 12), (20, None)], [], "fail", 2),
    ([(10, 12), (98, None)], [], "undecided", 2),
    ([(10, 12), (20, 27)], [(0, 5, 6, 1)], "fail", 2),          # the second of node 0 is at 20 or earlier
    ([(10, 12), (20, 27), (28, None)], [(1, 18, 19, 1)], "undecided", 3),
    ([(10, 12), (20, 37), (28, 38), (36, None)], [(1, 18, 19, 1)], "fail", 4),          # one is not enough
    ([(10, 12), (20, 37), (28, 38), (36, None)], [(1, 18, 19, 2)], "undecided", 4),
    ([(10, 12), (20, 27)], [(0, 50, 51, 1)], "fail", 2),
    ([(10, 12), (20, 21)], [(0, 50, 51, 1)], "undecided", 2),
    ([(10, None)], [], "undecided", 0)])
def test_together(times, losses, verdict, instances):
    rows = [(t, node, "a", 0) for turn in times for node, t in enumerate(turn) if t is not None]
    found = judged("together", rows, losses, events={"event": "a"}, within=5)
    assert (found.verdict, found.instances) == (verdict, instances)


@pytest.mark.parametrize(("apart", "verdict"), [(4, "pass"), (5, "undecided"), (6, "undecided"), (7, "fail")])
@pytest.mark.parametrize("key", [(), ("k",)])
def test_together_of_uncertain_times(apart, verdict, key):
    rows = [(10, 0, "a", 0), (10 + apart, 1, "a", 0)]
    assert judged("together", rows, events={"event": "a"}, within=5, slack=1, key=key).verdict == verdict


@pytest.mark.parametrize(("rows", "losses", "verdict"), [
    ([(10, 0, 1), (12, 1, 1), (20, 1, 2), (21, 0, 2)], [], "pass"),
    ([(10, 0, 1), (16, 1, 1)], [], "fail"),
    ([(10, 0, 1), (12, 1, 1), (20, 0, 2)], [], "fail"),
    ([(10, 0, 1), (12, 1, 1), (20, 0, 2)], [(1, 18, 19, 1)], "undecided"),
    ([(10, 0, 1), (12, 1, 1), (20, 0, 2)], [(1, 58, 59, 1)], "fail"),
    ([(10, 0, 1), (12, 1, 1), (20, 0, 2)], [(0, 18, 19, 1)], "fail"),           # node 1 is missing, and lost nothing
    ([(10, 0, 1), (16, 1, 1)], [(1, 5, 6, 1)], "fail"),         # a loss shifts no number
    ([(10, 0, 1), (12, 1, 1)], [(1, 58, 59, 1)], "undecided")])
def test_together_by_key(rows, losses, verdict):
    items = [(t, node, "a", key) for t, node, key in rows]
    assert judged("together", items, losses, events={"event": "a"}, within=5, key=("k",)).verdict == verdict


def test_named_nodes():
    rows = [(10, 0, "a", 0), (50, 2, "a", 0), (11, 1, "a", 0)]
    assert judged("together", rows, events={"event": event("a", 0, 1)}, within=5, nodes=3).verdict == "pass"
    assert judged("together", rows, events={"event": event("a", 0, 1, 2)}, within=5, nodes=3).verdict == "fail"
    assert judged("together", rows[:1], events={"event": event("a", 0, 1)}, within=5, nodes=3).verdict == "fail"
