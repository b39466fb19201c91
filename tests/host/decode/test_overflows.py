"""Overflow packets of an ITM: no events, and a loss each, however the stream is cut."""

import random

import pytest
from hypermon.hdl.layout import ITM_OVERFLOW, Sink, Window
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes

from tests.host.fake_board import FakeBoard
from tests.host.items import TIMEOUT, in_blocks, play


def packet(window, node, number):
    nibbles = (2, number & 15, number >> 4, 5, 0) if number != ITM_OVERFLOW else (1, 0, 4)
    return LongItem(window, node, bytes(nibbles), 0, False)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("late", [0, 90])
def test_an_overflow_is_a_loss_of_its_node(make_run, seed, late):
    """Node 1 has SWO, and node 0 a port, whose event with the same id is an event."""
    rng = random.Random(seed)
    modes, window, items = ItemModes.of([ItemMode.EVENT] * 2), 500, []
    for _ in range(300):
        window += rng.randrange(1, 2000)
        items.append(packet(window, rng.randrange(2), rng.choice((3, 31, 63, ITM_OVERFLOW))))
    board = FakeBoard(2, window=Window.CLOCK, sink=Sink.EXTENDED)
    run = make_run(play(rng, board, modes, in_blocks(rng, items, modes, 7)), modes=["event", "event"],
                   item_timeout_clocks=TIMEOUT, identity={"fronts": ["port", "swo"]},
                   configuration={"front_late_clocks": [0, late]})
    mine = [item for item in items if item.node == 1]
    expected = [k for k, item in enumerate(mine) if len(item.nibbles) == 3]
    figures = run.stats()
    assert figures["lost_per_node"] == [0, len(expected)]
    assert figures["causes"]["node"] == figures["lost"] == len(expected)
    assert figures["events_per_node"] == [len(items) - len(mine), len(mine) - len(expected)]
    assert (figures["surplus"], figures["accounted"], figures["complete"]) == (0, True, False)
    table = run.events()
    assert ITM_OVERFLOW not in [event for event, node in zip(*(table[name].to_pylist() for name in ("event", "node")),
                                                             strict=True) if node == 1]
    rows = run.loss().to_pylist()
    assert len(rows) == len(expected)
    for row, k in zip(rows, expected, strict=True):
        before = board.ps(mine[k - 1].window - late) if k else 0
        own = board.ps(mine[k].window - late)
        assert row["from_ps"] <= before
        assert own <= row["to_ps"] <= own + 20_000
        assert before - row["from_ps"] <= 40_000 or not k
