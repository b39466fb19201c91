"""Window: what is announced when, what is carried and how far, the wrap flag."""

import random

import pytest
from hypermon.hdl.merge.window import Window

from ..harness.stage import run


@pytest.mark.parametrize("seed", range(6))
def test_announces_every_nibble_in_order(seed):
    rng = random.Random(seed)
    nodes, depth = 3, 8
    dut = Window(nodes, depth)
    often = rng.choice((0.1, 0.4, 0.9))
    seen, expected = [], []
    pending, valid_at, admitted_at = [], [], [[] for _ in range(nodes)]     # by clock
    total = {"carried": 0}

    async def collect(ctx):
        for clock in range(600):
            _, _, valid, vector, time, wrap, carried, on_its_way = await ctx.tick().sample(
                dut.o.valid, dut.o.p.vector, dut.o.p.time, dut.o.p.wrap, dut.carried, dut.pending)
            pending.append(on_its_way)
            if valid:
                valid_at.append(clock)
            total["carried"] += carried.bit_count()
            if valid:
                seen.append((vector, time, wrap))

    async def bench(ctx):
        waiting = [[] for _ in range(nodes)]     # the window each nibble belongs to
        window, wrapped, carried, lag = 0, 0, 0, [0] * nodes
        ctx.set(dut.o.ready, 1)
        for clock in range(600):
            busy = clock < 550
            admitted = sum(1 << i for i in range(nodes)
                           if busy and len(waiting[i]) < depth - 1 and rng.random() < 0.5)
            end = not busy or rng.random() < often
            wrap = rng.random() < 0.1
            for name, value in (("admitted", admitted), ("end", end), ("now", window), ("wrap", wrap)):
                ctx.set(getattr(dut, name), value)
            wrapped |= wrap
            vector = 0
            for i in range(nodes):
                if end and waiting[i]:
                    own = waiting[i].pop(0)
                    vector |= 1 << i
                    carried += own != window
                    lag[i] = max(lag[i], window - own)
            if vector:
                expected.append((vector, window, int(wrapped)))
                wrapped = 0
            window += end
            for i in range(nodes):
                if admitted >> i & 1:
                    waiting[i].append(window)
                    admitted_at[i].append(clock)
            await ctx.tick()
        assert not any(waiting)
        assert seen == expected
        assert total["carried"] == carried
        for i in range(nodes):
            beyond = sum((ctx.get(plane) >> i & 1) << b for b, plane in enumerate(dut.beyond))
            assert beyond == lag[i] + 2

    run(dut, collect, bench)
    # Pending: from a nibble's admission until its vector has been handed over, told a clock late.
    busy = set()
    for i in range(nodes):
        handed = [clock for clock, (vector, _, _) in zip(valid_at, seen, strict=True) if vector >> i & 1]
        for one, two in zip(admitted_at[i], handed, strict=True):
            busy |= set(range(one, two + 1))
    assert all(pending[clock + 1] for clock in busy)
    assert not any(pending[-8:])
