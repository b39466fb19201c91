"""Source of COMPACT blocks: blocks leave whole and in order, items are counted when theirs has left,
and there is room for what is on its way."""

import random
from collections import deque

import pytest
from hypermon.hdl.layout import BEAT_BYTES, COMPACT_BEATS, COMPACT_HEAD, Geometry
from hypermon.hdl.sinks.extended import compact_source
from hypermon.hdl.sinks.extended.compact_source import CompactSource

from ...harness.stage import run

NEVER = 2**32 - 1
#: Clocks from a code's choice until its item is told, and until its beat or its block is there.
TOLD, PACKED = 4, 8
#: Codes more that there is room for when `room` falls, and what may be kept free for all of them.
MORE, SPARE = 8, 16
#: Blocks that there is room for before `room` falls.
BLOCKS = 8
#: Clocks until what is known of a block, of the levels or of a wait is said.
SETTLED = 20
#: Clocks until it is noticed that a block is open.
NOTICED = 3
#: Items that the smaller log of these tests holds.
ITEMS = 128


class Encoder:
    """Encoder and packer by their contracts: chooses codes while there is room, and tells of them later."""

    def __init__(self, rng, nodes):
        self.rng, self.nodes = rng, nodes
        self.told, self.packed = deque([None] * TOLD), deque([(None, None)] * PACKED)
        self.open = self.filled = False
        self.beats, self.items = [], []     # of the open block
        self.blocks = []                    # all closed ones: length, time, beats, nodes

    def now(self):
        """What comes in this clock: node of an item, beat, block."""
        return self.told[0], *self.packed[0]

    def clock(self, action, item, beat):
        """Goes on by a clock, in which ``action`` is chosen: a code, the block's end or nothing."""
        rng, node, data, block, opened = self.rng, None, None, None, self.open
        if action == "close" and not self.items:
            action, item = "code", True     # every block has one
        if action == "code":
            opened = True
            if item:
                node = rng.randrange(self.nodes)
                self.items.append(node)
            # Two codes do not fill two beats.
            if beat and not self.filled and len(self.beats) < COMPACT_BEATS - 1:
                data = rng.getrandbits(128)
                self.beats.append(data)
        elif action == "close":
            opened = False
            if not self.beats or rng.random() < 0.8:
                data = rng.getrandbits(128)
                self.beats.append(data)
            length = BEAT_BYTES * len(self.beats) - rng.randrange(BEAT_BYTES)
            block = (length, len(self.items), rng.getrandbits(64))
            self.blocks.append((length, block[2], self.beats, self.items))
            self.beats, self.items = [], []
        self.told.popleft()
        self.told.append(node)
        self.packed.popleft()
        self.packed.append((data, block))
        self.filled = data is not None
        self.open = opened


# Codes a clock, how many of them fill a beat, are an item, end their block; grants and beats of the blocker
# a clock; windows a clock; whether `streaming` changes.
PHASES = {
    "lone": (0.02, 0.2, 0.8, 0.0, 0.3, 0.7, 0.5, False),
    "steady": (0.5, 0.3, 0.9, 0.02, 0.4, 0.8, 0.2, True),
    "flood": (1.0, 0.5, 0.8, 0.01, 0.3, 0.6, 0.1, True),
    "beats, stalled": (1.0, 1.0, 0.05, 0.004, 0.0, 0.0, 0.1, False),
    "blocks, stalled": (1.0, 0.1, 0.3, 0.9, 0.0, 0.0, 0.1, False),
    "items, stalled": (1.0, 0.02, 1.0, 0.02, 0.0, 0.0, 0.1, False),
    "short": (0.9, 0.3, 0.7, 0.5, 1.0, 1.0, 0.2, True),
    "silent": (0.0, 0.0, 0.0, 0.0, 0.3, 0.7, 1.0, True),
}


def play(seed, nodes, order, log, *, limit=60, clocks=400):
    """Goes through the phases, then lets everything leave; returns how often what has been seen."""
    rng = random.Random(seed)
    depth = 2 * COMPACT_BEATS
    dut = CompactSource(Geometry(nodes=nodes, compact_depth=depth))
    encoder = Encoder(rng, nodes)
    # Some nodes' items are longer: then each block begins with a beat that says whose.
    words, events = (random.Random(seed * n).getrandbits(nodes) | 1 if seed % 2 else 0 for n in (2, 3))
    head = words | events << 32
    totals = dict.fromkeys(["blocks", "items", "full beats", "full blocks", "full log", "flushed", "crowded",
                            "reopened", "held", "jumps", "withheld"], 0)

    async def bench(ctx):
        source = dut.source
        now, streaming, stream_before = 2**32 - rng.randint(1, 500), 1, 1
        took = 0                                    # blocks that have been granted
        owed_beats, uncounted, granted = deque(), deque(), -100
        stored, complete, logged = 0, deque(), 0    # beats, blocks (when they came), items inside
        levels = deque([(0, 0, 0)] * 8, 8)
        requested, asked, idle_for = 0, 0, 0
        room_for, more = 0, MORE                    # clocks since `room` rose; codes more when it falls
        opened, open_for, since, noticed, items = -100, 0, 0, 0, 0
        flush_before, reached, crowded_for, jumped = 0, 0, 0, -100
        low_since = 0
        clock = 0
        at_head = False

        async def step(codes, beat, item, close, grant, take, speed, switches):
            nonlocal now, streaming, stream_before, took, granted, stored, logged, requested, asked, idle_for
            nonlocal room_for, more, opened, open_for, since, noticed, items, flush_before, reached, crowded_for, jumped
            nonlocal clock, low_since, at_head
            if switches and rng.random() < 0.01:
                streaming ^= 1
            node, data, block = encoder.now()
            for field, value in ((dut.item, node is not None), (dut.node, node or 0),
                                 (dut.beats.valid, data is not None), (dut.beats.p, data or 0),
                                 (dut.blocks.valid, block is not None), (dut.streaming, streaming),
                                 (dut.open, encoder.open), (dut.now, now % 2**32)):
                ctx.set(field, value)
            if block:
                p = dut.blocks.p
                for field, value in zip((p.length, p.items, p.time), block, strict=True):
                    ctx.set(field, value)

            # The blocker. It looks at a request for some clocks before it grants it.
            request = ctx.get(source.request)
            assert request or not requested or granted == clock - 1, "a request has been withdrawn"
            asked = asked + 1 if request and not owed_beats else 0
            grants = asked > 2 and rng.random() < grant
            takes = bool(owed_beats) and rng.random() < take
            ctx.set(source.grant, grants)
            ctx.set(source.beats.ready, takes)
            if request and not requested:
                assert stream_before, "a block is asked for while blocks have to wait"
                assert complete, "a block is asked for that is not complete"
            idle_for = idle_for + 1 if complete and complete[0] < clock - 4 and streaming and not request else 0
            assert idle_for < 6, "a complete block is not asked for"
            totals["withheld"] += bool(complete and not streaming)

            # What is counted: in order, one a clock, and only after the grant.
            delivered, counting = ctx.get(dut.delivered), ctx.get(dut.counting)
            if delivered:
                assert counting
                assert uncounted, "an item is counted that has not left"
                assert delivered == 1 << uncounted.popleft(), "an item of another node is counted"
                logged -= 1
                totals["items"] += 1
            if uncounted:
                assert counting or granted == clock
                assert delivered or clock - granted < 5, "not an item a clock"
            else:
                assert not counting or delivered or granted > clock - 4, "counts, and there is nothing"
            waits = bool(complete and complete[0] < clock - 2) or bool(uncounted)
            assert ctx.get(dut.waiting) or not waits, "a block waits, or is not counted yet"
            assert not ctx.get(dut.waiting) or complete or uncounted or counting or granted > clock - 3

            # Blocks leave.
            if grants:
                length, time, beats, members = encoder.blocks[took]
                took += 1
                assert complete, "a block leaves that is not complete"
                complete.popleft()
                length += COMPACT_HEAD.bytes * bool(head)
                assert (ctx.get(source.length), ctx.get(source.time)) == (length, time)
                owed_beats.extend([head, *beats] if head else beats)
                at_head = bool(head)
                uncounted.extend(members)
                granted = clock
                totals["blocks"] += 1
            elif takes and ctx.get(source.beats.valid):
                assert ctx.get(source.beats.p) == owed_beats.popleft(), "another beat"
                stored -= not at_head
                at_head = False
            elif takes:
                assert clock - granted < 6, "a beat of a complete block is not there"

            # Room, as long as it is said, and for so many codes more; but not for ever.
            if data is not None:
                assert ctx.get(dut.beats.ready), "a beat is lost"
                stored += 1
            if block is not None:
                assert ctx.get(dut.blocks.ready), "a block is lost"
                complete.append(clock)
            logged += node is not None
            assert logged <= log, "an item is forgotten"
            room = ctx.get(dut.room)
            marks = [(level[0] >= depth - SPARE, level[1] >= BLOCKS, level[2] >= log - SPARE) for level in levels]
            if not room and clock > 2:
                assert any(map(any, marks)), f"no room, and much of it: {list(levels)}"
                for k, name in enumerate(("full beats", "full blocks", "full log")):
                    totals[name] += all(mark[k] for mark in marks)
            # What leaves is counted for a clock more.
            levels.append((stored + takes, len(complete) + grants, logged + bool(delivered)))
            room_for = room_for + 1 if room else 0

            # Flush: when the block has been open long enough, or half of the log is its items.
            flush, is_open = ctx.get(dut.flush), encoder.open
            if is_open and not open_for:
                totals["reopened"] += clock - opened < 3
                since, items = now, 0
            noticed = now if open_for <= NOTICED else noticed
            items += node is not None if is_open and open_for >= TOLD else 0
            open_for = open_for + 1 if is_open else 0
            opened = clock if is_open else opened
            waited = now - since
            if is_open:
                crowded = items >= log // 2 - 1
                if flush:
                    assert waited >= limit or crowded, f"flushed after {waited} of {limit} windows, {items} items"
                    totals["flushed" if waited >= limit else "crowded"] += not flush_before
                assert flush or not flush_before or open_for == 1, "to be closed, and then no longer"
                reached = reached + 1 if now - noticed >= limit else 0
                crowded_for = crowded_for + 1 if items >= log // 2 + 8 else 0
                assert flush or (reached <= SETTLED and crowded_for <= SETTLED) or open_for < SETTLED
            else:
                reached = crowded_for = 0
                assert not flush or clock - opened < 3
            flush_before = flush and is_open
            horizon = ctx.get(dut.horizon)
            if not is_open and clock - opened > 3:
                assert horizon == NEVER
            elif is_open and open_for > 8 and clock - jumped > 8:
                left = max(0, limit - waited)
                assert left <= horizon <= left + 6, f"horizon {horizon}, {left} windows left"
                # Idle time is skipped, up to what the stage allows.
                if horizon > 9 and rng.random() < 0.02:
                    now, jumped = now + rng.randint(1, horizon - 8), clock
                    totals["jumps"] += 1

            action = None
            if room or (more and codes == 1.0 and not grant):
                more -= not room
                if is_open and ((flush and rng.random() < 0.2) or len(encoder.beats) >= COMPACT_BEATS - 2):
                    action = "close"
                elif rng.random() < codes:
                    action = "close" if is_open and rng.random() < close else "code"
            if room_for > 40:
                more = MORE
            low_since = 0 if room or grants or takes else low_since + 1
            encoder.clock(action, rng.random() < item, rng.random() < beat)
            requested, stream_before = request, streaming
            now += rng.random() < speed
            clock += 1
            await ctx.tick()

        ctx.set(dut.limit, limit)
        ctx.set(dut.words, words)
        ctx.set(dut.events, events)
        for name in order:
            for _ in range(clocks):
                await step(*PHASES[name])
            if "stalled" in name:
                # Until nothing goes any more; and on from there.
                while low_since < 30:
                    await step(*PHASES[name])
                totals["held"] += 1
        # Everything leaves.
        streaming = 1
        while encoder.open or took < len(encoder.blocks) or owed_beats or uncounted:
            await step(0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, False)
        for _ in range(10):
            await step(0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, False)
        assert room_for, "there is room again"
        assert took == len(encoder.blocks)
        assert not stored
        assert not logged
        assert not ctx.get(dut.waiting)
        assert not ctx.get(dut.counting)
        assert ctx.get(dut.horizon) == NEVER

    run(dut, bench, clocks=60_000)
    return totals


@pytest.fixture
def small_log(monkeypatch):
    monkeypatch.setattr(compact_source, "_ITEMS", ITEMS)
    return ITEMS


@pytest.mark.parametrize(("nodes", "limit", "seed"), [(16, 60, 0), (32, 300, 1), (1, 0, 2), (5, 7, 3)])
def test_blocks_leave(nodes, limit, seed, small_log):
    order = list(PHASES)
    random.Random(seed).shuffle(order)
    totals = play(seed, nodes, order, small_log, limit=limit)
    assert all(totals[name] for name in ("blocks", "items", "flushed", "held", "withheld")), totals
    assert totals["full blocks"], totals
    assert totals["full log"], totals
    assert totals["jumps"] or limit < 60
    assert totals["crowded"] or limit < 300


@pytest.mark.parametrize("seed", range(2))
def test_the_beats_are_full(seed):
    """With the log as large as it is."""
    totals = play(seed, 16, ["beats, stalled", "short", "beats, stalled", "flood"], compact_source._ITEMS, limit=10**6)
    assert totals["full beats"], totals


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed, small_log):
    rng = random.Random(seed)
    play(seed, rng.choice([1, 3, 16, 17, 32]), [rng.choice(list(PHASES)) for _ in range(12)], small_log,
         limit=rng.choice([0, 1, 20, 100, 1000]))
