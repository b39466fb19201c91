"""Synchronizer: active edges, sample points, and no more latency than it says."""

import random

import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.hdl.synchronizer import Synchronizer

from .stage import run

#: Clocks from the edge that samples a strobe to its pulse: what remains of the latency is the
#: gate, its register, and the window's.
DELAY = LATENCY - 3


@pytest.mark.parametrize("pad_stage", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_samples_at_the_limit(seed, pad_stage):
    """Strobe and data change at any clock: each level of the strobe is held for one clock at least."""
    rng = random.Random(seed)
    nodes = 3
    dut = Synchronizer(nodes, pad_stage)
    # Without pads' flip-flops of its own, one stands outside.
    delay = DELAY if pad_stage else DELAY - 1
    rising, falling, after = (rng.getrandbits(nodes) for _ in range(3))

    async def bench(ctx):
        nonlocal rising, falling, after
        strobes, datas = [0] * 8, [0] * 8
        pulses = offered = 0
        for clock in range(800):
            # In between, with all quiet, other settings are made.
            quiet = clock % 200 < 20
            if clock % 200 == 10:
                rising, falling, after = (rng.getrandbits(nodes) for _ in range(3)) if clock > 10 else \
                    (rising, falling, after)
                ctx.set(dut.rising, rising)
                ctx.set(dut.falling, falling)
                ctx.set(dut.after, after)
            strobes.append(strobes[-1] if quiet else rng.getrandbits(nodes))
            datas.append(rng.getrandbits(4 * nodes))
            ctx.set(dut.strobe, strobes[-1])
            ctx.set(dut.data, datas[-1])
            await ctx.tick()
            # The edge that has just passed took the last sample; pulses are of DELAY edges ago.
            k = len(strobes) - 1 - delay
            new, old = strobes[k], strobes[k - 1]
            expected = (new & ~old & rising) | (~new & old & falling)
            assert ctx.get(dut.pulse) == expected
            for i in range(nodes):
                if expected >> i & 1:
                    sample = datas[k + 1] if after >> i & 1 else datas[k - 1]
                    assert ctx.get(dut.nibble) >> 4 * i & 15 == sample >> 4 * i & 15
                    pulses += 1
            offered += bool(rising | falling)
        assert pulses or not offered

    run(dut, bench)
