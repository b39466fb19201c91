"""Expander: every nibble of every vector once, in order, one a clock."""

import random
from itertools import cycle, pairwise

import pytest
from hypermon.hdl.items.expander import MANY, Expander
from hypermon.hdl.layout import Geometry, Sink
from hypermon.sim.bench.stalls import stalls as stalled

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


class Nodes:
    """FIFOs of items, and what the expander is to make of them.

    Nodes 0, 1, ... are in event, word and nibble mode in turn. An item in eight is cut short after its first nibble or
    later: what is missing is popped, too, and is marked ``cut``.
    """

    def __init__(self, rng, nodes, bits, count):
        self.rng, self.nodes, self.bits = rng, nodes, bits
        self.events, self.words = (sum(1 << n for n in range(k, nodes, 3)) for k in (0, 1))
        self.queues, self.open = [[] for _ in range(nodes)], [[] for _ in range(nodes)]
        self.vectors, self.expected, self.sizes = [], [], set()
        self.each_size = cycle(rng.sample(range(1, 16), 15))
        for _ in range(count):
            vector = rng.getrandbits(nodes) & rng.getrandbits(nodes) or 1 << rng.randrange(nodes)
            self._vector(vector, rng.getrandbits(64), rng.getrandbits(1))

    def _item(self, node):
        """All its nibbles, or bytes."""
        first, each = self.rng.getrandbits(self.bits), 8 // self.bits
        if self.events >> node & 1:
            size = next(self.each_size)
            self.sizes.add(size)
            return [first & ~15 | size, *(self.rng.getrandbits(self.bits) for _ in range(size * each))]
        rest = 4 * each - 1 if self.words >> node & 1 else 0
        return [first, *(self.rng.getrandbits(self.bits) for _ in range(rest))]

    def _vector(self, vector, time, late):
        members = [n for n in range(self.nodes) if vector >> n & 1]
        mixed = bool(vector & (self.events | self.words))
        self.vectors.append({"vector": vector, "time": time, "mixed": mixed, "late": late})
        for n in members:
            item = self._item(n)
            there = self.rng.randrange(1, len(item) + 1) if self.rng.random() < 1 / 8 else len(item)
            self.queues[n].append(item[:there])
            for k, nibble in enumerate(item):
                ends = k == len(item) - 1
                self.expected.append({
                    "node": n, "nibble": nibble if k < there else None, "vector": vector, "time": time, "late": late,
                    "first": n == members[0] and k == 0, "last": n == members[-1] and ends, "begins": k == 0,
                    "many": len(members) >= MANY and not mixed, "missing": (len(item) - there) * ends})

    def shown(self, pop, fresh):
        """Nibbles, and which of them are cut, one clock after a pop."""
        nibbles, cut = 0, self.rng.getrandbits(self.nodes)
        for n in range(self.nodes):
            nibble = self.rng.getrandbits(self.bits)
            if pop >> n & 1:
                if fresh:
                    assert not self.open[n], "an item has begun before the end of the one before"
                    self.open[n] = self.queues[n].pop(0)
                cut = cut & ~(1 << n) | (not self.open[n]) << n
                nibble = self.open[n].pop(0) if self.open[n] else nibble
            nibbles |= nibble << self.bits * n
        return nibbles, cut


@pytest.mark.parametrize(("nodes", "count"), [(1, 40), (3, 60), (16, 30)])
@pytest.mark.parametrize("stalls", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_items_of_all_lengths(nodes, count, stalls, bits):
    """Every nibble once and in order, whoever stalls; the number of those that are missing; at full rate, an item takes
    three clocks more than it has nibbles, and an event six."""
    rng = random.Random(f"{nodes} {bits}")
    dut = Expander(Geometry(nodes=nodes, sinks=(Sink.EXTENDED,), port_bits=bits))
    fifos, came, clocks = Nodes(rng, nodes, bits, count), [], []

    async def give(ctx):
        ctx.set(dut.events, fifos.events)
        ctx.set(dut.words, fifos.words)
        for vector in fifos.vectors:
            while stalls and rng.random() < 0.9:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p, vector)
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def pops(ctx):
        while len(came) < len(fifos.expected):
            pop, fresh = ctx.get(dut.pop), ctx.get(dut.fresh)
            await ctx.tick()
            nibbles, cut = fifos.shown(pop, fresh)
            ctx.set(dut.nibble, nibbles)
            ctx.set(dut.cut, cut)

    async def take(ctx):
        clock, ready = 0, stalled(rng, 0.4 if stalls else 1.0)
        while len(came) < len(fifos.expected):
            takes, clock = ready(), clock + 1
            ctx.set(dut.o.ready, takes)
            if ctx.get(dut.o.valid) and takes:
                came.append({name: ctx.get(getattr(dut.o.p, name)) for name in fifos.expected[0]})
                clocks.append(clock)
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.o.valid)
        assert not ctx.get(dut.busy)

    run(dut, give, pops, take)
    for got, due in zip(came, fifos.expected, strict=True):
        assert got == due | ({"nibble": got["nibble"]} if due["nibble"] is None else {})
    assert fifos.sizes == set(range(1, 16))
    assert not any(fifos.queues)
    assert any(due["missing"] for due in fifos.expected)
    begins = [k for k, due in enumerate(fifos.expected) if due["begins"]]
    for k, then in pairwise(begins):
        due = fifos.expected[k]
        if not stalls and not due["many"] and fifos.expected[then]["vector"] == due["vector"]:
            more = 6 if fifos.events >> due["node"] & 1 else 3 if due["vector"] & (fifos.events | fifos.words) else 0
            assert clocks[then] - clocks[k] == then - k + more


def test_reset():
    """In every state of longer items."""
    same_as_fresh(lambda: Expander(Geometry(nodes=3, sinks=(Sink.EXTENDED,))))
