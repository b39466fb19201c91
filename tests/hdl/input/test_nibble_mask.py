"""Item filter: single nibbles by their value, others all."""

import random

import pytest
from hypermon.hdl.input.nibble_mask import NibbleMask

from ..harness.stage import run


@pytest.mark.parametrize("nodes", [1, 5, 16, 32])
def test_mask(nodes):
    rng = random.Random(nodes)
    dut = NibbleMask(nodes)

    async def bench(ctx):
        mask = rng.getrandbits(16)
        for clock in range(1000):
            if rng.random() < 0.05:
                mask = rng.getrandbits(16)
                ctx.set(dut.mask, mask)
                await ctx.tick()
            nibbles, longer = [rng.randrange(16) for _ in range(nodes)], rng.getrandbits(nodes)
            ctx.set(dut.mask, mask)
            ctx.set(dut.data, sum(v << 4 * n for n, v in enumerate(nibbles)))
            ctx.set(dut.longer, longer)
            await ctx.tick()
            if clock > 1:
                assert ctx.get(dut.keep) == longer | sum((mask >> v & 1) << n for n, v in enumerate(nibbles))

    run(dut, bench)


def test_all_are_kept_in_the_first_clock():
    dut = NibbleMask(16)

    async def bench(ctx):
        ctx.set(dut.data, sum(n << 4 * n for n in range(16)))
        await ctx.tick()
        assert ctx.get(dut.keep) == 0xffff

    run(dut, bench)
