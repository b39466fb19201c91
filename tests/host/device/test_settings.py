"""Settings of an extended board, register by register."""

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Device, Settings
from hypermon.host.device.trigger import parse_match
from hypermon.host.errors import HypermonError

from tests.host.fake_board import FakeBoard, FakeLink


def board():
    return FakeLink(FakeBoard(nodes=5, clock_hz=35_000_000, window=Window.NS400, sink=Sink.EXTENDED).start())


def settings(**values):
    return Settings(Window.NS400, sink=Sink.EXTENDED, **values)


def test_a_mask_of_events_has_a_row_for_every_few_ids():
    """Each row is written once, with the ids that are to be left out."""
    link = board()
    written, write = [], link.write
    link.write = lambda address, value: (written.append((address, value)), write(address, value))
    left_out = {0, 7, 8, 17, 254, 255}
    kept = Device(link).prepare(settings(modes=ItemModes.of([ItemMode.EVENT] * 5), events_out=frozenset(left_out)))
    rows = [value for address, value in written if address == link.by_name["EVENT_MASK"]]
    width = 256 // len(rows)
    assert [value >> width for value in rows] == list(range(len(rows)))
    found = {width * (value >> width) + bit for value in rows for bit in range(width) if value >> bit & 1}
    assert found == left_out
    assert kept["events_out"] == sorted(left_out)


@pytest.mark.parametrize(("option", "text", "reason"), [
    ("start", "byte=7", "--start: fake has ports of 4 bits: nibble=V is the form for it"),
    ("stop", "byte=7", "--stop: fake has ports of 4 bits: nibble=V is the form for it"),
    ("start", "event=7", "--start: no node is in event mode; add --mode event"),
    ("stop", "node=5,nibble=1", "--stop"),
])
def test_triggers_that_the_board_cannot_have(option, text, reason):
    link = board()
    device = Device(link)
    link.write = None       # nothing is written
    with pytest.raises(HypermonError, match=reason):
        device.prepare(settings(**{option: parse_match(f"--{option}", text)}))


def test_masks():
    link = board()
    kept = Device(link).prepare(settings(nodes_kept=0x1f6, nibbles_kept=0b1000_0000_0000_0001))
    assert (kept["nodes_kept"], kept["nibbles_kept"]) == ([1, 2, 4], [0, 15])
    assert link.registers[link.by_name["NIBBLE_MASK"]] == 0x8001
    with pytest.raises(HypermonError, match="--mask nodes=0x20: the board has nodes 0 to 4, and none of them"):
        Device(board()).prepare(settings(nodes_kept=0x20))
    with pytest.raises(HypermonError, match="--mask events: no node is in event mode"):
        Device(board()).prepare(settings(events_out=frozenset({1})))
