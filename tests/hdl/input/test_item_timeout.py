"""Item time-out: never early, and soon."""

import random

import pytest
from hypermon.hdl.input.item_timeout import ItemTimeout

from ..harness.stage import run


@pytest.mark.parametrize("nodes", [1, 3, 16, 20])
@pytest.mark.parametrize("limit", [0, 5, 100])
def test_expires(nodes, limit):
    rng = random.Random(nodes)
    dut = ItemTimeout(nodes)
    latest = limit + 2 * dut.round + 8
    seen = [0]

    async def bench(ctx):
        heard = [None] * nodes     # clock of the last strobe
        open_since = [None] * nodes
        ctx.set(dut.limit, limit)
        for now in range(6000):
            expired = ctx.get(dut.expired)
            pulse = 0
            for n in range(nodes):
                if expired >> n & 1:
                    seen[0] += 1
                    assert open_since[n] is not None
                    assert now - heard[n] > limit, "early"
                    open_since[n] = None
                elif open_since[n] is not None:
                    assert now - heard[n] <= latest, "late"
                if rng.random() < (0.05 if now % 1000 < 700 else 0.002):
                    pulse |= 1 << n
                    heard[n] = now
                    open_since[n] = now if rng.random() < 0.8 else None
            ctx.set(dut.pulse, pulse)
            await ctx.tick()
            ctx.set(dut.open, sum((since is not None) << n for n, since in enumerate(open_since)))

    run(dut, bench, clocks=7000)
    assert seen[0] > 3
