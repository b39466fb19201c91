"""Expander: every nibble of every vector once, in order, one a clock."""

import random

import pytest
from hypermon.hdl.items.expander import MANY, Expander
from hypermon.hdl.layout import Geometry, Sink

from ..harness.resets import same_as_fresh
from ..harness.stage import run


@pytest.mark.parametrize("nodes", [1, 2, 5, 16, 20, 32])
@pytest.mark.parametrize("stalls", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_takes_vectors_apart(nodes, stalls, bits):
    rng = random.Random(nodes)
    sinks = (Sink.EXTENDED,)
    dut = Expander(Geometry(nodes=nodes, sinks=sinks, port_bits=bits))
    vectors = []
    for _ in range(120):
        vector = rng.getrandbits(nodes) if rng.random() < 0.5 else 1 << rng.randrange(nodes)
        vectors.append((vector or 1, rng.getrandbits(64)))
    queues = [[] for _ in range(nodes)]    # of the node FIFOs
    expected = []
    for vector, time in vectors:
        members = [n for n in range(nodes) if vector >> n & 1]
        for n in members:
            nibble = rng.getrandbits(bits)
            queues[n].append(nibble)
            expected.append((n, nibble, n == members[0], n == members[-1], len(members) >= MANY, vector, time))
    items, clocks = [], []

    async def give(ctx):
        for vector, time in vectors:
            while stalls and rng.random() < 0.4:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p.vector, vector)
            ctx.set(dut.i.p.time, time)
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def nibbles(ctx):
        # What is popped stands at the output in the next clock; others show anything.
        while len(items) < len(expected):
            popped = ctx.get(dut.pop)
            await ctx.tick()
            shown = [rng.getrandbits(bits) for _ in range(nodes)]
            for n in range(nodes):
                if popped >> n & 1:
                    shown[n] = queues[n].pop(0)
            ctx.set(dut.nibble, sum(v << bits * n for n, v in enumerate(shown)))

    async def take(ctx):
        clock = 0
        while len(items) < len(expected):
            ctx.set(dut.o.ready, not stalls or rng.random() < 0.6)
            if ctx.get(dut.o.valid) and ctx.get(dut.o.ready):
                p = dut.o.p
                items.append((ctx.get(p.node), ctx.get(p.nibble), ctx.get(p.first), ctx.get(p.last),
                              ctx.get(p.many), ctx.get(p.vector), ctx.get(p.time)))
                clocks.append(clock)
            if ctx.get(dut.o.valid):
                assert ctx.get(dut.busy)
            await ctx.tick()
            clock += 1
        for _ in range(3):
            await ctx.tick()
        assert not ctx.get(dut.o.valid)
        assert not ctx.get(dut.busy)

    run(dut, give, nibbles, take)
    assert items == expected
    assert not any(queues)
    if not stalls:
        assert clocks == list(range(clocks[0], clocks[0] + len(items))), "not an item a clock"


def test_reset():
    """In every state of longer items."""
    same_as_fresh(lambda: Expander(Geometry(nodes=3, sinks=(Sink.EXTENDED,))))
