"""How boards are wired: stars, chains and trees, and what is none."""

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.record.wiring import DEPTH_MAX, Wiring


@pytest.mark.parametrize(("text", "parents", "topology", "depths", "order"), [
    ("star", (None, 0, 0, 0), "star", [0, 1, 1, 1], [1, 2, 3, 0]),
    ("chain", (None, 0, 1, 2), "chain", [0, 1, 2, 3], [3, 2, 1, 0]),
    ("0,0,1", (None, 0, 0, 1), "tree", [0, 1, 1, 2], [3, 1, 2, 0])])
def test_wirings(text, parents, topology, depths, order):
    wiring = Wiring.parse(text, 4)
    assert (wiring.parents, wiring.topology) == (parents, topology)
    assert [wiring.depth(board) for board in range(4)] == depths
    assert wiring.starting_order() == order
    assert sorted(own for board in range(4) for own in wiring.followers(board)) == [1, 2, 3]


@pytest.mark.parametrize(("text", "boards", "why"), [
    ("ring", 3, "expected star, chain"), ("0,", 3, "expected star"), ("0", 3, "1 numbers, and 2 boards follow"),
    ("0,2", 3, "board 2 cannot follow board 2"), ("-1,0", 3, "board 1 cannot follow board -1"),
    ("0,1,2,3", 5, f"4 wires one after the other, and a tree has at most {DEPTH_MAX}")])
def test_what_is_none(text, boards, why):
    with pytest.raises(HypermonError, match=why):
        Wiring.parse(text, boards)


def test_a_chain_may_be_long():
    assert Wiring.parse("chain", 20).depth(19) == 19
