"""Moment parser: bytes become moments again, also those that two frames share, or that a missed frame ends."""

import random

import pytest
from hypermon.hdl.regeneration.moment_parser import MomentParser

from ..harness.resets import same_as_fresh
from ..harness.stage import run
from .models.link_model import BYTES, nibbles

WRAP = 1 << 13


def coded(rng):
    """Frames of random words, or None for one that is missed: start, lag and bytes."""
    frames, start, last = [], 9000, 0
    for _ in range(40):
        start += 128
        if rng.random() < 0.15:
            frames.append(None)
            continue
        # Time never goes back.
        at = max(start - rng.choice([8, rng.randrange(8, 3000)]), last + 1)
        lag, data, used = start - at, [], 0
        while len(data) < BYTES:
            kind = rng.random()
            if kind < 0.5 and used != 255:
                node = rng.choice([n for n in range(8) if not used >> n & 1])
                data.append(0x80 | node << 4 | rng.getrandbits(4))
                used |= 1 << node
            elif kind < 0.8 and at + 64 < start - 130:
                step = rng.choice([1, 2, 63, rng.randrange(1, 64)])
                data.append(step | 64 * rng.randrange(2))
                at, used = at + step, 0
            else:
                data.append(64 * rng.randrange(2))
        frames.append((start, lag, data))
        last = at
    return frames


@pytest.mark.parametrize("seed", range(4))
def test_moments(seed):
    rng = random.Random(seed)
    dut = MomentParser()
    frames, told, counted, torn = coded(rng), [], [0] * 8, []
    due = [item for got in frames if got for item in nibbles(*got)]
    # What each frame has said of the transmitter, after those before it; before all it is taken for one that knows.
    framed, knows = [], 1
    for got in frames:
        for byte in got[2] if got else ():
            knows = byte >> 6 if byte in (0, *range(0x40, 0x80)) else knows
        framed.append(knows)
    # A moment after a missed frame, of those that have a node, is torn.
    missing, whole = set(), True
    for got in frames:
        if got and (came := nibbles(*got)):
            missing |= set() if whole else {came[0][0]}
            whole = True
        elif not got:
            whole = False

    async def watch(ctx):
        if ctx.get(dut.o.valid):
            mask, values, at, more = (ctx.get(getattr(dut.o.p, name)) for name in ("mask", "nibbles", "time", "more"))
            told.extend((at, n, values >> 4 * n & 15, more >> n & 1) for n in range(8) if mask >> n & 1)
            torn.extend([at] * ctx.get(dut.o.p.torn))
        if ctx.get(dut.delivered):
            counted[ctx.get(dut.node)] += 1
        await ctx.tick()

    async def bench(ctx):
        assert ctx.get(dut.framed)
        for got in [*frames, None]:
            data = got[2] if got else []
            ctx.set(dut.begin, got is not None)
            ctx.set(dut.missed, got is None)
            if got:
                ctx.set(dut.start, got[0] % WRAP)
                ctx.set(dut.lag, got[1])
            for clock in range(rng.randrange(41, 60)):
                slot = ctx.get(dut.slot)
                ctx.set(dut.byte, data[slot - 3] if data and 3 <= slot < 3 + BYTES else rng.getrandbits(8))
                await watch(ctx)
                if clock == 0:
                    ctx.set(dut.begin, 0)
                    ctx.set(dut.missed, 0)
            last.append(ctx.get(dut.framed))

    last = []
    run(dut, bench)
    assert told == sorted(told, key=lambda item: told.index(item))
    assert sorted(told) == sorted((at % WRAP, node, nibble, more) for at, node, nibble, more in due)
    assert counted == [sum(node == n and not more for _, node, _, more in due) for n in range(8)]
    assert torn == [at % WRAP for at in sorted(missing)]
    assert len(torn) > 2
    assert last == [*framed, framed[-1]]
    assert set(framed) == {0, 1}


def test_a_moment_that_two_frames_share():
    """It is given once, with the items of both, when another time comes."""
    dut, told = MomentParser(), []

    async def bench(ctx):
        for lag, data in ((20, [0x85, *[0] * 26]), (148, [0xb7, 3, 0x92, *[0] * 24])):
            ctx.set(dut.begin, 1)
            ctx.set(dut.start, 5000 if lag == 20 else 5128)
            ctx.set(dut.lag, lag)
            for _ in range(50):
                slot = ctx.get(dut.slot)
                ctx.set(dut.byte, data[slot - 3] if 3 <= slot < 30 else 0)
                if ctx.get(dut.o.valid):
                    told.append((ctx.get(dut.o.p.time), ctx.get(dut.o.p.mask), ctx.get(dut.o.p.nibbles)))
                await ctx.tick()
                ctx.set(dut.begin, 0)
            if lag == 148:
                break
        ctx.set(dut.missed, 1)
        assert ctx.get(dut.o.valid)
        told.append((ctx.get(dut.o.p.time), ctx.get(dut.o.p.mask), ctx.get(dut.o.p.nibbles) >> 4 & 15))
        await ctx.tick()

    run(dut, bench)
    assert [row[:2] for row in told] == [(4980, 0b1001), (4983, 0b10)]
    assert told[0][2] & 0xf00f == 0x7005
    assert told[1][2] == 2


def test_reset():
    same_as_fresh(MomentParser, episodes=12)
