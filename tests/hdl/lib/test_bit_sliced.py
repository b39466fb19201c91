"""Bit-sliced counters against numbers."""

import random

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.lib.bit_sliced import column, counted, planes, stepped

from ..harness.stage import run


@pytest.mark.parametrize("seed", range(3))
def test_counts_up_and_down(seed):
    rng = random.Random(seed)
    nodes, bits = 5, 3
    m = Module()
    up, down, node = Signal(nodes), Signal(nodes), Signal(range(8))
    both, only_up = planes(bits, nodes, "both"), planes(bits, nodes, "only_up")
    m.d.sync += [p.eq(n) for p, n in zip(both, stepped(both, up, down), strict=True)]
    m.d.sync += [p.eq(n) for p, n in zip(only_up, counted(only_up, up), strict=True)]
    seen, seen_up = Signal(bits), Signal(bits)
    m.d.comb += [seen.eq(column(both, node)), seen_up.eq(column(only_up, node))]

    async def bench(ctx):
        numbers, ups = [0] * nodes, [0] * nodes
        for _ in range(200):
            u, d, n = rng.getrandbits(nodes), rng.getrandbits(nodes), rng.randrange(8)
            ctx.set(up, u)
            ctx.set(down, d)
            await ctx.tick()
            numbers = [(v + (u >> i & 1) - (d >> i & 1)) % 8 for i, v in enumerate(numbers)]
            ups = [(v + (u >> i & 1)) % 8 for i, v in enumerate(ups)]
            ctx.set(node, n)
            assert ctx.get(seen) == (numbers[n] if n < nodes else 0)
            assert ctx.get(seen_up) == (ups[n] if n < nodes else 0)

    run(m, bench)
