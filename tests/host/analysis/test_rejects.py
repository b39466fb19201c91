"""Nodes of which a board rejects much: from which share and number on."""

from types import SimpleNamespace

import pytest
from hypermon.host.analysis.junk import LEAST, SHARE
from hypermon.host.analysis.rejects import rejecting


def nodes(fronts, items, rejected):
    info = SimpleNamespace(identity={"fronts": fronts}, late_clocks=None, clock_hz=10**8)
    return [(one.node, one.rejected, one.items) for one in rejecting(info, items, rejected)]


def test_from_a_number_on():
    assert nodes(["uart"] * 3, [0, 0, 0], [LEAST - 1, LEAST, LEAST + 1]) == [(1, LEAST, 0), (2, LEAST + 1, 0)]


def test_from_a_share_on():
    """Of all that came; a share of what was not rejected would be a smaller one."""
    count = 10 * LEAST
    most = round(count / SHARE) - count        # items beside so many that just make the share
    assert nodes(["uart"] * 3, [most - 1, most + 1, 0], [count] * 3) == [(0, count, most - 1), (2, count, 0)]
    beside = round(count / SHARE)              # the share of the items alone
    assert nodes(["swo"], [(most + beside) // 2], [count]) == []


@pytest.mark.parametrize("fronts", [None, [], ["port"]])
def test_ports_reject_no_bytes(fronts):
    assert nodes(fronts, [0], [10 * LEAST]) == []
