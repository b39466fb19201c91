"""Halver: a vector's strobes of the first half before those of the second, each with its own stamp."""

import random

import pytest
from hypermon.hdl.items.halver import Halver

from ..harness.stage import run


@pytest.mark.parametrize("nodes", [1, 3, 16])
@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("further", [0, 1])
def test_parts_vectors(nodes, stall, on, further):
    """Halves that are another halver's pass."""
    rng = random.Random(nodes)
    dut = Halver(nodes, further)
    given, expected, out = [], [], []
    for k in range(300):
        vector = rng.getrandbits(nodes) or 1
        # Halves of nodes without a strobe mean nothing.
        halves = rng.choice((0, -1 % (1 << nodes), rng.getrandbits(nodes)))
        passing = rng.getrandbits(nodes * further) if further else 0
        time, mixed, late = rng.getrandbits(30) << 33 | k, rng.getrandbits(1), rng.getrandbits(1)
        given.append((vector, halves | passing << nodes, time, mixed, late))
        parts = [(vector & ~halves, 2 * time), (vector & halves, 2 * time + 1)] if on else [(vector, time)]
        expected += [(part, stamp, mixed, late, *[passing] * further) for part, stamp in parts if part]
    taken = []

    async def give(ctx):
        ctx.set(dut.on, on)
        for vector, halves, time, mixed, late in given:
            while rng.random() < stall:
                ctx.set(dut.i.valid, 0)
                ctx.set(dut.i.p.vector, rng.getrandbits(nodes))
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            for field, value in (("vector", vector), ("halves", halves), ("time", time), ("mixed", mixed),
                                 ("late", late)):
                ctx.set(getattr(dut.i.p, field), value)
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def take(ctx):
        clock = 0
        while len(out) < len(expected):
            ctx.set(dut.o.ready, rng.random() >= stall)
            if ctx.get(dut.o.valid):
                assert ctx.get(dut.busy)
                if ctx.get(dut.o.ready):
                    p = dut.o.p
                    fields = (p.vector, p.time, p.mixed, p.late, *([p.halves] if further else []))
                    out.append(tuple(ctx.get(x) for x in fields))
                    taken.append(clock)
            await ctx.tick()
            clock += 1
        for _ in range(4):
            await ctx.tick()
        assert not ctx.get(dut.busy)
        assert not ctx.get(dut.o.valid)

    run(dut, give, take)
    assert out == expected
    if not stall:
        assert taken == list(range(taken[0], taken[0] + len(out))), "not a vector a clock"


def test_busy_from_the_first_clock_on():
    """Something is said to be inside without a break from the offer until it has left."""
    dut = Halver(4)
    seen = []

    async def bench(ctx):
        ctx.set(dut.on, 1)
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.p.vector, 6)
        ctx.set(dut.i.p.halves, 4)
        for clock in range(20):
            ctx.set(dut.o.ready, clock > 10)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
            seen.append(ctx.get(dut.busy))

    run(dut, bench)
    assert "01" not in "".join(map(str, seen))
    assert 10 < sum(seen) < 18
