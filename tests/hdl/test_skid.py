"""Skid: order under stalls, an item a clock, and a `ready` that the consumer's does not reach."""

import random

import pytest
from hypermon.hdl.skid import Skid

from .stage import run


@pytest.mark.parametrize("seed", range(4))
def test_keeps_order_under_stalls(seed):
    rng = random.Random(seed)
    dut = Skid(16)
    items = [rng.getrandbits(16) for _ in range(400)]
    fast_in, fast_out = rng.choice((0.2, 0.9)), rng.choice((0.2, 0.9))
    got = []

    async def give(ctx):
        for item in items:
            while rng.random() > fast_in:
                await ctx.tick()
            ctx.set(dut.i.p, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.i.p, rng.getrandbits(16))

    async def take(ctx):
        while len(got) < len(items):
            ready = rng.random() < fast_out
            ctx.set(dut.o.ready, ready)
            _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.p)
            if ready and valid:
                got.append(item)
        assert got == items

    run(dut, give, take)


def test_an_item_a_clock_through_a_register():
    dut = Skid(8)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for n in range(50):
            # Ready or not shows a clock later, when one item is kept.
            ctx.set(dut.o.ready, n % 7 != 3)
            assert ctx.get(dut.i.ready) == (n % 7 != 4)
            ctx.set(dut.o.ready, 1)
            assert ctx.get(dut.i.ready) == (n % 7 != 4)
            ctx.set(dut.o.ready, n % 7 != 3)
            ctx.set(dut.i.p, n)
            assert ctx.get(dut.o.valid)
            assert ctx.get(dut.o.p) == (n - 1 if n % 7 == 4 else n)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        assert not ctx.get(dut.o.valid)

    run(dut, bench)
