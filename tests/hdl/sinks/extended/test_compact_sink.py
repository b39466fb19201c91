"""Compact sink: every item once, in blocks that a host can read; nothing is lost when it backs up."""

import random
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypermon.hdl.layout import (
    BEAT_BYTES,
    COMPACT_BEATS,
    GAP_GROUPS,
    TRIGGER_OUT_CLOCKS,
    TRIGGER_OUT_PULSE,
    TRIGGER_OUT_WINDOWS,
    Extra,
    Geometry,
    Window,
    padded,
)
from hypermon.hdl.sinks.extended import compact_source
from hypermon.hdl.sinks.extended.compact_sink import CompactSink
from hypermon.host.blocks.compact import decode

from ...harness.stage import run

#: Items that the smaller log of these tests holds.
ITEMS = 256
#: Vectors that wait before the sink at most, and those on their way through their FIFO.
VECTORS, THROUGH = 64, 4
#: Clocks until all is quiet when all has left.
SETTLED = 8

# Windows a clock; vectors a window; how many of them are of one node; grants and beats of the blocker a clock.
PHASES = {
    "lone": (0.5, 0.02, 0.8, 0.3, 0.7),
    "steady": (0.1, 0.8, 0.7, 0.3, 0.7),
    "wide": (0.1, 0.9, 0.1, 0.3, 0.7),
    "flood": (1.0, 1.0, 0.9, 0.5, 0.9),
    "stalled": (0.3, 0.9, 0.5, 0.0, 0.0),
    "fast": (0.5, 0.5, 0.9, 1.0, 1.0),
    "silent": (1.0, 0.0, 0.0, 0.3, 0.7),
}


@dataclass
class Block:
    """Its first window, the length of its payload, the clock of its grant, its items."""

    time: int
    length: int
    clock: int
    items: list = field(default_factory=list)


def items_of(payload, time, nodes):
    """What a host reads."""
    decoded = decode([payload], [time], nodes)
    assert not decoded.faults, decoded.faults
    return [item for rows in decoded.parts
            for item in zip(rows.windows.tolist(), rows.node.tolist(), rows.nibble.tolist(), strict=True)]


def play(seed, nodes, order, *, limit=200, clocks=400, skip=0.0, streaming=1.0, stride=1, wide=16):
    """Goes through the phases, then lets everything leave.

    ``stride``: windows that time goes on by at once; ``skip``: how often by more than a gap can say.
    ``wide``: bytes of a beat. Returns the blocks, and how often the sink has been stuck and at rest.
    """
    rng = random.Random(seed)
    dut = CompactSink(Geometry(nodes=nodes, compact_depth=2 * COMPACT_BEATS, beat_bytes=wide))
    written, blocks = [], []
    totals = {"stuck": 0, "rests": 0}

    async def bench(ctx):
        source = dut.source
        now, clock = rng.getrandbits(36), 0
        waiting, queues = deque(), [deque() for _ in range(nodes)]      # vectors and when they came; nibbles
        inside, levels = deque(), deque([0] * 2, 2)     # nodes of all that has been taken and is not counted
        popped, owed, payload, asked, requested = 0, 0, b"", 0, 0
        told, counted = 0, 0                            # items of the blocks that have left, and of all counted
        settled, stuck_before, stuck_for = 0, 0, 0

        async def step(speed, rate, lone, grant, take):
            nonlocal now, clock, popped, owed, payload, asked, requested, told, counted
            nonlocal settled, stuck_before, stuck_for
            moved = rng.random() < speed
            now += moved * stride
            if skip and rng.random() < skip:
                now, moved = now + rng.choice([8**GAP_GROUPS - 3, 8**GAP_GROUPS, 8**(GAP_GROUPS + 1), 2**33]), True
            if moved and len(waiting) < VECTORS and rng.random() < rate:
                size = 1 if rng.random() < lone else rng.randint(1, nodes)
                members = [(n, rng.getrandbits(4)) for n in sorted(rng.sample(range(nodes), size))]
                for n, nibble in members:
                    queues[n].append(nibble)
                waiting.append((clock, now, members))
                written.extend((now, n, nibble) for n, nibble in members)
            shown = bool(waiting) and waiting[0][0] <= clock - THROUGH
            ctx.set(dut.i.valid, shown)
            if shown:
                ctx.set(dut.i.p.time, waiting[0][1])
                ctx.set(dut.i.p.vector, sum(1 << n for n, _ in waiting[0][2]))
            ctx.set(dut.now, now % 2**32)
            ctx.set(dut.streaming, rng.random() < streaming)
            # What is popped stands at the output in the next clock; others show anything.
            nibbles = [rng.getrandbits(4) for _ in range(nodes)]
            for n in range(nodes):
                if popped >> n & 1:
                    nibbles[n] = queues[n].popleft()
            ctx.set(dut.nibble, sum(nibble << 4 * n for n, nibble in enumerate(nibbles)))
            popped = ctx.get(dut.pop)

            # The blocker.
            request = ctx.get(source.request)
            assert request or not requested, "a request has been withdrawn"
            asked = asked + 1 if request and not owed else 0
            grants = asked > 2 and rng.random() < grant
            takes = owed and rng.random() < take
            ctx.set(source.grant, grants)
            ctx.set(source.beats.ready, takes)

            delivered, counting = ctx.get(dut.delivered), ctx.get(dut.counting)
            if delivered:
                assert counting
                assert inside
                assert delivered == 1 << inside.popleft(), "an item of another node is counted"
                counted += 1
            # How many items a block has is known when it has been read.
            assert counted <= told or owed, "an item is counted that has not left"
            assert counting or counted >= told, "nothing is counted any more"

            # Whatever is inside is seen from outside, as soon as the vector FIFO does not count it any more.
            busy = ctx.get(dut.busy) or ctx.get(dut.waiting)
            assert busy or max(levels) or not inside, "something is inside, and nobody says so"
            settled = 0 if waiting or inside or owed or request else settled + 1
            assert not busy or settled <= SETTLED, "busy for nothing"
            totals["rests"] += settled == SETTLED
            stuck = ctx.get(dut.stuck)
            assert not stuck or inside
            totals["stuck"] += stuck and not stuck_before
            stuck_for, stuck_before = stuck_for + 1 if stuck else 0, stuck

            requested = request and not grants
            if grants:
                owed, payload = ctx.get(source.length), b""
                assert 0 < owed <= COMPACT_BEATS * BEAT_BYTES
                blocks.append(Block(ctx.get(source.time), owed, clock))
            elif takes and ctx.get(source.beats.valid):
                payload += ctx.get(source.beats.p).to_bytes(wide, "little")
                if len(payload) >= padded(owed):
                    assert not any(payload[owed:]), "the padding is not zero"
                    blocks[-1].items = items_of(payload[:owed], blocks[-1].time, nodes)
                    told += len(blocks[-1].items)
                    owed = 0
            elif takes:
                assert clock - blocks[-1].clock < 6, "a beat of a complete block is not there"
            if shown and ctx.get(dut.i.ready):
                inside.extend(n for n, _ in waiting.popleft()[2])
            levels.append(len(waiting))
            clock += 1
            await ctx.tick()

        ctx.set(dut.limit, limit)
        for name in order:
            for _ in range(clocks):
                await step(*PHASES[name])
            while name == "stalled" and not (len(waiting) == VECTORS and stuck_for > 30):
                await step(*PHASES[name])
        ctx.set(dut.limit, min(limit, 50))
        while waiting or inside or owed or settled < 2 * SETTLED:
            await step(1.0, 0.0, 0.0, 1.0, 1.0)
        assert not any(queues)

    run(dut, bench, clocks=60_000)
    assert [item for block in blocks for item in block.items] == written
    return blocks, totals


@pytest.fixture
def small_log(monkeypatch):
    monkeypatch.setattr(compact_source, "_ITEMS", ITEMS)


@pytest.mark.parametrize(("nodes", "limit", "wide"), [
    (16, 200, 16), (32, 20, 16), (4, 2000, 16), (1, 0, 16), (16, 200, 4), (32, 20, 4)])
def test_every_item_once(nodes, limit, wide, small_log):
    order = list(PHASES)
    random.Random(nodes).shuffle(order)
    _, totals = play(nodes, nodes, [*order, "lone"], limit=limit, skip=0.002, streaming=0.95, wide=wide)
    assert totals["stuck"], totals
    assert totals["rests"] or limit > 200


@pytest.mark.slow
def test_backs_up_at_full_size(monkeypatch):
    """The memories as large as they are: it is the beats that there is no room for."""
    # Windows far apart: long numbers.
    monkeypatch.setitem(PHASES, "far", (1.0, 1.0, 0.9, 0.0, 0.0))
    blocks, totals = play(5, 32, ["far", "stalled", "fast"], limit=2**32 - 1, clocks=2500, stride=512)
    assert totals["stuck"]
    assert any(block.length > 0.95 * COMPACT_BEATS * BEAT_BYTES for block in blocks)


@pytest.mark.parametrize("name", ["lone", "steady", "wide", "flood"])
def test_blocks_are_not_closed_early(name):
    """A link that keeps pace: a block spans the limit, unless it is full or the next window too far away."""
    limit = 60
    speed, rate, lone, _, _ = PHASES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PHASES, "paced", (min(speed, 0.25), rate, lone, 1.0, 1.0))
        blocks, _ = play(9, 16, ["paced"], limit=limit, clocks=2500)
    # When all leaves in the end, time runs faster than what waits inside goes on.
    spans = [(after.time - block.time, block.length) for block, after in pairwise(blocks)][:-1]
    assert len(spans) > 1
    for span, length in spans:
        assert span > limit - 10 or length > 0.95 * COMPACT_BEATS * BEAT_BYTES, f"{span} windows: {spans}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed, small_log):
    rng = random.Random(seed)
    play(seed, rng.choice([1, 3, 16, 17, 32]), [rng.choice(list(PHASES)) for _ in range(10)],
         wide=(16, 4)[seed % 2],
         limit=rng.choice([0, 1, 20, 200, 2000]), skip=rng.choice([0, 0.01]), streaming=rng.choice([1, 0.5]))


def test_a_pin_that_is_to_rise_is_no_time_to_be_skipped():
    """From the item that fires it until it has fallen the horizon is 0; before and after, the log's timer has it."""
    dut = CompactSink(Geometry.extended(2, extras=(Extra.TRIGGER_OUT,)))
    item, limit, rises = 100, 4000, []
    horizons = []

    async def bench(ctx):
        ctx.set(dut.start.on, 1)
        ctx.set(dut.window, Window.CLOCK)
        ctx.set(dut.limit, limit)
        ctx.set(dut.streaming, 1)
        for clock in range(600):
            ctx.set(dut.now, clock)
            ctx.set(dut.i.valid, clock == item + THROUGH)
            ctx.set(dut.i.p.vector, 1)
            ctx.set(dut.i.p.time, item)
            horizons.append(ctx.get(dut.horizon))
            if ctx.get(dut.out):
                rises.append(clock)
            await ctx.tick()

    run(dut, bench)
    assert len(rises) == TRIGGER_OUT_PULSE
    assert rises[0] <= item + TRIGGER_OUT_WINDOWS[Window.CLOCK] + TRIGGER_OUT_CLOCKS
    zero = [clock for clock, horizon in enumerate(horizons) if not horizon]
    assert zero == list(range(zero[0], rises[-1] + 1))
    assert item < zero[0] < item + 40
