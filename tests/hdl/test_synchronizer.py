"""Synchronizer: active edges, sample points, and no more latency than it says."""

import random

import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.hdl.synchronizer import Synchronizer

from .stage import run

#: Clocks from the edge that samples a strobe to its pulse: what remains of the latency is the
#: gate, its register, and the window's.
DELAY = LATENCY - 3


@pytest.mark.parametrize("seed", range(6))
def test_samples_at_the_limit(seed):
    """Strobe and data change at any clock: each level of the strobe is held for one clock at least."""
    rng = random.Random(seed)
    nodes = 3
    dut = Synchronizer(nodes)
    rising, falling, after = (rng.getrandbits(nodes) for _ in range(3))

    async def bench(ctx):
        ctx.set(dut.rising, rising)
        ctx.set(dut.falling, falling)
        ctx.set(dut.after, after)
        await ctx.tick().repeat(8)
        strobes, datas = [0] * 8, [0] * 8
        pulses = 0
        for _ in range(400):
            strobes.append(rng.getrandbits(nodes))
            datas.append(rng.getrandbits(4 * nodes))
            ctx.set(dut.strobe, strobes[-1])
            ctx.set(dut.data, datas[-1])
            await ctx.tick()
            # The edge that has just passed took the last sample; pulses are of DELAY edges ago.
            k = len(strobes) - 1 - DELAY
            new, old = strobes[k], strobes[k - 1]
            expected = (new & ~old & rising) | (~new & old & falling)
            assert ctx.get(dut.pulse) == expected
            for i in range(nodes):
                if expected >> i & 1:
                    sample = datas[k + 1] if after >> i & 1 else datas[k - 1]
                    assert ctx.get(dut.nibble) >> 4 * i & 15 == sample >> 4 * i & 15
                    pulses += 1
        assert pulses or not rising | falling

    run(dut, bench)
