"""Time base: window ends, stamps, skipped time, the wrap of the stamp's lower half."""

import random

import pytest
from hypermon.hdl.layout import Geometry, Window
from hypermon.hdl.timebase import Timebase

from .stage import run

GEOMETRY = Geometry(nodes=1, clock_hz=20_000_000)


@pytest.mark.parametrize("window", Window)
def test_counts_windows(window):
    rng = random.Random(int(window))
    timebase = Timebase(GEOMETRY)
    length = GEOMETRY.window_clocks(window)

    async def bench(ctx):
        ctx.set(timebase.window, window)
        await ctx.tick().repeat(3)
        assert not ctx.get(timebase.running)
        ctx.set(timebase.start, 1)
        await ctx.tick()
        assert ctx.get(timebase.running)
        skipped = 0
        for clock in range(1, 300):
            # Before this edge the clock is number clock - 1.
            assert ctx.get(timebase.now) == (clock - 1) // length + skipped
            assert ctx.get(timebase.end) == (clock % length == 0)
            ctx.set(timebase.start, rng.getrandbits(1))
            advance = rng.choice((0, 0, 0, 0, 5, 1000, 2**31 - 1))
            ctx.set(timebase.advance, advance)
            before = ctx.get(timebase.now)
            await ctx.tick()
            skipped += advance
            assert ctx.get(timebase.wrap) == (before >> 32 != ctx.get(timebase.now) >> 32)
        assert ctx.get(timebase.now) >> 32, "the wrap was not reached"

    run(timebase, bench)
