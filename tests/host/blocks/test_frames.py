"""Frames to events, against one bit after the other."""

import random

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, Window
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.times import TimeScale
from hypothesis import given
from hypothesis import strategies as st

from tests.host.fake_board import FakeBoard, frame


@given(st.integers(1, 32), st.integers(0, 2600), st.integers(0, 20), st.integers(0, 2**32),
       st.sampled_from([35_000_000, 100_000_000]), st.sampled_from(Window))
def test_as_the_oracle(nodes, high, count, seed, clock_hz, window):
    rng = random.Random(seed)
    stamps = sorted(rng.sample(range(2**32), count))
    board = FakeBoard(nodes, clock_hz, window)
    made = [(high << 32 | s, {n: rng.randrange(16) for n in rng.sample(range(nodes), rng.randint(1, nodes))})
            for s in stamps]
    rows = FrameRows(b"".join(frame(nodes, *f) for f in made), nodes, high)
    events = rows.events(TimeScale(clock_hz, window, LATENCY))
    assert list(zip(events.time_ps.tolist(), events.node.tolist(), events.nibble.tolist(), strict=True)) == \
        [(board.ps(stamp), node, nibbles[node]) for stamp, nibbles in made for node in sorted(nibbles)]
    assert (events.time_ps.dtype, events.node.dtype, events.nibble.dtype) == (np.int64, np.int16, np.uint8)
    assert rows.per_node().tolist() == [sum(n in nibbles for _, nibbles in made) for n in range(nodes)]
    assert rows.sizes().tolist() == [len(nibbles) for _, nibbles in made]
    assert rows.fault(-1, 2**62) is None


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("nodes", [16, 32])
def test_many_frames_cross_the_chunks(nodes, single):
    """``single``: one event a frame, which goes another way."""
    rng = np.random.default_rng(7)
    count, scale = 10_000, TimeScale(100_000_000, Window.NS800, LATENCY)
    vectors = rng.integers(1, 2**nodes, count, np.uint64)
    if single:
        vectors = np.uint64(1) << rng.integers(0, nodes, count, np.uint64)
    bits = vectors[:, None] >> np.arange(nodes, dtype=np.uint64) & np.uint64(1)
    nibbles = rng.integers(0, 16, (count, nodes)) * bits.astype(np.int64)
    words = np.zeros((count, nodes // 8 + 2), "<u4")
    for node in range(nodes):
        words[:, nodes // 8 - 1 - node // 8] |= (nibbles[:, node] << 4 * (node % 8)).astype("<u4")
    words[:, -2], words[:, -1] = vectors, np.arange(count)
    rows = FrameRows(words.tobytes(), nodes, 0)
    events = rows.events(scale)
    at, node = np.nonzero(bits)
    assert np.array_equal(events.node, node)
    assert np.array_equal(events.nibble, nibbles[at, node])
    assert np.array_equal(events.time_ps, scale.starts_ps(at))
    assert np.array_equal(rows.per_node(), np.bincount(node, minlength=nodes))


@pytest.mark.parametrize(("frames", "after", "fault"), [
    ([(5, {0: 1}), (5, {1: 1})], -1, "do not rise"), ([(5, {0: 1})], 5, "do not rise"),
    ([(5, {3: 1})], -1, "nodes that the board does not have"), ([(900, {0: 1})], -1, "beyond 2^63 ps"),
    ([(899, {0: 1})], 898, None),
    ([(5, {0: 1}), (6, {1: 1})], 4, None), ([], 7, None)])
def test_what_no_board_sends(frames, after, fault):
    rows = FrameRows(b"".join(frame(3, *f) for f in frames), 3, 0)
    found = rows.fault(after, 899)
    assert found is None if fault is None else fault in found


def test_upper_bits_of_a_16_bit_vector():
    data = bytearray(frame(16, 1, {0: 1}))
    data[10] = 1
    assert "nodes" in FrameRows(bytes(data), 16, 0).fault(-1, 99)


@pytest.mark.parametrize(("nodes", "beat"), [(3, 2), (3, 4), (3, 16), (20, 4), (20, 16)])
@pytest.mark.parametrize("start", [0, 7])
def test_a_cut_block_has_whole_frames_only(nodes, beat, start):
    """Zeros begin at any beat. A frame is whole if they have changed nothing of it."""
    frames = [frame(nodes, start + 5 * k, {0: 9, nodes - 1: 4}) for k in range(3)]
    payload, size = b"".join(frames), len(frames[0])
    for at in range(0, len(payload) + 1, beat):
        cut = payload[:at] + bytes(len(payload) - at)
        whole = [start + 5 * k for k in range(3) if cut[size * k:size * k + size] == frames[k]]
        assert FrameRows(cut, nodes, 0).without_filler(start).stamps.tolist() == whole, at
