"""The block scanner returns each whole block, and nothing else as a block."""

import random
import struct

import pytest
from hypermon.hdl.layout import BLOCK_MAGIC, BlockFlag, BlockType
from hypermon.host.blocks import blocks_joined
from hypermon.host.blocks.block_scanner import BlockScanner, single_blocks
from hypermon.host.blocks.blocks import PAYLOAD_MAX, Block, Torn
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.fake_board import FakeBoard, block, random_run


def scan(data: bytes, cuts=(), join=False):
    scanner, items, at = BlockScanner(join), [], 0
    for cut in [*sorted(cuts), len(data)]:
        items += scanner.feed(data[at:cut])
        at = cut
    items += scanner.finish()
    return items


def whole(items):
    return [i for i in items if isinstance(i, Block)]


def plain(item):
    return item._replace(payload=bytes(item.payload), joined=None) if isinstance(item, Block) else item


def test_a_full_block():
    [item] = scan(block(BlockType.FRAMES, bytes(PAYLOAD_MAX)))
    assert (len(item.payload), item.size) == (PAYLOAD_MAX, 65536)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 5000)))
def test_pieces_of_any_size_give_the_same(seed, cuts):
    rng = random.Random(seed)
    data = random_run(FakeBoard(nodes=rng.choice([3, 16, 17])), rng, 4).data
    data = data[:2000] + rng.randbytes(rng.randint(0, 99)) + data[2000:]
    assert [plain(i) for i in scan(data, [min(c, len(data)) for c in cuts])] == [plain(i) for i in scan(data)]


def test_byte_by_byte():
    blocks = random_run(FakeBoard(), random.Random(5), 3).blocks
    data = b"HMONHM" + blocks[0] + b"torn" + blocks[1] + b"".join(blocks[2:]) + b"HMO"
    assert len(whole(scan(data))) == len(blocks)
    assert [plain(i) for i in scan(data, range(len(data)))] == [plain(i) for i in scan(data)]


def test_cut_at_every_byte_gives_every_whole_block():
    board = random_run(FakeBoard(nodes=2), random.Random(1), 4, losses=1)
    ends = [sum(map(len, board.blocks[:k + 1])) for k in range(len(board.blocks))]
    data = board.data
    for cut in range(len(data) + 1):
        items = scan(data[:cut])
        count = sum(end <= cut for end in ends)
        rest = cut - (ends[count - 1] if count else 0)
        assert [i.offset + i.size for i in items[:count]] == ends[:count]
        assert [type(i) for i in items[count:]] == ([Torn] if rest else [])
        assert rest == 0 or (items[-1].offset, items[-1].size) == (cut - rest, rest)


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_corruption_never_makes_a_block(seed, hits):
    """Every block that is given is one that was sent; every one that was not hit is given."""
    rng = random.Random(seed)
    board = random_run(FakeBoard(nodes=rng.choice([1, 16, 32])), rng, 6, losses=0.5)
    data = bytearray(board.data)
    hit = {rng.randrange(len(data)) for _ in range(hits)}
    for at in hit:
        data[at] ^= rng.randint(1, 255)
    items = scan(bytes(data))
    at, untouched = 0, []
    for b in board.blocks:
        if not hit & set(range(at, at + len(b))):
            untouched.append((at, b))
        at += len(b)
    assert [(b.offset, data[b.offset:b.offset + b.size]) for b in whole(items)] == untouched
    assert sum(i.size for i in items) == len(data)


@given(st.integers(0, 2**32))
def test_bytes_lost_or_inserted(seed):
    rng = random.Random(seed)
    board = random_run(FakeBoard(), rng, 6)
    data, sent = board.data, set(board.blocks)
    at, size = rng.randrange(len(data)), rng.randint(1, 300)
    data = data[:at] + (rng.randbytes(size) + data[at:] if rng.random() < 0.5 else data[at + size:])
    items = scan(data)
    given_blocks = [data[b.offset:b.offset + b.size] for b in whole(items)]
    assert set(given_blocks) <= sent
    assert len(given_blocks) >= len(sent) - 2 - size // min(map(len, sent))


def test_block_inside_a_torn_one_is_found():
    """If the length of a block is damaged, the blocks after it are still found, also at the end of the stream."""
    board = FakeBoard().start().frames([(1, {0: 1})]).frames([(2, {0: 2})])
    data = bytearray(board.data)
    at = len(board.blocks[0])
    data[at + 12:at + 16] = struct.pack("<I", 4096)
    items = scan(bytes(data))
    assert [b.sequence for b in whole(items)] == [0, 2]
    assert [i for i in items if isinstance(i, Torn)] == [Torn(at, len(board.blocks[1]), "a block is cut short")]


@pytest.mark.parametrize(("change", "reason"), [
    ({"version": 2}, "format version 2"), ({"type": 9}, "unknown type 9"), ({"nodes": 0}, "makes no sense"),
    ({"nodes": 33}, "makes no sense"), ({"clock_hz": 7}, "multiple of 5 MHz"), ({"flags": 128}, "makes no sense"),
    ({"flags": BlockFlag.HALF | BlockFlag.QUARTER}, "makes no sense"),
    ({"window": 4}, "makes no sense"), ({"payload": bytes(8)}, "8 bytes of payload"),
    ({"payload": bytes(32), "type": 4}, "32 bytes of payload in a CENSUS block"),
    ({"payload": bytes(16), "type": 3}, "16 bytes of payload in a LOSS block"),
    ({"payload": bytes(16 * 4094)}, "65504 bytes of payload"),
])
def test_a_block_of_nonsense_is_torn_even_with_a_right_checksum(change, reason):
    values = {"type": BlockType.FRAMES, "payload": bytes(16), **change}
    [item] = scan(block(values.pop("type"), values.pop("payload"), **values))
    assert isinstance(item, Torn)
    assert reason in item.reason


def test_heads_of_noise_do_not_stay():
    """Whole blocks with a head of their own each, as an attacker may send: those of a thousand are kept."""
    scanner = BlockScanner()
    for epoch in range(2500):
        [found] = scanner.feed(block(BlockType.FRAMES, bytes(16), epoch=epoch))
        assert found.head.epoch == epoch
        assert len(scanner._heads) <= 1001
    assert scanner.pending == 0


def noise(rng, size):
    """Random bytes in which much looks like the beginning of a block."""
    magic = struct.pack("<I", BLOCK_MAGIC)
    sane = [block(rng.choice(list(BlockType)), rng.randbytes(16), nodes=rng.randint(1, 32))[:32] for _ in range(64)]
    parts, length = [], 0
    while length < size:
        parts.append(rng.choice([rng.randbytes(rng.randint(1, 200)), magic, magic + b"\x01\x01", rng.choice(sane)]))
        length += len(parts[-1])
    return b"".join(parts)


@pytest.mark.parametrize("size", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_noise_is_torn(size):
    data = noise(random.Random(size), size)
    scanner, settled = BlockScanner(), []
    for at in range(0, len(data), 1 << 16):
        settled += scanner.feed(data[at:at + (1 << 16)])
    settled += scanner.finish()
    assert all(isinstance(i, Torn) for i in settled)
    assert sum(i.size for i in settled) == len(data)


# ----------------------------------------------------------------------------------------- joined


def parts(items):
    return [plain(part) for item in items for part in (single_blocks(item) if isinstance(item, Block) else [item])]


def a_run_of_frames(rng, count=40):
    """Blocks that mostly follow one another, some of them unlike the one before them, and some spoilt."""
    made, sequence, time = [], rng.choice([0, 2**32 - 9]), rng.choice([0, 2**32 - 3000])
    for _ in range(count):
        change = rng.choice([{}] * 12 + [{"epoch": 2}, {"cut": True}, {"flags": 2}, {"latency": 9}, {"nodes": 20}])
        sequence += rng.random() < 0.05
        payload = rng.randbytes(rng.choice([0, 16, 48, 240, 1008] * 4 + [8]) * (3 if "nodes" in change else 1))
        one = bytearray(block(BlockType.FRAMES, payload, sequence=sequence % 2**32, time=time, **change))
        if rng.random() < 0.08:
            one[rng.randrange(len(one))] ^= 1 << rng.randrange(8)
        made.append(bytes(one))
        sequence, time = sequence + 1, time + rng.randrange(200)
    return b"".join(made)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 20_000), max_size=5))
def test_joined_blocks_are_what_the_single_ones_are(seed, cuts):
    """In the same order, with the same torn bytes between them."""
    data = a_run_of_frames(random.Random(seed))
    joined = scan(data, [min(cut, len(data)) for cut in cuts], join=True)
    assert parts(joined) == [plain(item) for item in scan(data)]
    for item in whole(joined):
        singles = single_blocks(item)
        assert bytes(item.payload) == b"".join(bytes(part.payload) for part in singles)
        assert item.blocks == len(singles)
        assert item.blocks == 1 or not any(part.cut for part in singles)
        assert item.size == sum(part.size for part in singles)


def test_blocks_that_follow_one_another_are_joined():
    data = b"".join(block(BlockType.FRAMES, bytes(1024), sequence=k, time=k) for k in range(3000))
    counts = [item.blocks for item in scan(data, join=True)]
    assert (sum(counts), len(counts)) == (3000, 3)  # a mebibyte each


def test_too_long_a_block_is_not_joined():
    longer = [block(BlockType.FRAMES, bytes(PAYLOAD_MAX + more), sequence=k) for k, more in ((1, 0), (2, 16), (3, 0))]
    items = scan(block(BlockType.FRAMES, bytes(16)) + b"".join(longer), join=True)
    assert [item.blocks if isinstance(item, Block) else type(item) for item in items] == [2, Torn, 1]


def test_joining_needs_no_c(monkeypatch):
    monkeypatch.setattr(blocks_joined, "_JOIN", None)
    data = a_run_of_frames(random.Random(3))
    assert [plain(item) for item in scan(data, join=True)] == [plain(item) for item in scan(data)]
