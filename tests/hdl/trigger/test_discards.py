"""Discards: every bit counts one, through all carries."""

import random

import pytest
from hypermon.hdl.layout import COUNTER_BITS
from hypermon.hdl.trigger.discards import Discards

from ..harness.stage import run


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_counts(rate):
    rng = random.Random(rate)
    dut = Discards(3)
    half = COUNTER_BITS // 2
    start = (5 << half) - 40    # the lower half is about to wrap

    async def bench(ctx):
        ctx.set(dut.count, start)
        total = start
        for _ in range(100):
            thrown = sum((rng.random() < rate) << k for k in range(3))
            total += thrown.bit_count()
            ctx.set(dut.thrown, thrown)
            await ctx.tick()
        ctx.set(dut.thrown, 0)
        for _ in range(3):
            await ctx.tick()
        assert ctx.get(dut.count) == total

    run(dut, bench)
