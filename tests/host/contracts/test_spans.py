"""Duration, exclusion and share on small traces."""

import duckdb
import pytest
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import Event, Rule, Scope

from tests.host.contracts.traces import event, judged, traced

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


@pytest.mark.parametrize(("loss", "values", "verdict"), [
    ((0, 18, 20, 1), {"max": 5}, "fail"), ((0, 18, 21, 1), {"max": 5}, "undecided"),
    ((0, 30, 32, 1), {"min": 12}, "fail"), ((0, 29, 32, 1), {"min": 12}, "undecided")])
def test_an_item_that_was_lost_beside_one_that_was_seen(loss, values, verdict):
    """Stamps of a node differ, so that it came before the begin, or after the end."""
    rule = {"events": AB, **values}
    assert judged("duration", items((20, 0, "a"), (30, 0, "b")), [loss], same_node=True, **rule).verdict == verdict
    assert judged("duration", items((20, 0, "a"), (30, 0, "b")), [loss], nodes=1, **rule).verdict == verdict


def test_a_begin_that_was_lost_long_before():
    rule = {"events": AB, "same_node": True}
    for least, undecided in ((15, 0), (29, 1), (30, 2)):
        found = judged("duration", items((50, 0, "b")), [(0, 20, 21, 1)], min=least, **rule)
        assert (found.verdict, found.undecided) == ("undecided" if undecided else "pass", undecided)


def test_one_node_alone():
    """Whether or not spans are of one node: all are."""
    rows = items((96, 0, "a"), (97, 0, "a"))
    assert judged("duration", rows, events=AB, nodes=1, max=5).verdict == "fail"
    assert judged("duration", rows, events=AB, nodes=2, max=5).verdict == "undecided"


def test_a_span_that_began_before_the_start():
    """It is as long as the recording until its end, at least; unless its begin was lost."""
    rule = {"events": AB, "same_node": True}
    assert judged("duration", items((50, 0, "b")), min=50, **rule).verdict == "pass"
    assert judged("duration", items((50, 0, "b")), min=51, **rule).verdict == "pass"
    assert judged("duration", items((50, 0, "b")), min=52, **rule).verdict == "undecided"
    assert judged("duration", items((50, 0, "b")), min=50, max=90, **rule).verdict == "undecided"
    found = judged("duration", items((50, 0, "b")), [(0, 20, 21, 1)], min=50, **rule)
    assert (found.verdict, found.undecided) == ("undecided", 2)         # the span, and the loss
    assert judged("duration", items((50, 0, "b")), min=51, slack=1, **rule).verdict == "undecided"


@pytest.mark.parametrize(("losses", "verdict"), [
    ([(0, 50, 51, 1)], "pass"), ([(0, 50, 51, 2)], "undecided"),
    ([(0, 20, 25, 1)], "pass"), ([(0, 20, 26, 1)], "undecided"),        # a begin just before the end that was seen
    ([(0, 15, 16, 1)], "pass"), ([(0, 14, 15, 1)], "undecided"),        # an end just after the begin that was seen
    ([(0, 95, 96, 1)], "pass"), ([(0, 96, 97, 1)], "undecided"),        # a begin just before the end of the recording
    ([(0, 4, 5, 1)], "pass"), ([(0, 3, 4, 1)], "undecided"),            # an end just after its start
    ([(0, 50, 51, 1), (0, 56, 57, 1)], "pass"), ([(0, 50, 51, 1), (0, 55, 56, 1)], "undecided"),
    ([(1, 50, 51, 1), (0, 55, 56, 1)], "pass")])
def test_a_lost_item_that_makes_no_span_too_short(losses, verdict):
    rule = {"events": AB, "same_node": True, "min": 5}
    assert judged("duration", items((10, 0, "a"), (30, 0, "b")), losses, **rule).verdict == verdict
    if not any(node for node, *_ in losses):
        assert judged("duration", items((10, 0, "a"), (30, 0, "b")), losses, **rule | {"same_node": False}
                      ).verdict == verdict


@pytest.mark.parametrize(("begins", "verdict"), [
    ([(96, 0)], "undecided"), ([(95, 0)], "fail"), ([(97, 0), (98, 0)], "undecided"), ([(96, 0), (97, 0)], "fail"),
    ([(96, 0), (97, 1)], "undecided")])
def test_what_is_open_at_the_end_ends_later(begins, verdict):
    """Each at a time of its own, the last one first."""
    rows = items(*((t, node, "a") for t, node in begins))
    assert judged("duration", rows, events=AB, same_node=True, max=5).verdict == verdict


def test_begins_of_two_nodes_at_the_same_time():
    """Whichever came first, the durations are the same; but an end must not have come between them."""
    rule = {"events": AB, "same_node": False, "slack": 2}
    rows = items((10, 0, "a"), (11, 1, "a"), (20, 0, "b"), (21, 1, "b"))
    assert judged("duration", rows, min=1, max=20, **rule).verdict == "pass"
    assert judged("duration", rows, max=5, **rule).verdict == "fail"
    # If the end of 26 came before the begin of 25, spans of 5 and 4.5.
    rows = items((21, 0, "a"), (25, 1, "a"), (26, 0, "b"), (31, 1, "b"))
    assert judged("duration", rows, max=5, **rule).verdict == "undecided"
    assert judged("duration", rows, max=5, **rule | {"slack": 0}).verdict == "fail"


def test_an_end_of_another_node_that_was_lost():
    """Within the uncertainty of stamps, the lost end may have been the one of the span."""
    rows = items((10, 0, "a"), (20, 0, "b"))
    rule = {"events": AB, "same_node": False, "min": 8, "max": 12, "slack": 2}
    assert judged("duration", rows, **rule).verdict == "pass"
    assert judged("duration", rows, [(1, 22, 23, 1)], **rule).where[0].time_ps == 10
    assert judged("duration", rows, [(1, 23, 24, 1)], **rule).where[0].time_ps == 23


def test_the_share_of_uncertain_times():
    """Each span is off by the uncertainty once, not at both ends, and so is the time of the recording."""
    rule = {"events": AB, "slack": 2}
    rows = items((10, 0, "a"), (20, 0, "b"), (30, 0, "a"), (40, 0, "b"))
    for limit, verdict in ((0.25, "pass"), (0.24, "undecided"), (0.16, "undecided"), (0.15, "fail")):
        assert judged("share", rows, max=limit, **rule).verdict == verdict


def test_the_share_of_what_is_all_inside_or_all_outside():
    """It is off by the uncertainty once, as any span."""
    rule = {"events": AB, "min": 0.3, "slack": 2}
    for limit, verdict in ((0.86, "fail"), (0.87, "undecided")):
        assert judged("share", items((90, 0, "b")), max=limit, **rule).verdict == verdict


def test_the_share_of_a_recording_that_may_be_shorter():
    """A span of at most 4 is 30 % of 13, the least that a recording of 15 may last, and less than 30 % of 15."""
    rows, rule = items((4, 0, "a"), (6, 0, "b")), {"events": AB, "end": 15, "fresh": True}
    assert judged("share", rows, min=0.3, slack=2, **rule).verdict == "undecided"
    assert judged("share", rows, min=0.31, slack=2, **rule).verdict == "fail"
    assert judged("share", rows, max=0.27, slack=2, **rule).verdict == "undecided"
    assert judged("share", rows, max=0.31, slack=2, **rule).verdict == "pass"


@pytest.mark.parametrize(("rows", "end", "slack", "limits", "verdict"), [
    # Inside for 5 to 9, outside for at most 3.
    (((1, "a"),), 8, 2, {"max": 0.62}, "fail"),
    (((1, "a"),), 8, 2, {"max": 0.63}, "undecided"),
    # Inside for at most 5, outside for at least 3.
    (((4, "a"),), 8, 1, {"max": 0.625}, "pass"),
    (((4, "a"),), 8, 1, {"max": 0.62}, "undecided"),
    # Without a maximum no share is too large.
    (((0, "a"),), 15, 1, {"min": 0.1}, "pass"),
    # Inside for 24 to 36, outside for 66 to 76, also before the first: one span of each is between others.
    (((0, "a"), (10, "b"), (20, "a"), (30, "b"), (90, "a")), 100, 2, {"min": 0.24, "max": 36 / 102}, "pass"),
    (((0, "a"), (10, "b"), (20, "a"), (30, "b"), (90, "a")), 100, 2, {"min": 0.241}, "undecided"),
    (((0, "a"), (10, "b"), (20, "a"), (30, "b"), (90, "a")), 100, 2, {"max": 0.3529}, "undecided"),
    (((0, "a"), (10, "b"), (20, "a"), (30, "b"), (90, "a")), 100, 2, {"max": 0.239}, "fail"),
    (((0, "a"), (10, "b"), (20, "a"), (30, "b"), (90, "a")), 100, 2, {"min": 0.353}, "fail"),
])
def test_the_share_of_the_time_inside_and_outside(rows, end, slack, limits, verdict):
    """What is longer by the uncertainty of a stamp makes the whole longer, too, or what is beside it shorter."""
    rows = items(*((time, 0, name) for time, name in rows))
    assert judged("share", rows, events=AB, end=end, slack=slack, **limits).verdict == verdict


@pytest.mark.parametrize("scope", [None, Scope((), event("e")), Scope((), event("e"), True)])
def test_a_named_node_that_writes_nothing(scope):
    """It may have none of the events: the rule is about nodes that have. It does not pass by such a node alone."""
    rows = items((10, 1, "a"), (60, 1, "b"), (100, 1, "e"), (100, 0, "e"))

    def verdict(*nodes, **values):
        rule = Rule("rule", "share", 1, {"begin": event("a", *nodes), "end": event("b", *nodes)}, (), False, values,
                    scope=scope)
        with duckdb.connect(config={"threads": 1}) as db:
            trace = traced(rows, db=db)
            trace.fresh = True
            found = JUDGES["share"](trace, rule)
            return found.verdict, [place.why for place in found.where]

    silent = "the node is not seen to write any of the events"
    assert verdict(1, min=0.4, max=0.6) == ("pass", [])
    assert verdict(0, 1, max=0.6) == ("pass", [])
    assert verdict(0, 1, min=0.4) == verdict(0, min=0.4) == ("undecided", [silent])
    assert verdict(0, max=0.6) == ("undecided", [])
    assert verdict(0, 1, min=0.6)[0] == "fail"


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
    ([(90, 0, "b")], [], {"min": 0.3, "max": 0.6}, "fail"),             # all of 0.9, or nothing
    ([(90, 0, "b")], [], {"min": 0.3, "max": 0.9}, "undecided"),
    ([(90, 0, "b")], [(0, 20, 21, 1)], {"min": 0.3, "max": 0.6}, "fail"),
    ([(90, 0, "b")], [(0, 20, 30, 1)], {"min": 0.3, "max": 0.6}, "undecided"),
    ([(90, 0, "b")], [(0, 40, 41, 1)], {"min": 0.3, "max": 0.6}, "undecided"),
    ([(5, 0, "a"), (6, 0, "b")], [(0, 20, 21, 1)], {"min": 0.3, "max": 0.6}, "fail"),
    ([(5, 0, "a"), (6, 0, "b")], [(0, 50, 51, 1)], {"min": 0.3, "max": 0.6}, "undecided"),
    ([(30, 0, "a"), (65, 0, "b")], [(0, 69, 70, 1)], {"min": 0.3, "max": 0.6}, "undecided"),
    ([(5, 1, "a"), (50, 1, "b")], [(0, 90, 91, 1)], {"min": 0.3, "max": 0.6}, "undecided"),
    ([], [], {"max": 0.5}, "undecided")])
def test_share(rows, losses, values, verdict):
    assert judged("share", items(*rows), losses, events=AB, **values).verdict == verdict


def test_a_quantile_is_shown_where_the_span_is_longest():
    """The first one of these, if there are several."""
    rows = items((10, 0, "a"), (12, 0, "b"), (20, 1, "a"), (29, 1, "b"), (30, 0, "a"), (39, 0, "b"))
    found = judged("duration", rows, events=AB, same_node=True, max=5, quantile=1.0)
    assert [(place.time_ps, place.node) for place in found.where] == [(20, 1)]
