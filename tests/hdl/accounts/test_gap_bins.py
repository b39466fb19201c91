"""Gaps: of every item the power of two of the time since the last one of its node."""

import random

import pytest
from hypermon.hdl.accounts.gap_bins import Gaps

from ..harness.stage import run

#: Clocks from an item to what is said of it.
LATENCY = 7


@pytest.mark.parametrize("nodes", [1, 2, 5, 16, 32])
def test_bins(nodes):
    rng = random.Random(nodes)
    dut = Gaps(nodes)
    expected, said = [], []
    bins = set()

    async def bench(ctx):
        last = {}
        for clock in range(6000):
            clear = rng.random() < 0.001
            item = rng.random() < 0.9 and not clear
            node = rng.randrange(nodes) if rng.random() < 0.5 else 0
            gap = rng.choice([1 << rng.randrange(64), (1 << rng.randint(1, 64)) - 1,
                              1 + rng.getrandbits(rng.randint(0, 63))])
            time = (last[node] + gap) % 2**64 if node in last else rng.getrandbits(64)
            ctx.set(dut.clear, clear)
            ctx.set(dut.item, item)
            ctx.set(dut.node, node)
            ctx.set(dut.time, time if item else rng.getrandbits(64))
            if item and node in last:
                expected.append((clock + LATENCY, node, gap.bit_length() - 1))
                bins.add(gap.bit_length() - 1)
            if item:
                last[node] = time
            if clear:
                last.clear()
                expected[:] = [e for e in expected if e[0] <= clock]
            await ctx.tick()
            if ctx.get(dut.valid):
                said.append((clock + 1, ctx.get(dut.of), ctx.get(dut.bin)))

    run(dut, bench)
    assert said == [e for e in expected if e[0] <= 6000]
    assert bins == set(range(64))
