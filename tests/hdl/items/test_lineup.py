"""Line-up: vectors of whole items, in order but for those that were passed over, and nothing waits for long."""

import random

import pytest
from hypermon.hdl.items.lineup import Lineup
from hypermon.hdl.layout import Geometry, Sink

from ..harness.resets import same_as_fresh
from ..harness.stage import run

LIMIT = 40


@pytest.mark.parametrize("nodes", [1, 3, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pressed", [0.0, 0.02, 1.0])
@pytest.mark.parametrize(("stall", "phases"), [(0.0, 2), (0.6, 1), (0.3, 4)])
def test_lines_up(nodes, pressed, stall, phases):
    rng = random.Random(nodes + int(100 * pressed))
    sinks = (Sink.EXTENDED,) if phases > 1 else (Sink.CLASSIC,)
    dut = Lineup(Geometry(nodes=nodes, phases=phases, sinks=sinks))
    items = rng.getrandbits(nodes) | 1
    vectors = []
    for k in range(100):
        vector = rng.getrandbits(nodes) if rng.random() < 0.5 else 1 << rng.randrange(nodes)
        vectors.append((vector or 1, 1000 * k + rng.randrange(1000)))
    # Halves of nodes without a strobe mean nothing.
    planes = phases.bit_length() - 1
    halves = {time: rng.getrandbits(nodes * max(planes, 1)) for _, time in vectors}
    # Of every node's items, in order: the clocks that each is open, counted from when the next one may begin.
    queues = [[] for _ in range(nodes)]
    whole = [0] * nodes        # items that have ended and not been lined up
    out = []
    state = {"given": 0, "taken": 0}
    total = sum(vector.bit_count() for vector, _ in vectors)

    async def give(ctx):
        ctx.set(dut.items, items)
        ctx.set(dut.limit, LIMIT)
        for vector, time in vectors:
            # Now and then the next one comes at once, when an item that was passed over has just ended.
            hurry = rng.random() < 0.5
            while not hurry and rng.random() < 0.7:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            # A node's next item begins when the last one has ended.
            while any(vector >> n & 1 and queues[n] for n in range(nodes)):
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            for n in range(nodes):
                if vector >> n & items >> n & 1:
                    queues[n].append(rng.choice((1, 5, 30, 200)))
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p.vector, vector)
            ctx.set(dut.i.p.time, time)
            if planes:
                ctx.set(dut.i.p.halves, halves[time])
            await ctx.tick().until(dut.i.ready)
            state["given"] += 1
        ctx.set(dut.i.valid, 0)

    async def end(ctx):
        now = 0
        while state["taken"] < total:
            ended = 0
            for n, queue in enumerate(queues):
                if queue:
                    queue[0] -= 1
                    if queue[0] == 0:
                        queue.pop(0)
                        ended |= 1 << n
                        whole[n] += 1
            ctx.set(dut.ended, ended | (rng.getrandbits(nodes) & ~items))
            ctx.set(dut.now, now)
            ctx.set(dut.pressed, rng.random() < pressed)
            await ctx.tick()
            now += 1

    async def take(ctx):
        while state["taken"] < total:
            ctx.set(dut.o.ready, rng.random() >= stall)
            if ctx.get(dut.o.valid):
                assert ctx.get(dut.busy)
                if ctx.get(dut.o.ready):
                    p = dut.o.p
                    vector, late = ctx.get(p.vector), ctx.get(p.late)
                    assert vector
                    assert ctx.get(p.mixed) or not vector & items
                    for n in range(nodes):
                        if vector >> n & items >> n & 1:
                            assert whole[n], "an item that has not ended"
                            whole[n] -= 1
                    assert not late or vector & (vector - 1) == 0
                    for at in range(0, nodes * planes, nodes):
                        assert (ctx.get(p.halves) ^ halves[ctx.get(p.time)]) >> at & vector == 0
                    out.append((vector, ctx.get(p.time), late))
                    state["taken"] += vector.bit_count()
            await ctx.tick()
        for _ in range(6):
            await ctx.tick()
        assert not ctx.get(dut.busy)
        assert not ctx.get(dut.owing)

    run(dut, give, end, take, clocks=30_000)
    on_time = [time for _, time, late in out if not late]
    assert on_time == sorted(on_time)
    merged = {}
    for vector, time, late in out:
        assert not merged.get(time, 0) & vector
        assert late or time not in merged
        merged[time] = merged.get(time, 0) | vector
    assert merged == {time: vector for vector, time in vectors}
    for n in range(nodes):
        times = [time for vector, time, _ in out if vector >> n & 1]
        assert times == sorted(times), "a node's items out of order"
    some_late = any(late for *_, late in out)
    assert some_late or not items or pressed == 0.0


def test_reset():
    same_as_fresh(lambda: Lineup(Geometry.extended(3)), {"now": lambda rng: rng.getrandbits(5)},
                  settings={"items": lambda rng: rng.getrandbits(3), "limit": lambda rng: rng.getrandbits(4)})
