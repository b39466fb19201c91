"""Runs with stamps of half clocks, or of ports of 8 bits: placed, in order, and never mixed with others."""

import pytest
from hypermon.hdl.layout import LATENCY, BlockFlag, BlockType, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger

from tests.host.compact_write import encode, encode_items
from tests.host.fake_board import FakeBoard, block

SCALE = TimeScale(100_000_000, Window.CLOCK, LATENCY, phases=2)
HALF, BYTES = BlockFlag.EXTENDED | BlockFlag.HALF, BlockFlag.EXTENDED | BlockFlag.BYTES


def compact(sequence, items, flags=HALF, nodes=4, bits=4):
    return block(BlockType.COMPACT, encode(items, nodes, bits), nodes=nodes, window=Window.CLOCK, sequence=sequence,
                 time=items[0][0], flags=flags)


def account(data, *, nodes=4, scale=SCALE, **options):
    """Ledger, loss rows, and time, node, value of the events."""
    ledger = Ledger(nodes, scale, 1, **options)
    scanner = BlockScanner()
    events = []
    for items in (scanner.feed(data), scanner.finish()):
        for rows in ledger.event_rows(items):
            columns = rows.events(scale)
            events += zip(columns.time_ps.tolist(), columns.node.tolist(), columns.nibble.tolist(), strict=True)
    ledger.finish()
    return ledger, ledger.take_losses(), events


def test_times():
    """Latency 6: stamp 13 is the clock edge of time 0, 12 half a clock before it."""
    _, _, events = account(compact(0, [(12, 3, 1), (13, 0, 2), (14, 0, 3), (1013, 1, 4)]))
    assert events == [(-5000, 3, 1), (0, 0, 2), (5000, 0, 3), (5_000_000, 1, 4)]


def test_missing_items_are_placed_in_windows():
    """A window whose second half has begun may have lost no more than the rest of that half."""
    board = FakeBoard(nodes=4, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    parts = [[(10, 0, 1), (21, 3, 1)], [(23, 0, 1)], [(41, 0, 1)]]
    for stamps in parts:
        board.compact([(stamp // 2, node, nibble) for stamp, node, nibble in stamps])
    board.stop(50)
    blocks = [board.blocks[0], *(compact(k, items) for k, items in enumerate(parts, 1)), *board.blocks[4:]]
    ledger, rows, events = account(b"".join(blocks[:2] + blocks[3:]))
    assert (ledger.events, len(events)) == (3, 3)
    # Behind window 10, which is complete, and before the end of 20, whose first half is missing.
    begin, end = SCALE.span_ps(11, 20)
    assert rows == [(0, 1, begin, end)]
    # Stamps count, not windows: these are two.
    assert account(b"".join([blocks[0], compact(1, [(20, 0, 1), (21, 1, 1)])]))[0].frames == 2


def test_items_that_do_not_rise():
    data = compact(0, [(20, 2, 1)])
    assert not account(data + compact(1, [(21, 0, 1)]))[0].faults
    assert account(data + compact(1, [(20, 1, 1)]))[0].faults == {"items that do not rise": 1}


def test_late_items_are_put_where_they_belong():
    modes = ItemModes(events=0b10)
    late = [LongItem(100, 0, b"\1"), LongItem(97, 1, b"\1\2\3", late=True), LongItem(101, 0, b"\2")]
    data = block(BlockType.COMPACT, encode_items(late, modes, 2), nodes=2, window=Window.CLOCK, time=100,
                 flags=HALF | BlockFlag.ITEMS)
    ledger = Ledger(2, SCALE, 1, modes=modes, timeout_clocks=1000)
    assert not list(ledger.event_rows(BlockScanner().feed(data)))
    (rows,) = ledger.finish()
    assert rows.windows.tolist() == [97, 100, 101]
    assert rows.events(SCALE)["time_ps"].to_pylist() == [(stamp - 13) * 5000 for stamp in (97, 100, 101)]


@pytest.mark.parametrize(("run", "came"), [
    ({}, {"flags": BlockFlag.EXTENDED}),
    ({"scale": TimeScale(100_000_000, Window.CLOCK, LATENCY)}, {"flags": HALF}),
    ({}, {"flags": HALF | BlockFlag.BYTES, "bits": 8}), ({"port_bits": 8}, {"flags": HALF}),
])
def test_blocks_of_another_kind_are_left_out(run, came):
    ledger, _, events = account(compact(0, [(20, 2, 1)], **came), **run)
    assert not events
    assert sum(ledger.faults.values()) == 1


def test_bytes():
    scale = TimeScale(100_000_000, Window.CLOCK, LATENCY)
    _, _, events = account(compact(0, [(6, 3, 255), (7, 0, 16)], BYTES, bits=8), scale=scale, port_bits=8)
    assert events == [(0, 3, 255), (10_000, 0, 16)]


def test_the_flags_in_a_head():
    (found,) = BlockScanner().feed(compact(0, [(1, 0, 5)], HALF | BlockFlag.BYTES, bits=8))
    assert isinstance(found, Block)
    assert (found.head.phases, found.head.port_bits, found.head.items) == (2, 8, False)
