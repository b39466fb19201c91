"""Item silence: a node expires after seven to eight ticks without a strobe, and no other does."""

import random

import pytest
from hypermon.hdl.regeneration.item_silence import ItemSilence

from ..harness.rejects import rejects
from ..harness.stage import run

TICK = 16


def test_expires():
    rng = random.Random(1)
    dut, seen, last = ItemSilence(TICK), [[] for _ in range(8)], [[-1] for _ in range(8)]

    async def bench(ctx):
        for clock in range(6000):
            pulse = sum((rng.random() < (0.2, 0.02, 0.005)[n % 3]) << n for n in range(8))
            ctx.set(dut.pulse, pulse)
            expired = ctx.get(dut.expired)
            for n in range(8):
                if expired >> n & 1:
                    seen[n].append((clock, clock - last[n][-1]))
                if pulse >> n & 1:
                    last[n].append(clock)
            await ctx.tick()

    run(dut, bench, clocks=7000)
    for n in range(8):
        ages = [age for _, age in seen[n]]
        assert all(age > 7 * TICK for age in ages)
        # Once in each tick from then on.
        for before, after in zip(last[n], [*last[n][1:], 6000], strict=True):
            if before >= 0:
                count = sum(before < at <= after for at, _ in seen[n])
                assert abs(count - max((after - before) / TICK - 7, 0)) <= 1
                if after - before > 8 * TICK + 1:
                    assert count
    assert sum(map(len, seen)) > 50
    assert not seen[0]


@pytest.mark.parametrize("ticks", [0, 1, 24])
def test_powers_of_two_only(ticks):
    rejects(lambda: ItemSilence(ticks), ticks)
