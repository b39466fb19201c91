"""Verdicts from instances and gaps, and the reasons for them."""

import pytest
from hypermon.host.contracts.judged import gap_text, time_text
from hypermon.host.contracts.responses import absence
from hypermon.host.contracts.rules import Event, Rule
from hypermon.host.contracts.trace import MANY

from tests.host.contracts.traces import event, judged, traced


@pytest.mark.parametrize(("ps", "text"), [
    (0, "0.0 s"), (1_200_300_000_000, "1.2003 s"), (-60_000, "-0.00000006 s"), (12 * 10**12, "12.0 s")])
def test_times(ps, text):
    assert time_text(ps) == text


@pytest.mark.parametrize(("n", "cause", "said"), [
    (14, "loss", "node 3 lost 14 items between 1.2003 s and 1.2019 s"),
    (1, "loss", "node 3 lost 1 item between"), (MANY, "framing", "no event of node 3 can be framed between"),
    (MANY + 5, "framing", "can be framed between 1.2003 s and 1.2019 s, because 5 items were lost there"),
    (MANY + 1, "framing", "because 1 item was lost there"),
    (MANY + 5, "loss", "node 3 lost 5 items or more between"), (1, "aborted", "node 3 began an item at 1.2003 s"),
    (2, "filter", "2 items that may be of node 3 were"), (1, "masked", "1 item that may be of node 3 was discarded by"),
    (MANY, "unsure", "more of node 3 may be missing"), (MANY, "end", "nothing is known after 1.2002"),
    (MANY, "start", "nothing is known before 1.2019")])
def test_reasons(n, cause, said):
    assert said in gap_text(3, 1_200_300_000_000, 1_201_900_000_000, n, cause)


def test_places_are_ten_failures_first():
    items = [(k, 0, "a", 0) for k in range(20)]
    found = judged("absence", items, [(1, 0, 1, 1)], events={"event": "a"})
    assert len(found.where) == 10
    assert all(place.failed for place in found.where)
    assert (found.failed, found.undecided) == (20, 1)


@pytest.mark.parametrize(("kind", "items", "values", "events", "said", "value"), [
    ("response", [(5, 0, "a", 0), (45, 0, "b", 0)], {"max": 10}, ("after", "expect"), "the answer comes after 40 ps",
     40),
    ("response", [(5, 0, "a", 0)], {"max": 10}, ("after", "expect"), "there is no answer in time", None),
    ("response", [(5, 0, "a", 0), (8, 0, "b", 0)], {"min": 10, "max": 20}, ("after", "expect"),
     "there is no answer in time", None),
    ("precedence", [(5, 0, "b", 0), (45, 0, "a", 0)], {"within": 10}, ("event", "needs"),
     "the last one that it needs came 40 ps before", 40),
    ("absence", [(5, 0, "a", 0), (9, 0, "b", 0)], {"within": 10}, ("after", "event"), "one comes after 4 ps", 4),
    ("absence", [(5, 0, "a", 0)], {}, ("event",), "it is there", None),
    ("duration", [(5, 0, "a", 0), (45, 0, "b", 0)], {"max": 10}, ("begin", "end"), "it lasts 40 ps", 40),
    ("duration", [(5, 0, "a", 0)], {"max": 10}, ("begin", "end"), "it does not end in time", None),
    ("duration", [(5, 0, "a", 0), (45, 0, "b", 0)], {"max": 10, "quantile": 0.5}, ("begin", "end"), "", None),
    ("period", [(5, 0, "a", 0), (45, 0, "a", 0)], {"every": 10, "tolerance": 1}, ("event",), "it is off by 30 ps", 30),
    ("together", [(5, 0, "a", 0), (45, 1, "a", 0)], {"within": 10}, ("event",), "they are 40 ps apart", 40),
    ("rate", [(5, 0, "a", 0), (6, 0, "a", 0)], {"per": 10, "max": 1}, ("event",), "", None)])
def test_a_violation_says_by_how_much(kind, items, values, events, said, value):
    found = judged(kind, items, [], events=dict(zip(events, "ab", strict=False)), end=200, **values)
    assert found.verdict == "fail"
    place = found.where[0]
    assert (place.why, place.value_ps) == (f"violated: {said}" if said else "violated", value)


@pytest.mark.parametrize("lines", [True, False])
def test_a_loss_of_the_trigger_is_no_reason(lines):
    """The answer may come after the end of the recording. What the asking node lost could only be another question."""
    found = judged("response", [(90, 0, "a", 0)], [(0, 93, 94, 1)], same_node=False, end=100, max=50,
                   events={"after": (Event("a", (0,)),), "expect": (Event("b", (1,)),)}, key=() if lines else ("k",))
    assert {place.time_ps: place.why for place in found.where}[90] == (
        "nothing is known after 0.0000000001 s, where the recording of node 1 ends")


def test_a_node_that_is_missing_is_no_spread():
    found = judged("together", [(55, 0, "a", 0), (57, 1, "a", 0), (85, 2, "a", 1)], nodes=3, key=("k",),
                   events={"event": "a"}, end=200, within=10)
    assert [place.why for place in found.where if place.failed] == ["violated: some nodes have none in time"] * 2


def test_items_of_another_run_decide_nothing():
    trace = traced([(5, 0, "a", 0)])
    trace.sure = False
    found = absence(trace, Rule("x", "absence", 1, {"event": event("a")}))
    assert found.verdict == "undecided"
    assert found.notes == ("blocks of another run are in the stream: nothing is decided",)
