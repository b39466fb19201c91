"""High-water marks: the most that was inside, of every node by itself."""

import random

import pytest
from hypermon.hdl.accounts.high_water import HighWater, NodeHighWater

from ..harness.stage import run


def test_largest_level():
    rng = random.Random(1)
    dut = HighWater(5)

    async def bench(ctx):
        most = 0
        for _ in range(2000):
            level, clear = rng.randint(0, rng.choice([3, 10, 31])), rng.random() < 0.02
            ctx.set(dut.level, level)
            ctx.set(dut.clear, clear)
            await ctx.tick()
            most = 0 if clear else max(most, level)
            ctx.set(dut.level, 0)
            ctx.set(dut.clear, 0)
            await ctx.tick()
            assert ctx.get(dut.high) == most

    run(dut, bench)


@pytest.mark.parametrize("nodes", [1, 5, 16, 32])
@pytest.mark.parametrize("depth", [4, 64])
def test_most_of_every_node(nodes, depth):
    rng = random.Random(nodes)
    dut = NodeHighWater(nodes, depth)
    full = set()

    async def bench(ctx):
        levels, most = [0] * nodes, [0] * nodes
        for phase in range(12):
            # More comes than goes, or the other way.
            rates = [rng.choice([(0.9, 0.2), (0.3, 0.6), (0.0, 0.0), (0.5, 0.5)]) for _ in range(nodes)]
            if phase in (0, 7):
                ctx.set(dut.clear, 1)
                await ctx.tick()
                ctx.set(dut.clear, 0)
                levels, most = [0] * nodes, [0] * nodes
            for _ in range(rng.randint(10, 3 * depth)):
                enters = [level < depth and rng.random() < up for level, (up, _) in zip(levels, rates, strict=True)]
                leaves = [level > 0 and rng.random() < down for level, (_, down) in zip(levels, rates, strict=True)]
                for b, plane in enumerate(dut.level):
                    ctx.set(plane, sum((level >> b & 1) << n for n, level in enumerate(levels)))
                ctx.set(dut.enters, sum(bit << n for n, bit in enumerate(enters)))
                await ctx.tick()
                most = [max(high, level + up) for high, level, up in zip(most, levels, enters, strict=True)]
                levels = [level + up - down for level, up, down in zip(levels, enters, leaves, strict=True)]
            ctx.set(dut.enters, 0)
            for _ in range(2):
                await ctx.tick()
            for node in rng.sample(range(nodes), nodes):
                ctx.set(dut.node, node)
                for _ in range(3):
                    await ctx.tick()
                assert ctx.get(dut.high) == most[node], node
            full.update(most)

    run(dut, bench)
    assert depth in full
