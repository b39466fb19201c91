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
