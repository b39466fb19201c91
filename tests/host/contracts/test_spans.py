"""Duration, exclusion and share on small traces."""

import pytest
from hypermon.host.contracts.rules import Event

from tests.host.contracts.traces import judged

AB = {"begin": "a", "end": "b"}


def items(*rows):
    return [(t, node, name, 0) for t, node, name in rows]


@pytest.mark.parametrize(("rows", "losses", "values", "verdict"), [
    ([(10, 0, "a"), (14, 0, "b")], [], {"max": 5}, "pass"),
    ([(10, 0, "a"), (16, 0, "b")], [], {"max": 5}, "fail"),
    ([(10, 0, "a"), (14, 0, "b")], [], {"min": 5}, "fail"),
    ([(10, 0, "a"), (11, 0, "a"), (14, 0, "b"), (15, 0, "b")], [], {"max": 5}, "pass"),
    ([(10, 0, "a"), (14, 1, "b")], [], {"max": 5}, "fail"),         # the span of node 0 never ends
    ([(98, 0, "a")], [], {"max": 5}, "undecided"),
    ([(10, 0, "a")], [], {"min": 5}, "pass"),
    ([(10, 0, "b")], [], {"max": 50}, "undecided"),
    ([(10, 0, "a"), (16, 0, "b")], [(0, 12, 13, 2)], {"max": 5}, "undecided"),
    ([(10, 0, "a"), (16, 0, "b")], [(0, 22, 23, 2)], {"max": 5}, "fail"),
    ([(10, 0, "a"), (14, 0, "b")], [(0, 22, 23, 2)], {"max": 5}, "undecided"),
    ([(10, 0, "a"), (40, 0, "b")], [(0, 30, 31, 2)], {"max": 5}, "fail"),       # it was too long before
    ([(10, 0, "a"), (40, 0, "b")], [(0, 30, 31, 2)], {"min": 5}, "undecided"),
    ([(10, 0, "b"), (20, 0, "a"), (22, 0, "b")], [], {"max": 15}, "undecided"),      # it may have begun long before
    ([(10, 0, "b"), (20, 0, "a"), (21, 0, "a"), (22, 0, "b"), (23, 0, "b")], [], {"max": 15}, "undecided"),
    ([(20, 0, "a"), (21, 0, "a"), (22, 0, "b"), (28, 0, "b")], [], {"max": 5}, "fail"),
    ([(20, 0, "a"), (22, 0, "b"), (24, 0, "b")], [], {"max": 5}, "undecided"),
    ([], [], {"max": 5}, "undecided")])
def test_duration(rows, losses, values, verdict):
    assert judged("duration", items(*rows), losses, events=AB, same_node=True, **values).verdict == verdict


@pytest.mark.parametrize(("length", "values", "verdict"), [
    (4, {"max": 6}, "pass"), (5, {"max": 6}, "undecided"), (8, {"max": 6}, "undecided"), (9, {"max": 6}, "fail"),
    (8, {"min": 6}, "pass"), (7, {"min": 6}, "undecided"), (3, {"min": 6}, "fail")])
def test_duration_of_uncertain_times(length, values, verdict):
    rows = items((10, 0, "a"), (10 + length, 0, "b"))
    assert judged("duration", rows, events=AB, same_node=True, slack=2, **values).verdict == verdict


def test_a_span_that_began_before_the_start():
    """It is as long as the recording until its end, at least; unless its begin was lost."""
    rule = {"events": AB, "same_node": True}
    assert judged("duration", items((50, 0, "b")), min=50, **rule).verdict == "pass"
    assert judged("duration", items((50, 0, "b")), min=51, **rule).verdict == "undecided"
    assert judged("duration", items((50, 0, "b")), min=50, max=90, **rule).verdict == "undecided"
    found = judged("duration", items((50, 0, "b")), [(0, 20, 21, 1)], min=50, **rule)
    assert (found.verdict, found.undecided) == ("undecided", 2)         # the span, and the loss
    assert judged("duration", items((50, 0, "b")), min=50, slack=1, **rule).verdict == "undecided"


def test_an_end_of_another_node_that_was_lost():
    """Within the uncertainty of stamps, the lost end may have been the one of the span."""
    rows = items((10, 0, "a"), (20, 0, "b"))
    rule = {"events": AB, "same_node": False, "min": 8, "max": 12, "slack": 2}
    assert judged("duration", rows, **rule).verdict == "pass"
    assert judged("duration", rows, [(1, 22, 23, 1)], **rule).where[0].time_ps == 10
    assert judged("duration", rows, [(1, 23, 24, 1)], **rule).where[0].time_ps == 23


def test_the_share_of_uncertain_times():
    """Each span is off by the uncertainty once, not at both ends."""
    rule = {"events": AB, "slack": 2}
    rows = items((10, 0, "a"), (20, 0, "b"), (30, 0, "a"), (40, 0, "b"))
    for limit, verdict in ((0.24, "pass"), (0.23, "undecided"), (0.16, "undecided"), (0.15, "fail")):
        assert judged("share", rows, max=limit, **rule).verdict == verdict


def test_nothing_before_the_start():
    rows = items((10, 0, "b"), (20, 0, "a"), (22, 0, "b"))
    rule = {"events": AB, "max": 5, "same_node": True, "fresh": True}
    assert judged("duration", rows, **rule).verdict == "pass"
    assert judged("duration", rows, [(0, 5, 6, 1)], **rule).verdict == "undecided"
    assert judged("share", rows, events=AB, max=0.05, fresh=True).verdict == "pass"
    assert judged("share", rows, events=AB, max=0.05).verdict == "undecided"


def test_quantile():
    rows = [row for k in range(10) for row in ((10 * k, 0, "a"), (10 * k + 1 + k // 2, 0, "b"))]
    rule = {"events": AB, "same_node": True, "end": 200}
    found = judged("duration", items(*rows), max=3, quantile=0.5, **rule)
    assert (found.verdict, found.worst_ps, found.instances) == ("pass", 3, 10)
    assert judged("duration", items(*rows), max=2, quantile=0.5, **rule).verdict == "fail"
    assert judged("duration", items(*rows), [(0, 150, 151, 1)], max=3, quantile=0.5, **rule).verdict == "pass"
    assert judged("duration", items(*rows), [(0, 150, 151, 4)], max=3, quantile=0.5, **rule).verdict == "undecided"
    assert judged("duration", items(*rows), max=2, quantile=0.5, slack=1, **rule).verdict == "undecided"


ONE = {"spans": (Event("a"), Event("b"))}
TWO = {"spans": (Event("a"), Event("b"), Event("c"), Event("d"))}
OWN = {"spans": (Event("a"), Event("b"), Event("c", (1,)), Event("d", (1,)))}


@pytest.mark.parametrize(("rows", "losses", "events", "verdict"), [
    ([(10, 0, "a"), (14, 0, "b"), (15, 1, "a"), (18, 1, "b")], [], ONE, "pass"),
    ([(10, 0, "a"), (16, 0, "b"), (15, 1, "a"), (18, 1, "b")], [], ONE, "fail"),
    ([(10, 0, "a"), (14, 0, "b"), (15, 1, "c"), (18, 1, "d")], [], TWO, "pass"),
    ([(10, 0, "a"), (14, 0, "b"), (13, 1, "c"), (18, 1, "d")], [], TWO, "fail"),
    ([(10, 0, "a"), (14, 0, "b"), (15, 1, "c"), (18, 1, "d")], [(0, 16, 17, 1)], TWO, "undecided"),
    ([(10, 0, "a"), (14, 0, "b"), (15, 1, "c"), (18, 1, "d")], [(0, 5, 6, 1)], TWO, "undecided"),
    ([(10, 0, "a"), (14, 0, "b"), (15, 1, "c"), (18, 1, "d")], [(0, 5, 6, 1)], OWN, "pass"),
    ([(10, 0, "a"), (15, 1, "c"), (18, 1, "d")], [], TWO, "fail"),
    ([], [], ONE, "undecided")])
def test_exclusion(rows, losses, events, verdict):
    assert judged("exclusion", items(*rows), losses, events=events).verdict == verdict


def test_exclusion_of_uncertain_times():
    rows = items((10, 0, "a"), (14, 0, "b"), (15, 1, "a"), (18, 1, "b"))
    assert judged("exclusion", rows, events=ONE, slack=1).verdict == "pass"
    assert judged("exclusion", rows, events=ONE, slack=2).verdict == "undecided"


@pytest.mark.parametrize(("rows", "losses", "values", "verdict"), [
    ([(10, 0, "a"), (30, 0, "b")], [], {"min": 0.2, "max": 0.2}, "pass"),
    ([(10, 0, "a"), (30, 0, "b")], [], {"max": 0.1}, "fail"),
    ([(10, 0, "a"), (30, 0, "b")], [], {"min": 0.3}, "fail"),
    ([(30, 0, "b")], [], {"max": 0.2}, "undecided"),
    ([(90, 0, "a")], [], {"max": 0.1}, "pass"),
    ([(10, 0, "a"), (30, 0, "b")], [(0, 40, 41, 1)], {"max": 0.5}, "undecided"),
    ([(10, 0, "a"), (30, 0, "b"), (60, 0, "b")], [(0, 50, 51, 1)], {"max": 0.5}, "pass"),
    ([(10, 0, "a"), (30, 0, "b"), (60, 0, "b")], [(0, 50, 51, 1)], {"max": 0.25}, "undecided"),
    ([], [], {"max": 0.5}, "undecided")])
def test_share(rows, losses, values, verdict):
    assert judged("share", items(*rows), losses, events=AB, **values).verdict == verdict


def test_a_quantile_is_shown_where_the_span_is_longest():
    """The first one of these, if there are several."""
    rows = items((10, 0, "a"), (12, 0, "b"), (20, 1, "a"), (29, 1, "b"), (30, 0, "a"), (39, 0, "b"))
    found = judged("duration", rows, events=AB, same_node=True, max=5, quantile=1.0)
    assert [(place.time_ps, place.node) for place in found.where] == [(20, 1)]
