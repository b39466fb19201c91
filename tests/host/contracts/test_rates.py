"""Period and rate on small traces."""

import pytest

from tests.host.contracts.traces import judged


def ticks(*times, node=0):
    return [(t, node, "a", 0) for t in times]


@pytest.mark.parametrize(("times", "losses", "verdict", "failed", "worst"), [
    ((10, 20, 31, 40), [], "pass", 0, 1), ((10, 20, 40, 50), [], "fail", 1, 10), ((10, 20, 23, 30), [], "fail", 2, 7),
    ((10, 20, 40, 50), [(0, 28, 31, 1)], "undecided", 0, 10), ((10, 20, 30), [(0, 90, 91, 1)], "undecided", 0, 0),
    ((10, 20, 23, 30), [(0, 21, 22, 1)], "fail", 2, 7), ((10, 20, 30), [(1, 21, 22, 1)], "undecided", 0, 0),
    ((10,), [], "undecided", 0, None)])
def test_period(times, losses, verdict, failed, worst):
    found = judged("period", ticks(*times), losses, events={"event": "a"}, every=10, tolerance=1, same_node=True)
    assert (found.verdict, found.failed, found.worst_ps) == (verdict, failed, worst)


@pytest.mark.parametrize(("losses", "verdict"), [
    ([(0, 15, 35, 2)], "undecided"), ([(0, 15, 35, 1)], "fail"),            # 30 need two that were lost
    ([(0, 15, 20, 1), (0, 30, 35, 1)], "undecided"), ([(0, 21, 29, 1 << 40)], "undecided"),
    ([(0, 22, 28, 5)], "fail"), ([(0, 12, 27, 5)], "fail"),         # too far from what was seen
    ([(0, 12, 19, 5), (0, 30, 31, 9)], "undecided")])
def test_a_period_that_was_lost(losses, verdict):
    found = judged("period", ticks(10, 40), losses, events={"event": "a"}, every=10, tolerance=1, same_node=True)
    assert found.verdict == verdict
    both = judged("period", ticks(10) + ticks(40, node=1), losses, events={"event": "a"}, every=10, tolerance=1,
                  same_node=False)
    assert both.verdict == verdict


def test_too_few_whatever_was_lost():
    """One lost item is not two; after the loss, there is too long a time without any; a window may be full again."""
    rule = {"events": {"event": "a"}, "per": 12, "same_node": True}
    for least, losses, verdict in ((2, [(0, 46, 58, 1)], "fail"), (2, [(0, 46, 58, 2)], "undecided"),
                                   (1, [(0, 46, 47, 3)], "fail"), (1, [(0, 50, 52, 3)], "undecided")):
        times = [t for t in range(3, 99, 5) if not 45 < t < 62]
        assert judged("rate", ticks(*times), losses, min=least, **rule).verdict == verdict, (least, losses)


@pytest.mark.parametrize(("losses", "slack", "verdict"), [
    ([(0, 25, 26, 1)], 0, "pass"), ([(0, 49, 50, 9)], 0, "pass"), ([(0, 50, 51, 1)], 0, "undecided"),
    ([(0, 48, 49, 1)], 1, "pass"), ([(0, 49, 50, 1)], 1, "undecided"),
    ([(0, 9, 12, 1)], 0, "pass"), ([(0, 8, 12, 1)], 0, "undecided"),
    ([(1, 10, 60, 1)], 0, "pass"), ([(1, 10, 60, 2)], 0, "undecided"), ([(1, 10, 30, 2)], 0, "pass"),
    ([(1, 10, 11, 1), (1, 29, 30, 1)], 0, "pass"), ([(1, 10, 11, 1), (1, 30, 31, 1)], 0, "undecided")])
def test_a_lost_item_that_makes_no_period_too_long(losses, slack, verdict):
    """No event can be too early, and what was lost between two events makes their intervals shorter."""
    rule = {"events": {"event": "a"}, "every": 10, "tolerance": 10, "slack": slack}
    assert judged("period", ticks(30), losses, same_node=True, **rule).verdict == "undecided"     # no interval
    assert judged("period", ticks(29, 30), losses, same_node=True, **rule).verdict == verdict
    if not any(node for node, *_ in losses):
        both = judged("period", ticks(29) + ticks(30, node=1), losses, same_node=False, **rule)
        assert both.verdict == verdict


def test_period_names_missing_and_early_ones():
    found = judged("period", ticks(10, 20, 50, 53), events={"event": "a"}, every=10, tolerance=1, same_node=True)
    assert found.notes[1:] == ("2 missing", "1 too early")


def test_period_of_uncertain_times():
    rule = {"events": {"event": "a"}, "every": 10, "tolerance": 3, "same_node": True}
    assert judged("period", ticks(10, 21), slack=2, **rule).verdict == "pass"
    assert judged("period", ticks(10, 22), slack=2, **rule).verdict == "undecided"
    assert judged("period", ticks(10, 26), slack=2, **rule).verdict == "fail"
    assert judged("period", ticks(10, 18), slack=2, **rule).verdict == "undecided"
    loose = rule | {"tolerance": 10}
    assert judged("period", ticks(10, 12), slack=2, **loose).verdict == "pass"
    assert judged("period", ticks(10, 29), slack=2, **loose).verdict == "undecided"


@pytest.mark.parametrize(("times", "losses", "values", "verdict"), [
    ((10, 12, 30), [], {"max": 2}, "pass"), ((10, 12, 14), [], {"max": 2}, "fail"),
    ((10, 12), [(0, 15, 15, 1)], {"max": 2}, "undecided"), ((10, 12), [(0, 40, 42, 2)], {"max": 2}, "pass"),
    ((10, 12), [(0, 40, 42, 3)], {"max": 2}, "undecided"), ((), [], {"max": 2}, "undecided"),
    ((10, 12), [(1, 40, 42, 3)], {"max": 2}, "undecided"),
    ((10, 20, 30, 40, 50, 60, 70, 80, 90), [], {"min": 1}, "pass"),
    ((10, 20, 30, 50, 60, 70, 80, 90), [], {"min": 1}, "fail"),
    ((10, 20, 30, 50, 60, 70, 80, 90), [(0, 40, 40, 1)], {"min": 1}, "undecided"),
    ((10, 20, 60, 70, 80, 90), [(0, 50, 51, 1)], {"min": 1}, "fail"),       # nothing came before the loss
    ((10, 10, 10, 22), [], {"max": 3}, "pass"), ((10, 10, 10, 21), [], {"max": 3}, "fail"),
    ((10, 20, 30, 40), [], {"min": 1}, "fail"),
    ((10, 20, 30, 40, 50, 60, 70, 80, 90), [], {"min": 1, "max": 1}, "fail")])
def test_rate(times, losses, values, verdict):
    found = judged("rate", ticks(*times), losses, events={"event": "a"}, per=12, same_node=True, **values)
    assert found.verdict == verdict


@pytest.mark.parametrize(("times", "values", "verdict"), [
    ((10, 20), {"max": 1}, "undecided"), ((10, 21), {"max": 1}, "undecided"), ((10, 19), {"max": 1}, "fail"),
    ((10, 23), {"max": 1}, "undecided"), ((10, 24), {"max": 1}, "pass"),
    (range(10, 100, 10), {"min": 1}, "pass"), (range(11, 100, 11), {"min": 1}, "undecided")])
def test_rate_of_uncertain_times(times, values, verdict):
    found = judged("rate", ticks(*times), events={"event": "a"}, per=12, same_node=True, slack=2, **values)
    assert found.verdict == verdict


def test_rate_of_all_nodes():
    items = ticks(10, 40) + ticks(12, 42, node=1)
    assert judged("rate", items, events={"event": "a"}, per=12, max=1, same_node=True).verdict == "pass"
    assert judged("rate", items, events={"event": "a"}, per=12, max=1).verdict == "fail"
