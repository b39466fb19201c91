"""Draining through registers after a link that was away: no group is out of step with its frames."""

import pytest
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import LinkError
from hypermon.host.record.drain import open_drain

from tests.host.fake_board import FakeBoard, FakeLink


def stamps(data: bytes) -> list[int]:
    """The stamps of the frames in blocks."""
    scanner = BlockScanner()
    blocks = [*scanner.feed(data), *scanner.finish()]
    assert all(isinstance(block, Block) for block in blocks)
    payload = b"".join(block.payload for block in blocks)
    return [int.from_bytes(payload[at + 12:at + 16], "little") for at in range(0, len(payload), 16)]


@pytest.mark.parametrize("words", [0, 1, 3])
def test_a_frame_that_was_read_in_part_is_read_to_its_end(words):
    """The board is in the middle of a frame: the rest of it is read and dropped, and nothing else."""
    link = FakeLink(FakeBoard().start().frames([(at, {0: 1}) for at in range(10, 16)]).stop(), trickle=1)
    device = Device(link)
    device.prepare(Settings())
    device.start(stream=False)
    drain = open_drain("registers", device)
    link.ready = 1
    assert stamps(drain.poll()) == [10]
    real = link.read_burst

    def torn(address, count):
        real(address, words) if words else None
        link.put(FRAME_POS=1 << 16 | words)
        link.read_burst, link.away = real, True
        raise LinkError("away")

    link.read_burst, link.away, link.ready = torn, True, 1
    assert stamps(drain.poll()) == []
    link.ready = 1
    following = stamps(drain.poll())
    assert following == ([12] if words else [11])
    assert [group[0] for group in drain.take_groups()] == [1, 1]
    assert drain.take_groups() == []


def test_a_link_that_is_not_away_has_failed():
    link = FakeLink(FakeBoard().start().frames([(10, {0: 1})]).stop())
    device = Device(link)
    device.prepare(Settings())
    device.start(stream=False)

    def broken(address, count):
        raise LinkError("broken")

    link.read_burst = broken
    with pytest.raises(LinkError, match="broken"):
        open_drain("registers", device).poll()


def test_more_frames_than_there_is_room_for():
    link = FakeLink(FakeBoard().start().stop())
    device = Device(link)
    device.prepare(Settings())
    device.start(stream=False)
    link.read = lambda address, read=link.read: 1 << 16 if address == link.by_name["RUN"] else read(address)
    with pytest.raises(LinkError, match="65,536 frames are reported waiting; the limit is 65,535"):
        open_drain("registers", device).poll()
