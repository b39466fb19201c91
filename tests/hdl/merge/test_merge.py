"""Merge: an item is refused for a reason only; an admitted one comes out once, in order, with its window's stamp."""

import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest
from amaranth.hdl import ClockDomain
from hypermon.hdl.layout import Geometry, Sink
from hypermon.hdl.merge.merge import Merge

from ..harness.stage import run

NODES, DEPTH, VECTORS = 3, 8, 32
#: Slots of the strobe-vector FIFO that are kept free: those of a node FIFO, and those on their way.
RESERVED = DEPTH + 4
#: Clocks from the offer of an item to the clock whose window is its own; clocks until a level is known everywhere.
LATE, KNOWN = 2, 8
#: Causes, in the order of ``refused_by``.
FRAMES, NODE, VECTOR = range(3)

BOARDS = {
    "classic": (Sink.CLASSIC,), "extended": (Sink.EXTENDED,), "half clocks": (Sink.EXTENDED,),
    "quarter clocks": (Sink.EXTENDED,),
}
# Clocks; items per clock and node; vectors that the sink takes per clock; whether it is stuck. In turn: one node per
# clock, so that every item has a vector of its own.
PHASES = {
    "calm": (150, 0.05, 0.9, False), "busy": (150, 0.3, 0.5, False), "flood": (250, 0.9, 0.3, False),
    "stalled": (250, 0.15, 0.0, False), "in turn": (150, 0.8, 0.0, False), "stuck": (250, 0.2, 0.0, True),
    "silent": (80, 0.0, 0.9, False),
}


@dataclass
class Node:
    """A node, by what has been seen of it.

    waiting : admitted items of which no vector has come: window, nibble, half, clock of the offer.
    held : nibbles admitted and not popped, in the last clocks, the present one first.
    outage : cause of the present outage; ``lag``, ``carried``: of its stamps.
    """

    waiting: deque = field(default_factory=deque)
    held: deque = field(default_factory=lambda: deque([0] * KNOWN, KNOWN))
    outage: int | None = None
    stamp: int = -1
    lag: int = 0
    carried: int = 0

    def due(self) -> int:
        """Stamp of the first item that waits: one item per window, and none before its own."""
        return max(self.stamp + 1, self.waiting[0][0])


class Bench:
    """Intake and sink of a merge with windows of ``clocks`` clocks."""

    def __init__(self, dut, rng, clocks: int, planes: int):
        self.dut, self.rng, self.clocks, self.planes = dut, rng, clocks, planes
        self.framed = Sink.EXTENDED in dut.geometry.sinks
        self.nodes = [Node() for _ in range(NODES)]
        self.clock, self.carried = 0, 0
        self.still = 0                              # clocks since an item has been admitted or has left
        self.vectors = deque([0] * KNOWN, KNOWN)    # made and not taken, like `held`
        self.frames_stuck = False                   # ... since the FIFOs were last empty
        self.answers = [None] * NODES               # of the clock before: admitted, refused, or no item
        self.taken = []                             # the vector under way: node, nibble
        self.popped = []                            # ... that was popped a clock ago
        self.seen = Counter()

    def window(self, clock: int) -> int:
        return clock // self.clocks

    def offer(self, ctx, rate: float, in_turn: bool) -> None:
        rng, items = self.rng, self.dut.items
        writes = [self.clock % NODES] if in_turn else range(NODES)
        starts = sum(1 << n for n in writes if rng.random() < rate)
        live, allow, nibbles, halves = (rng.getrandbits(4 * NODES) for _ in range(4))
        live, allow = (value if rng.random() < 0.1 else -1 % (1 << NODES) for value in (live, allow))
        for target, value in ((items.start, starts), (items.allow, allow), (self.dut.time.window.live, live),
                              (items.nibble, nibbles), (items.ends, -1)):
            ctx.set(target, value)
        if self.planes:
            ctx.set(items.half, halves)
        admit = ctx.get(items.admit)
        ctx.set(items.push, admit)
        assert not admit & ~(starts & live & allow), "admitted, and not offered"
        self.answers = [admit >> n & 1 if starts & live & allow & 1 << n else None for n in range(NODES)]
        for n, node in enumerate(self.nodes):
            if admit >> n & 1:
                own = self.window(self.clock + LATE)
                parts = [halves >> at + n & 1 for at in range(0, NODES * self.planes, NODES)]
                node.waiting.append((own, nibbles >> 4 * n & 15, parts, self.clock))

    def take(self, ctx, rate: float, stuck: bool) -> None:
        """Takes a vector; pops its nibbles in the next clock, and compares them in the one after that."""
        o = self.dut.o
        for n, nibble in self.popped:
            assert ctx.get(o.nibble) >> 4 * n & 15 == nibble, "another nibble"
        self.popped, self.taken = self.taken, []
        ctx.set(o.pop, sum(1 << n for n, _ in self.popped))
        ctx.set(o.busy, bool(self.popped))
        ctx.set(o.stuck, stuck)
        ready = self.rng.random() < rate
        takes = ready and ctx.get(o.vectors.valid)
        ctx.set(o.vectors.ready, ready)
        ctx.set(o.done, takes)
        if takes:
            entry = o.vectors.p
            vector, stamp = ctx.get(entry.vector), ctx.get(entry.time)
            assert vector, "an empty vector"
            for n, node in enumerate(self.nodes):
                is_due = bool(node.waiting) and node.due() == stamp
                assert vector >> n & 1 == is_due, f"node {n} at {stamp}, and not at {node.waiting}"
                if is_due:
                    own, nibble, half, _ = node.waiting.popleft()
                    node.stamp, node.lag = stamp, max(node.lag, stamp - own)
                    node.carried += stamp > own
                    self.taken.append((n, nibble))
                    assert self.clocks > 1 or half == [
                        ctx.get(entry.halves) >> at + n & 1 for at in range(0, NODES * self.planes, NODES)]

    def judge(self, ctx) -> None:
        """What has been said of the items of the clock before."""
        account = self.dut.account
        admitted, closed = ctx.get(account.admitted), ctx.get(account.closed)
        refused_by = [ctx.get(by) for by in account.refused_by]
        for n, (node, answer) in enumerate(zip(self.nodes, self.answers, strict=True)):
            causes = [k for k, by in enumerate(refused_by) if by >> n & 1]
            assert (admitted >> n & 1, len(causes)) == (answer or 0, answer == 0)
            if answer and node.outage is not None:
                assert min(node.held) <= DEPTH // 2, "open again, and its FIFO is more than half full"
                assert min(self.vectors) <= min(VECTORS // 2, VECTORS - RESERVED), "... or that of the vectors"
                self.seen["reopened"] += 1
                node.outage = None
            elif causes and (node.outage is None or not closed >> n & 1):
                [node.outage] = causes
                full, crowded = max(node.held) >= DEPTH - 1, max(self.vectors) >= VECTORS - RESERVED
                assert full or crowded, f"refused, and there is room: {node.held}, {self.vectors}"
                assert {FRAMES: self.frames_stuck, NODE: full, VECTOR: crowded}[node.outage], "another cause"
                self.seen[node.outage] += 1
            elif causes:
                assert causes == [node.outage], "another cause in one outage"

    def watch(self, ctx) -> None:
        """What is said of what is inside."""
        account, o = self.dut.account, self.dut.o
        self.carried += ctx.get(account.carried).bit_count()
        oldest = min((node.waiting[0][3] for node in self.nodes if node.waiting), default=self.clock)
        assert ctx.get(account.pending) or oldest > self.clock - 4, "something is inside, and not pending"
        stamps, now = set(), self.window(self.clock)
        for node in self.nodes:
            assert len(node.waiting) <= DEPTH + 2
            stamp = node.stamp
            for own, *_ in node.waiting:
                stamp = max(stamp + 1, own)
                stamps.add(stamp)
            node.held.appendleft(len(node.waiting) + sum(self.nodes[n] is node for n, _ in self.taken))
        self.vectors.appendleft(sum(stamp < now for stamp in stamps))
        if max(self.vectors) == min(self.vectors):
            assert abs(ctx.get(self.dut.account.level) - self.vectors[0]) <= 1
        if self.framed:
            still = self.still > KNOWN
            fill = self.dut.account.fill
            levels = [sum((ctx.get(plane) >> n & 1) << b for b, plane in enumerate(fill)) for n in range(NODES)]
            assert not still or levels == [node.held[0] for node in self.nodes]
            if any(min(node.held) > DEPTH // 2 + 2 for node in self.nodes):
                assert ctx.get(o.pressed)
            if all(max(node.held) < DEPTH // 2 - 1 for node in self.nodes) and max(self.vectors) < VECTORS // 2 - 2:
                assert not ctx.get(o.pressed)

    async def step(self, ctx, rate, takes, stuck, in_turn=False):
        time = self.dut.time.window
        for target, value in ((time.now, self.window(self.clock)), (time.enable, 1),
                              (time.end, self.clock % self.clocks == self.clocks - 1)):
            ctx.set(target, value)
        self.judge(ctx)
        if self.framed:
            assert ctx.get(self.dut.o.ended) == sum(1 << n for n, answer in enumerate(self.answers) if answer)
        self.offer(ctx, rate, in_turn)
        self.take(ctx, takes, stuck)
        self.still = 0 if any(self.answers) or self.taken or self.popped else self.still + 1
        self.watch(ctx)
        waits = any(node.waiting for node in self.nodes)
        self.frames_stuck = (self.frames_stuck and waits) or (stuck and ctx.get(self.dut.o.vectors.valid))
        await ctx.tick()
        self.clock += 1


@pytest.mark.parametrize("clocks", [1, 5])
@pytest.mark.parametrize("board", BOARDS)
def test_every_item_once(board, clocks):
    rng = random.Random(f"{board} {clocks}")
    phases = {"half clocks": 2, "quarter clocks": 4}.get(board, 1)
    dut = Merge(Geometry(nodes=NODES, node_depth=DEPTH, vector_depth=VECTORS, sinks=BOARDS[board],
                         phases=phases))
    bench = Bench(dut, rng, clocks, phases.bit_length() - 1)

    async def play(ctx):
        await ctx.tick().repeat(4)      # until the levels are known: a board is enabled later than that
        # Each from empty, then in another order without a rest.
        for name in (*(name for phase in PHASES for name in (phase, "silent")), *rng.sample(list(PHASES), len(PHASES))):
            long, rate, takes, stuck = PHASES[name]
            for _ in range(long):
                await bench.step(ctx, rate, takes, stuck, name == "in turn")
        while any(node.waiting for node in bench.nodes):
            await bench.step(ctx, 0, 1, False)
        for _ in range(20):
            await bench.step(ctx, 0, 1, False)
        assert not ctx.get(dut.account.pending)
        for n, node in enumerate(bench.nodes):
            beyond = sum((ctx.get(plane) >> n & 1) << b for b, plane in enumerate(dut.account.beyond))
            assert beyond == node.lag + 2
        assert bench.carried == sum(node.carried for node in bench.nodes)

    run(dut, play, spine=ClockDomain("spine"))
    assert bench.seen.keys() >= {FRAMES, NODE, "reopened"} | ({VECTOR} if clocks == 1 else set()), bench.seen
    assert bench.carried or clocks == 1


def test_an_item_that_does_not_fit_is_refused_whole():
    """Of an item of one nibble and twice ``need``; two places are reserved for nibbles on their way."""
    dut = Merge(Geometry(nodes=1, node_depth=DEPTH, vector_depth=VECTORS, sinks=(Sink.EXTENDED,)))

    async def bench(ctx):
        ctx.set(dut.time.window.live, 1)
        ctx.set(dut.longer, 1)
        ctx.set(dut.items.allow, 1)
        level = 0
        for need, fits in ((2, True), (1, False), (1, False), (1, False)):
            ctx.set(dut.items.need[0], need & 1)
            ctx.set(dut.items.need[1], need >> 1)
            await ctx.tick()
            ctx.set(dut.items.start, 1)
            assert ctx.get(dut.items.admit) == fits, f"{1 + 2 * need} nibbles, {level} inside"
            for k in range(1 + 2 * need if fits else 1):
                ctx.set(dut.items.push, fits)
                level += fits
                await ctx.tick()
                ctx.set(dut.items.start, 0)
                if not k:
                    assert [ctx.get(by) for by in dut.account.refused_by] == [0, not fits, 0]
            ctx.set(dut.items.push, 0)
            await ctx.tick().repeat(4)

    run(dut, bench, spine=ClockDomain("spine"))
