"""Verdicts from instances and gaps, and the reasons for them."""

import pytest
from hypermon.host.contracts.judged import gap_text, time_text
from hypermon.host.contracts.responses import absence
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.trace import MANY

from tests.host.contracts.traces import event, judged, traced


@pytest.mark.parametrize(("ps", "text"), [
    (0, "0.0 s"), (1_200_300_000_000, "1.2003 s"), (-60_000, "-0.00000006 s"), (12 * 10**12, "12.0 s")])
def test_times(ps, text):
    assert time_text(ps) == text


@pytest.mark.parametrize(("n", "cause", "said"), [
    (14, "loss", "node 3 lost 14 items between 1.2003 s and 1.2019 s"),
    (1, "loss", "node 3 lost 1 item between"), (MANY, "loss", "no event of node 3 can be framed between"),
    (MANY + 5, "loss", "node 3 lost 5 items between"), (1, "aborted", "node 3 began an item at 1.2003 s"),
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


def test_items_of_another_run_decide_nothing():
    trace = traced([(5, 0, "a", 0)])
    trace.sure = False
    found = absence(trace, Rule("x", "absence", 1, {"event": event("a")}))
    assert found.verdict == "undecided"
    assert found.notes == ("blocks of another run are in the stream: nothing is decided",)
