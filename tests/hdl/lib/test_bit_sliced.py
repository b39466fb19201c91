"""Bit-sliced counters against numbers."""

import random

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.lib.bit_sliced import added, at_least, column, counted, gathered, planes, spread, stepped

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


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_adds_numbers(bits):
    """Numbers of no more bits than the counter; it wraps."""
    rng = random.Random(bits)
    nodes = 3
    m = Module()
    number = [Signal(nodes, name=f"number{k}") for k in range(min(bits, 3))]
    counter, node = planes(bits, nodes, "counter"), Signal(range(nodes))
    m.d.sync += [p.eq(n) for p, n in zip(counter, added(counter, number), strict=True)]
    seen = Signal(bits)
    m.d.comb += seen.eq(column(counter, node))

    async def bench(ctx):
        totals = [0] * nodes
        for _ in range(300):
            values = [rng.randrange(1 << len(number)) for _ in range(nodes)]
            for k, plane in enumerate(number):
                ctx.set(plane, sum((value >> k & 1) << i for i, value in enumerate(values)))
            await ctx.tick()
            totals = [(total + value) % (1 << bits) for total, value in zip(totals, values, strict=True)]
            ctx.set(node, n := rng.randrange(nodes))
            assert ctx.get(seen) == totals[n]

    run(m, bench)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_at_least(count):
    m = Module()
    which = [Signal(1, name=f"which{k}") for k in range(count)]
    found = [Signal(name=f"found{k}") for k in range(1, count + 1)]
    m.d.comb += [one.eq(at_least(which, k)) for k, one in enumerate(found, 1)]
    m.d.sync += Signal().eq(0)

    async def bench(ctx):
        for value in range(1 << count):
            for k, one in enumerate(which):
                ctx.set(one, value >> k & 1)
            assert [ctx.get(one) for one in found] == [value.bit_count() >= k for k in range(1, count + 1)]

    run(m, bench)


@pytest.mark.parametrize(("nodes", "step"), [(1, 4), (3, 4), (16, 4), (5, 8)])
def test_planes_of_groups(nodes, step):
    """One bit of each group; and each bit of a plane for a whole group."""
    rng = random.Random(nodes)
    m = Module()
    value, plane, turn = Signal(nodes * step), Signal(nodes), Signal()
    m.d.sync += turn.eq(~turn)      # the harness needs a clock
    digits, wide = planes(step, nodes, "digit"), Signal(nodes * step)
    m.d.comb += [*(digit.eq(gathered(value, step, b)) for b, digit in enumerate(digits)), wide.eq(spread(plane, step))]

    async def bench(ctx):
        for _ in range(50):
            groups, bits = [rng.getrandbits(step) for _ in range(nodes)], rng.getrandbits(nodes)
            ctx.set(value, sum(group << step * k for k, group in enumerate(groups)))
            ctx.set(plane, bits)
            for b, digit in enumerate(digits):
                assert ctx.get(digit) == sum((group >> b & 1) << k for k, group in enumerate(groups))
            assert ctx.get(wide) == sum(((1 << step) - 1) << step * k for k in range(nodes) if bits >> k & 1)

    run(m, bench)
