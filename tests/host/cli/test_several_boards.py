"""Several boards on one line of figures."""

from hypermon.host.cli.several_boards import _sum


def test_boards_that_have_not_said_anything_count_nothing():
    assert _sum([{"events": 3}, {}, {"events": 4, "lost": 1}], "events") == 7
    assert _sum([], "lost") == 0
