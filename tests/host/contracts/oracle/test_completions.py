"""Complete traces that agree with a recorded one: all that are drawn, and all that are found step by step."""

import random
from itertools import pairwise

import pytest

from tests.host.contracts.oracle.brute_force import possible, within
from tests.host.contracts.oracle.completions import EVENTS, Recorded, climbed, completion, made_up


def agrees(full, trace):
    """Whether a recording of a complete trace may be this one."""
    seen = {(stamp, node): (event, key) for stamp, node, event, key in trace.items}
    assert [item[0] for item in full] == sorted(item[0] for item in full)
    assert all(0 <= at - stamp <= trace.slack for at, stamp, *_ in full)
    assert trace.start <= full.first <= trace.start + trace.slack
    assert trace.end <= full.last <= trace.end + trace.slack
    for node in range(trace.nodes):
        own = [item for item in full if item[2] == node]
        assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(own))
    lost = []
    for _, stamp, node, event, key in full:
        if (stamp, node) in seen:
            assert seen.pop((stamp, node)) == (event, key)
        elif trace.start <= stamp <= trace.end:
            lost.append((stamp, node))
    assert not seen
    # Each item is of a loss, and none is of more than it lost: narrow losses first.
    room = sorted(([hi - lo, node, lo, hi, most] for node, lo, hi, most in trace.losses))
    return _fits(lost, room)


def _fits(lost, room):
    if not lost:
        return True
    (stamp, node), *others = lost
    for loss in room:
        if loss[1] == node and loss[2] <= stamp <= loss[3] and loss[4]:
            loss[4] -= 1
            if _fits(others, room):
                return True
            loss[4] += 1
    return False


def test_all_agree_with_the_recording():
    rng = random.Random(1)
    drawn = []
    for _ in range(150):
        trace = made_up(rng)
        drawn += [(full, trace) for _ in range(10) if (full := completion(rng, trace)) is not None]

        def kept(full, trace=trace, drawn=drawn):
            drawn.append((full, trace))
            return 1 + rng.randrange(3)

        climbed(rng, kept, trace, EVENTS, 40, set())
    assert len(drawn) > 5000
    assert all(agrees(full, trace) for full, trace in drawn)
    assert any(len(full) > len(trace.items) + 6 for full, trace in drawn)


@pytest.mark.parametrize("kind", ["response", "precedence"])
def test_climbing_finds_what_is_rare(kind):
    """Each of nine events needs one of its own outside the recording: by chance, few completions have all."""
    items = [(4 * k + node, node, "a", key) for node in range(3) for k, key in enumerate((0, 1, 2))]
    trace, rule = Recorded(items, [], 0, 16, 3, 0), {"key": True, "same_node": True}
    assert possible(random.Random(2), kind, rule, trace, EVENTS, 300) == {False}
    assert possible(random.Random(2), kind, rule, trace, EVENTS, 0, 1500) == {False, True}


def test_what_came_before_the_recording_is_in_no_scope():
    """Not even in one that is on from the start."""
    full = [(-2, -2, 0, "a", 0), (3, 3, 0, "b", 0), (5, 5, 0, "e", 0), (7, 7, 0, "a", 0)]
    assert within({"scope": {"to": "e"}}, Recorded([], [], 0, 10, 1, 0), full)[0] == [None, 0, None, None]
