"""Classic sink: every vector is one event frame, over the bus or in blocks, whoever stalls."""

import random
import struct
from collections import deque

import pytest
from hypermon.hdl.layout import Geometry, padded
from hypermon.hdl.sinks.classic.classic_sink import ClassicSink

from ...harness.stage import run

DEPTH = 16
#: Windows that a frame waits.
FLUSH = 300
NEVER = 2**32 - 1
#: Clocks between two reads over the bus, at least.
APART = 4

# Clocks; vectors per clock; grants and beats of the blocker per clock; reads over the bus instead.
PHASES = {
    "calm": (400, 0.05, 0.3, 0.8, False), "flood": (300, 0.9, 0.2, 0.5, False), "fast": (300, 0.9, 1.0, 1.0, False),
    "stalled": (150, 0.5, 0.0, 0.0, False), "bus": (900, 0.012, 0.3, 0.8, True), "silent": (200, 0.0, 0.5, 1.0, False),
}


def words_of(time: int, nibbles: dict[int, int], nodes: int) -> list[int]:
    """The event frame of section 3.2.1: rows of eight nodes, the highest first, the strobe vector, the time stamp."""
    rows = 2 if nodes <= 16 else 4
    frame = [0] * rows
    for node, nibble in nibbles.items():
        frame[rows - 1 - node // 8] += nibble * 16 ** (node % 8)
    return [*frame, sum(2**node for node in nibbles), time % 2**32]


class Bench:
    """Node FIFOs, window, bus and blocker around the sink."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.nodes = dut, rng, dut.geometry.nodes
        self.size = len(words_of(0, {}, self.nodes))
        self.time = self.clock = 0
        self.entered = self.wrap_at = 0
        self.vectors: deque[tuple[int, dict[int, int], bool]] = deque()
        self.queues = [deque() for _ in range(self.nodes)]      # nibbles in the node FIFOs
        self.popped, self.heads = 0, [0] * self.nodes
        self.written: list[tuple[int, list[int]]] = []          # upper half of the time, words
        self.read: list[tuple[int, list[int]]] = []
        self.left, self.delivered = [0] * self.nodes, [0] * self.nodes
        self.payload, self.owed, self.high, self.asked = b"", 0, 0, 0
        self.words: list[int] = []                              # of the frame that the bus reads
        self.took = False
        # Clocks since a read; with a frame that is ready; without any; without a block.
        self.quiet_for, self.ready_for, self.empty_for, self.bus_for = APART, 0, 0, 0
        self.seen = dict.fromkeys(("stuck", "bus", "blocks", "empty reads"), 0)

    def write(self, rate: float) -> None:
        rng = self.rng
        self.time += rng.choice([1, 1, 50]) if rng.random() < 0.98 else 2**31
        if len(self.vectors) < 8 and rng.random() < rate:
            members = [n for n in range(self.nodes) if rng.random() < 0.4] or [rng.randrange(self.nodes)]
            nibbles = {n: rng.getrandbits(4) for n in members}
            for n, nibble in nibbles.items():
                self.queues[n].append(nibble)
            self.vectors.append((self.time, nibbles, self.time >> 32 != self.wrap_at))
            self.wrap_at = self.time >> 32
            self.written.append((self.time >> 32, words_of(self.time, nibbles, self.nodes)))
            self.time += 1

    def feed(self, ctx) -> None:
        """The first vector, and the nibbles that were popped in the clock before; others are not defined."""
        dut = self.dut
        ctx.set(dut.i.valid, bool(self.vectors))
        if self.vectors:
            time, nibbles, wrap = self.vectors[0]
            for field, value in (("time", time), ("vector", sum(1 << n for n in nibbles)), ("wrap", wrap)):
                ctx.set(dut.i.p[field], value)
        for n in range(self.nodes):
            if self.popped >> n & 1:
                self.heads[n] = self.queues[n].popleft()
            elif not dut.geometry.narrow:   # which looks at them a clock later
                self.heads[n] = self.rng.getrandbits(4)
        ctx.set(dut.nibble, sum(value << 4 * n for n, value in enumerate(self.heads)))
        self.popped = ctx.get(dut.pop)

    def leave(self, high: int, words: list[int]) -> None:
        self.read.append((high, words))
        assert self.read[-1] == self.written[len(self.read) - 1], f"frame {len(self.read) - 1}"
        for n in range(self.nodes):
            self.left[n] += words[-2] >> n & 1

    def block(self, ctx, grant: float, take: float) -> None:
        """The blocker: grants a request, then takes beats as they come."""
        source = self.dut.source
        self.asked = self.asked + 1 if ctx.get(source.request) and not self.owed else 0
        grants, takes = self.asked > 2 and self.rng.random() < grant, self.owed and self.rng.random() < take
        ctx.set(source.grant, grants)
        ctx.set(source.beats.ready, bool(takes))
        if grants:
            self.owed, self.high, self.payload = ctx.get(source.length), ctx.get(source.time) >> 32, b""
            assert self.owed % (4 * self.size) == 0 < self.owed
            assert ctx.get(source.time) % 2**32 == self.written[len(self.read)][1][-1], "not the first frame's time"
            self.seen["blocks"] += 1
        elif takes and ctx.get(source.beats.valid):
            beat = ctx.get(source.beats.p)
            self.payload += beat.to_bytes(len(source.beats.p) // 8, "little")
            if len(self.payload) >= padded(self.owed):
                for frame in struct.iter_unpack(f"<{self.size}I", self.payload[:self.owed]):
                    self.leave(self.high, list(frame))
                assert not any(self.payload[self.owed:])
                self.owed = 0

    def bus(self, ctx, reads: bool) -> None:
        """Reads a word now and then; the sink is told one clock later."""
        access = self.dut.access
        ctx.set(access.read, self.took)
        self.empty_for = self.empty_for + 1 if self.entered == len(self.read) else 0
        self.ready_for = self.ready_for + 1 if ctx.get(access.ready) and self.bus_for > APART else 0
        self.quiet_for = 0 if self.took else self.quiet_for + 1
        self.took = False
        # The choice between stream and bus changes between blocks, and is in force some clocks later.
        self.bus_for = self.bus_for + 1 if reads and not self.owed and not ctx.get(self.dut.source.request) else 0
        if self.bus_for <= APART or self.quiet_for < APART or self.rng.random() < 0.3:
            return
        self.took, word = True, ctx.get(access.word)
        assert ctx.get(access.position) == len(self.words)
        if not self.words and self.ready_for < APART:
            # An empty read takes nothing, whatever comes in the meantime.
            self.took = self.empty_for > APART
            self.seen["empty reads"] += self.took
            assert not self.took or not (word or ctx.get(access.high))
            return
        assert ctx.get(access.ready) == (not self.words)
        if not self.words:
            self.word_high = ctx.get(access.high)
        self.words.append(word)
        if len(self.words) == self.size:
            self.leave(self.word_high, self.words)
            self.words, self.seen["bus"] = [], self.seen["bus"] + 1

    async def step(self, ctx, rate, grant, take, reads, over=False):
        dut = self.dut
        self.write(rate)
        # A frame that the bus has begun is finished. A write of CONTROL takes longer than what follows a read.
        bus = (reads or self.words or self.took or self.quiet_for < APART) and not over
        for field, value in ((dut.streaming, not bus), (dut.now, self.time % 2**32), (dut.flush, FLUSH),
                             (dut.ending, over)):
            ctx.set(field, value)
        self.feed(ctx)
        self.block(ctx, grant, take)
        self.bus(ctx, bool(bus))
        delivered = ctx.get(dut.delivered)
        for n in range(self.nodes):
            self.delivered[n] += delivered >> n & 1
        self.seen["stuck"] += ctx.get(dut.stuck)
        inside = self.entered - len(self.read)
        # Of those the builder holds one, which has no slot yet.
        assert inside <= DEPTH + 5 or self.owed
        if ctx.get(dut.stuck):
            assert self.vectors or inside
            assert ctx.get(dut.access.level) >= DEPTH - 4, "stuck, and there is room"
        if self.vectors and ctx.get(dut.i.ready):
            self.vectors.popleft()
            self.entered += 1
        await ctx.tick()
        self.clock += 1


@pytest.mark.parametrize(("nodes", "options"), [
    (3, {}), (16, {}), (20, {}), (5, {"beat_bytes": 2}), (5, {"beat_bytes": 4}), (20, {"beat_bytes": 4})])
def test_every_vector_is_a_frame(nodes, options):
    rng = random.Random(nodes)
    dut = ClassicSink(Geometry(nodes=nodes, node_depth=4, vector_depth=16, frame_depth=DEPTH, **options))
    bench = Bench(dut, rng)

    async def play(ctx):
        order = [*PHASES, *rng.sample(list(PHASES), len(PHASES))]
        for name in order:
            long, rate, grant, take, reads = PHASES[name]
            for _ in range(long):
                await bench.step(ctx, rate, grant, take, reads)
        while bench.words or bench.took or bench.quiet_for < APART:
            await bench.step(ctx, 0, 0, 0, True)
        for _ in range(800):
            await bench.step(ctx, 0, 1, 1, False, True)
        assert bench.read == bench.written
        assert bench.delivered == bench.left
        assert ctx.get(dut.access.generated) == len(bench.written)
        assert [ctx.get(signal) for signal in (dut.busy, dut.stuck, dut.access.level, dut.access.ready)] == [0] * 4
        assert ctx.get(dut.horizon) == NEVER

    run(dut, play)
    assert all(bench.seen.values()), bench.seen


def test_a_lone_frame_waits_for_the_limit():
    dut = ClassicSink(Geometry(nodes=4, node_depth=4, vector_depth=16, frame_depth=DEPTH))

    async def bench(ctx):
        ctx.set(dut.streaming, 1)
        ctx.set(dut.flush, FLUSH)
        ctx.set(dut.i.p.vector, 1)
        ctx.set(dut.i.valid, 1)
        await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)
        for window in range(FLUSH + 40):
            ctx.set(dut.now, window)
            if 10 < window < FLUSH - 2:
                assert FLUSH - window - 10 < ctx.get(dut.horizon) < FLUSH - window + 10
            if ctx.get(dut.source.request):
                assert window >= FLUSH, "sent early"
                return
            await ctx.tick()
        raise AssertionError("never sent")

    run(dut, bench)
