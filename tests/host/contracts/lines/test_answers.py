"""What is sorted out as answered; the verdicts on all kinds of traces are in :mod:`.test_sieves`."""

import numpy as np
import pytest
from hypermon.host.contracts.lines.answers import Reach, answered, mirrored

from tests.host.contracts.traces import event, traced


def rest(asked, answers, losses=(), **reach):
    """The times that are left to the judge, and how many are sorted out."""
    trace = traced([], losses, end=1000)
    trace.gaps(event("b"))
    lines = [[np.array(line, np.int64) for line in kind] for kind in (asked, answers)]
    found = answered(trace, *lines, Reach(**{"least": 0, "most": 10, "own": 1, "apart": 2, "alone": True,
                                             "absent": False} | reach))
    return [t for t, in trace.db.execute("select t from staged order by t").fetchall()], found.count


@pytest.mark.parametrize(("reach", "left"), [
    ({}, [300, 500]),                                               # 9 is in time for sure, 10 may be, none is not
    ({"most": 11}, [500]),
    ({"least": 4}, [100, 300, 500]),                                # 3 may be too early
    ({"absent": True}, [100, 200, 300]),
    ({"absent": True, "most": 2}, [100])])
def test_answers_of_the_same_node(reach, left):
    asked, answers = [[100, 200, 300, 500], []], [[103, 209, 310], [501]]
    assert rest(asked, answers, **reach) == (left, 4 - len(left))


def test_answers_of_any_node():
    asked, answers = [[100, 200], [300, 400]], [[305], [108, 209]]
    assert rest(asked, answers, alone=False) == ([200, 400], 2)
    assert rest(asked, answers, alone=False, absent=True) == ([100, 200, 300], 1)


def test_a_gap_is_a_doubt_about_what_is_absent():
    assert rest([[100, 200], []], [[], []], [(0, 105, 106, 1)], absent=True) == ([100], 1)
    assert rest([[100, 200], []], [[], []], [(1, 105, 106, 1)], absent=True) == ([], 2)


def test_mirrored():
    assert [line.tolist() for line in mirrored([np.array([1, 5]), np.array([], np.int64)])] == [[-5, -1], []]
