"""Response, precedence and absence on small traces."""

import pytest
from hypermon.host.contracts.rules import Event

from tests.host.contracts.traces import event, judged

A_B = {"after": "a", "expect": "b"}


@pytest.mark.parametrize(("items", "losses", "verdict", "failed", "undecided"), [
    ([(10, 0, "a", 0), (14, 1, "b", 0)], [], "pass", 0, 0),
    ([(10, 0, "a", 0), (26, 1, "b", 0)], [], "fail", 1, 0),
    ([(10, 0, "a", 0)], [], "fail", 1, 0),
    ([(9, 1, "b", 0), (10, 0, "a", 0)], [], "fail", 1, 0),
    ([(10, 0, "a", 0)], [(1, 15, 16, 1)], "undecided", 0, 2),       # the loss may be the answer, or another question
    ([(10, 0, "a", 0)], [(1, 25, 26, 1)], "fail", 1, 1),
    ([(10, 0, "a", 0), (14, 1, "b", 0)], [(1, 60, 61, 1)], "undecided", 0, 1),
    ([(95, 0, "a", 0)], [], "undecided", 0, 1),                     # it is due after the end
    ([(10, 0, "a", 0), (14, 1, "b", 0)], [(1, 11, 12, 1)], "pass", 0, 0),      # the same answer would do
    ([], [], "undecided", 0, 0)])
def test_response(items, losses, verdict, failed, undecided):
    found = judged("response", items, losses, events=A_B, max=10)
    assert (found.verdict, found.failed, found.undecided) == (verdict, failed, undecided)
    assert found.instances == sum(item[2] == "a" for item in items)


def test_response_by_key():
    items = [(10, 0, "a", 1), (11, 0, "a", 2), (12, 1, "b", 2), (13, 1, "b", 1)]
    assert judged("response", items, events=A_B, max=5, key=("k",)).verdict == "pass"
    assert judged("response", items[:3], events=A_B, max=5, key=("k",)).verdict == "fail"
    assert judged("response", items, events=A_B, max=5, same_node=True).verdict == "fail"


def test_uncertain_times():
    near = [(10, 0, "a", 0), (19, 1, "b", 0)]
    assert judged("response", near, events=A_B, max=10, slack=1).verdict == "pass"
    assert judged("response", near, events=A_B, max=10, slack=2).verdict == "undecided"
    assert judged("response", near, events=A_B, max=6, slack=2).verdict == "fail"
    assert judged("response", [(10, 0, "a", 0), (9, 1, "b", 0)], events=A_B, max=5, slack=2).verdict == "undecided"
    # The order of a node's own items is certain.
    assert judged("response", [(10, 0, "a", 0), (9, 0, "b", 0)], events=A_B, max=5, slack=2).verdict == "fail"
    assert judged("response", [(10, 0, "a", 0), (11, 0, "b", 0)], events=A_B, max=5, slack=2).verdict == "pass"


def test_uncertain_times_of_one_node():
    rule = {"events": A_B, "max": 6, "slack": 2}
    for after, alone, verdict in ((4, True, "pass"), (5, True, "undecided"), (7, True, "undecided"), (9, True, "fail"),
                                  (4, False, "pass"), (5, False, "undecided")):
        items = [(10, 0, "a", 0), (10 + after, 0, "b", 0)]
        assert judged("response", items, same_node=alone, **rule).verdict == verdict


def test_a_lost_trigger_at_any_of_its_times():
    """What answers the last of them does not answer the first."""
    items = [(10, 0, "a", 0), (12, 1, "b", 0), (45, 1, "b", 0)]
    assert judged("response", items, [(0, 36, 40, 1)], events=A_B, max=10).verdict == "pass"
    assert judged("response", items, [(0, 20, 40, 1)], events=A_B, max=10).verdict == "undecided"


def test_worst_and_places():
    items = [(10 * k, 0, "a", 0) for k in range(5)] + [(10 * k + k, 1, "b", 0) for k in range(1, 5)]
    found = judged("response", items, events=A_B, max=2)
    assert (found.verdict, found.failed, found.worst_ps) == ("fail", 3, 11)
    assert [(place.time_ps, place.node) for place in found.where] == [(0, 0), (30, 0), (40, 0)]


@pytest.mark.parametrize(("items", "losses", "within", "verdict"), [
    ([(50, 0, "b", 0), (55, 1, "a", 0)], [], 10, "pass"),
    ([(50, 0, "b", 0), (65, 1, "a", 0)], [], 10, "fail"),
    ([(55, 1, "a", 0)], [(0, 40, 50, 1)], 10, "undecided"),
    ([(55, 1, "a", 0)], [(0, 30, 40, 1)], 10, "fail"),
    ([(5, 1, "a", 0)], [], 10, "undecided"),                        # it may have come before the start
    ([(55, 1, "a", 0)], [], None, "undecided")])
def test_precedence(items, losses, within, verdict):
    values = {} if within is None else {"within": within}
    assert judged("precedence", items, losses, events={"event": "a", "needs": "b"}, **values).verdict == verdict


def test_nothing_before_the_start():
    rule = {"events": {"event": "a", "needs": "b"}, "fresh": True}
    assert judged("precedence", [(5, 1, "a", 0)], **rule).verdict == "fail"
    assert judged("precedence", [(55, 1, "a", 0)], [(0, 30, 40, 1)], **rule).verdict == "undecided"
    between = {"event": "a", "between": (Event("b"), Event("c"))}
    assert judged("absence", [(30, 0, "a", 0)], events=between, fresh=True).verdict == "pass"
    assert judged("absence", [(30, 0, "a", 0)], [(1, 20, 21, 1)], events=between, fresh=True).verdict == "undecided"


def test_absence():
    assert judged("absence", [(5, 0, "b", 0)], events={"event": "a"}).verdict == "pass"
    assert judged("absence", [(5, 0, "a", 0)], events={"event": "a"}).verdict == "fail"
    lost = judged("absence", [(5, 0, "b", 0)], [(1, 10, 12, 14)], events={"event": "a"})
    assert (lost.verdict, lost.undecided) == ("undecided", 1)
    assert lost.where[0].why == "node 1 lost 14 items between 0.00000000001 s and 0.000000000012 s"


@pytest.mark.parametrize(("items", "losses", "verdict"), [
    ([(10, 0, "b", 0), (20, 0, "c", 0), (30, 0, "a", 0)], [], "pass"),
    ([(10, 0, "b", 0), (15, 0, "a", 0), (20, 0, "c", 0)], [], "fail"),
    ([(10, 0, "b", 0), (15, 0, "a", 0)], [], "undecided"),          # the end may come after the recording
    ([(10, 0, "b", 0), (15, 0, "a", 0), (20, 0, "c", 0)], [(0, 12, 13, 1)], "undecided"),
    ([(10, 0, "b", 0), (20, 0, "c", 0)], [(1, 12, 13, 1)], "undecided"),
    ([(10, 0, "b", 0), (20, 0, "c", 0)], [(1, 32, 33, 1)], "pass"),
    ([(30, 0, "a", 0)], [], "undecided")])                          # the begin may have come before the recording
def test_absence_between(items, losses, verdict):
    between = judged("absence", items, losses, events={"event": "a", "between": (Event("b"), Event("c"))})
    assert between.verdict == verdict


def test_absence_between_uncertain_times():
    between = {"event": "a", "between": (Event("b"), Event("c"))}
    items = [(10, 1, "b", 0), (11, 0, "a", 0), (20, 1, "c", 0)]
    assert judged("absence", items, events=between).verdict == "fail"
    assert judged("absence", items, events=between, slack=2).verdict == "undecided"


@pytest.mark.parametrize(("edges", "losses"), [("bc", ()), ("bc", [(1, 1, 9, 1)]), ("cc", [(1, 1, 9, 1)])])
@pytest.mark.parametrize("same", [False, True])
def test_absence_between_what_was_lost_just_before(edges, losses, same):
    """An end or a begin that was not recorded, with an earlier stamp, may have come after the one that was."""
    first, last = edges
    at = 10 if losses else 0
    items = [(at, 0, first, 0), (at + 20, 0, "a", 0), (at + 40, 0, last, 0)]
    between = {"event": event("a", 0), "between": (Event("b"), Event("c"))}
    known = "fail" if first == "b" else "pass"
    found = [judged("absence", items, losses, events=between, slack=slack, same_node=same).verdict for slack in (0, 1)]
    assert found == [known, known if same else "undecided"]



@pytest.mark.parametrize(("items", "losses", "verdict"), [
    ([(10, 0, "b", 0), (30, 0, "a", 0)], [], "pass"),
    ([(10, 0, "b", 0), (14, 0, "a", 0)], [], "fail"),
    ([(10, 0, "b", 0)], [(1, 12, 13, 1)], "undecided"),
    ([(10, 0, "b", 0), (30, 0, "a", 0)], [(1, 27, 28, 1)], "undecided"),
    ([(10, 0, "b", 0), (30, 0, "a", 0)], [(1, 50, 51, 1)], "pass"),
    ([(10, 0, "b", 0), (30, 0, "a", 0)], [(1, 50, 51, 2)], "undecided"),     # they may be both
    ([(98, 0, "b", 0)], [], "undecided")])
def test_absence_after(items, losses, verdict):
    assert judged("absence", items, losses, events={"event": "a", "after": "b"}, within=5).verdict == verdict
