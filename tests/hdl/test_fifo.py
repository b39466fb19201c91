"""Stream FIFOs in operation: random stalls on both sides, full speed, full depth."""

import random

import pytest
from hypermon.hdl.fifo import SmallFifo, StreamFifo

from .stage import refuses, run


@pytest.mark.parametrize("kind", [SmallFifo, StreamFifo])
@pytest.mark.parametrize("seed", range(4))
def test_keeps_order_under_stalls(kind, seed):
    rng = random.Random(seed)
    fifo = kind(16, 16)
    items = [rng.getrandbits(16) for _ in range(400)]
    fast_in, fast_out = rng.choice((0.2, 0.9)), rng.choice((0.2, 0.9))
    got = []

    async def give(ctx):
        for item in items:
            while rng.random() > fast_in:
                await ctx.tick()
            ctx.set(fifo.i.p, item)
            ctx.set(fifo.i.valid, 1)
            await ctx.tick().until(fifo.i.ready)
            ctx.set(fifo.i.valid, 0)

    async def take(ctx):
        while len(got) < len(items):
            ready = rng.random() < fast_out
            ctx.set(fifo.o.ready, ready)
            _, _, valid, item = await ctx.tick().sample(fifo.o.valid, fifo.o.p)
            if ready and valid:
                got.append(item)
        assert got == items

    run(fifo, give, take)


@pytest.mark.parametrize("kind", [SmallFifo, StreamFifo])
def test_holds_its_depth_and_moves_one_a_clock(kind):
    depth = 16
    fifo = kind(16, depth)

    async def bench(ctx):
        ctx.set(fifo.i.valid, 1)
        for n in range(depth):
            assert ctx.get(fifo.i.ready), n
            ctx.set(fifo.i.p, n)
            await ctx.tick()
        assert not ctx.get(fifo.i.ready)
        assert ctx.get(fifo.level) == depth
        ctx.set(fifo.i.valid, 0)
        await ctx.tick().repeat(8)
        ctx.set(fifo.o.ready, 1)
        # With room for one more, it takes and gives one in every clock.
        await ctx.tick().repeat(3)
        ctx.set(fifo.i.valid, 1)
        for n in range(3, 200):
            assert ctx.get(fifo.o.valid)
            assert ctx.get(fifo.i.ready)
            assert ctx.get(fifo.o.p) == n
            ctx.set(fifo.i.p, n + depth - 3)
            await ctx.tick()

    run(fifo, bench)


@pytest.mark.parametrize("kind", [SmallFifo, StreamFifo])
@pytest.mark.parametrize("depth", [0, 2, 12])
def test_bad_depth_is_named(kind, depth):
    assert refuses(kind, 8, depth).endswith(f" {depth}")
