"""Frame builder: a frame a clock, the frame's layout, and no frame without a slot."""

import random

import pytest
from hypermon.hdl.layout import Geometry, frame_words
from hypermon.hdl.sinks.classic.frame_builder import FrameBuilder

from ...harness.stage import run


def words(nodes, vector, nibbles, time):
    """The frame as the paper's Figure 5 has it, the row with the highest nodes first."""
    row = 16 if nodes <= 16 else 32
    result = [sum(nibbles.get(i, 0) << 4 * (i - low) for i in range(low, low + 8)) for low in range(row - 8, -1, -8)]
    return [*result, vector, time & 0xFFFFFFFF]


@pytest.mark.parametrize("nodes", [1, 16, 20, 32])
@pytest.mark.parametrize("stalls", [False, True])
def test_builds_a_frame_a_clock(nodes, stalls):
    rng = random.Random(nodes)
    depth = 8
    dut = FrameBuilder(Geometry(nodes=nodes, frame_depth=depth))
    count = 150
    vectors = [(rng.getrandbits(nodes) or 1, rng.getrandbits(64), int(stalls and rng.random() < 0.2))
               for _ in range(count)]
    frames, clocks, given = [], [], []
    inside = {"frames": 0, "most": 0}

    async def bench(ctx):
        at, popped, freed, slots = 0, 0, 0, depth
        accepted, starts, done = 0, 0, 0
        wrapping = False        # from the start of such a frame until the frame FIFO's `split` falls again
        split = range(0)        # clocks of it
        for clock in range(4000):
            if len(frames) == count and clock > clocks[-1] + 40:
                break
            offer = at < count and (not stalls or rng.random() < 0.7)
            ctx.set(dut.i.valid, offer)
            vector, time, wrap = vectors[at] if offer else (rng.getrandbits(nodes), rng.getrandbits(64), 1)
            ctx.set(dut.i.p.vector, vector)
            ctx.set(dut.i.p.time, time)
            ctx.set(dut.i.p.wrap, wrap)
            ctx.set(dut.hold_wrap, clock in split)
            if wrapping and split and clock == split.stop:
                wrapping, split = False, range(0)
            # Node FIFOs: what was popped a clock ago stands at the output; others show anything.
            nibbles = {i: rng.getrandbits(4) for i in range(nodes)}
            ctx.set(dut.nibble, sum(v << 4 * i for i, v in nibbles.items()))
            if popped:
                given.append({i: v for i, v in nibbles.items() if popped >> i & 1})
            freed = inside["frames"] > 0 and (not stalls or rng.random() < 0.5)
            ctx.set(dut.freed, freed)
            inside["frames"] -= freed
            popped = ctx.get(dut.pop)
            assert bool(popped) == done, "a vector counts until its frame starts, and no longer"
            done = ctx.get(dut.done)
            if popped:          # its frame started a clock ago
                wrap = vectors[starts][2]
                assert not (wrap and wrapping), "a second new upper half, and the first is still inside"
                wrapping |= bool(wrap)
                starts += 1
                slots -= 1
            assert slots >= 0
            assert 0 <= accepted - starts <= 1, "it holds one vector"
            assert bool(ctx.get(dut.stuck)) == (accepted > starts and slots == 0)
            assert accepted > starts or ctx.get(dut.i.ready)
            # Under way: until it has been handed over.
            assert ctx.get(dut.busy) == (accepted > len(frames))
            taken = offer and ctx.get(dut.i.ready)
            slots += freed
            if ctx.get(dut.o.valid):
                frames.append((ctx.get(dut.o.p.frame), ctx.get(dut.o.p.high), ctx.get(dut.o.p.wrap)))
                clocks.append(clock)
                inside["frames"] += 1
                if ctx.get(dut.o.p.wrap):
                    split = range(clock + 2, clock + rng.randint(3, 30))
            inside["most"] = max(inside["most"], inside["frames"])
            await ctx.tick()
            at += taken
            accepted += taken
        assert len(frames) == count

    run(dut, bench)
    for (frame, high, wrapped), (vector, time, wrap), nibbles in zip(frames, vectors, given, strict=True):
        assert [frame >> 32 * k & 0xFFFFFFFF for k in range(frame_words(nodes))] == words(nodes, vector, nibbles, time)
        assert (high, wrapped) == (time >> 32, wrap)
    assert inside["most"] <= depth
    if not stalls:
        assert clocks == list(range(clocks[0], clocks[0] + count)), "not a frame a clock"


def test_waits_for_a_slot():
    depth = 4
    dut = FrameBuilder(Geometry(nodes=1, frame_depth=depth))

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.p.vector, 1)
        started = 0
        for _ in range(20):
            started += ctx.get(dut.pop)
            await ctx.tick()
        assert started == depth
        assert ctx.get(dut.stuck)
        ctx.set(dut.freed, 1)
        await ctx.tick()
        ctx.set(dut.freed, 0)
        assert ctx.get(dut.i.ready)
        await ctx.tick()
        assert not ctx.get(dut.i.ready)
        assert ctx.get(dut.pop)

    run(dut, bench)
