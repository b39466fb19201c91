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


class Bench:
    """Blocker, host and time around the source, and a ledger of beats, blocks and items.

    Each check is of one promise of the source; it looks at a clock, and at what the clocks before have left in the
    ledger.
    """

    def __init__(self, dut, rng, encoder, head, log, limit):
        self.dut, self.rng, self.encoder, self.head = dut, rng, encoder, head
        self.log, self.limit, self.depth = log, limit, dut.geometry.compact_depth
        self.clock = 0
        self.now = 2**32 - rng.randint(1, 500)
        self.streaming = self.stream_before = 1
        # The blocker.
        self.took = self.requested = self.asked = self.idle_for = 0     # took: blocks that have been granted
        self.granted, self.at_head = -100, False
        self.owed_beats: deque[int] = deque()
        # What is inside: beats; blocks, by the clock in which each came; items; nodes of items that have left.
        self.stored, self.logged = 0, 0
        self.complete: deque[int] = deque()
        self.uncounted: deque[int] = deque()
        self.levels = deque([(0, 0, 0)] * 8, 8)
        # Room: clocks since it rose, and since all has stood still; codes more when it falls.
        self.room_for, self.low_since, self.more = 0, 0, MORE
        # The open block: last clock of it; clocks, windows and items since it began.
        self.opened, self.open_for, self.since, self.noticed, self.items = -100, 0, 0, 0, 0
        self.flush_before, self.reached, self.crowded_for, self.jumped = 0, 0, 0, -100
        self.totals = dict.fromkeys(["blocks", "items", "full beats", "full blocks", "full log", "flushed", "crowded",
                                     "reopened", "held", "jumps", "withheld"], 0)

    def feed(self, ctx) -> None:
        """What encoder and packer bring in this clock."""
        dut = self.dut
        self.node, self.data, self.block = self.encoder.now()
        for field, value in ((dut.item, self.node is not None), (dut.node, self.node or 0),
                             (dut.beats.valid, self.data is not None), (dut.beats.p, self.data or 0),
                             (dut.blocks.valid, self.block is not None), (dut.streaming, self.streaming),
                             (dut.open, self.encoder.open), (dut.now, self.now % 2**32)):
            ctx.set(field, value)
        if self.block:
            p = dut.blocks.p
            for field, value in zip((p.length, p.items, p.time), self.block, strict=True):
                ctx.set(field, value)

    def ask(self, ctx, grant: float, take: float) -> None:
        """The blocker looks at a request for some clocks before it grants it. Only complete blocks are requested, while
        the stream drains, and soon."""
        source = self.dut.source
        request = ctx.get(source.request)
        assert request or not self.requested or self.granted == self.clock - 1, "a request has been withdrawn"
        self.asked = self.asked + 1 if request and not self.owed_beats else 0
        self.grants = self.asked > 2 and self.rng.random() < grant
        self.takes = bool(self.owed_beats) and self.rng.random() < take
        ctx.set(source.grant, self.grants)
        ctx.set(source.beats.ready, self.takes)
        if request and not self.requested:
            assert self.stream_before, "a block is asked for while blocks have to wait"
            assert self.complete, "a block is asked for that is not complete"
        waits = self.complete and self.complete[0] < self.clock - 4 and self.streaming and not request
        self.idle_for = self.idle_for + 1 if waits else 0
        assert self.idle_for < 6, "a complete block is not asked for"
        self.totals["withheld"] += bool(self.complete and not self.streaming)
        self.requested = request

    def count(self, ctx) -> None:
        """Items are counted in order, one per clock, and only after the grant of their block."""
        dut, clock, granted = self.dut, self.clock, self.granted
        self.delivered, counting, waiting = ctx.get(dut.delivered), ctx.get(dut.counting), ctx.get(dut.waiting)
        if self.delivered:
            assert counting
            assert self.uncounted, "an item is counted that has not left"
            assert self.delivered == 1 << self.uncounted.popleft(), "an item of another node is counted"
            self.logged -= 1
            self.totals["items"] += 1
        if self.uncounted:
            assert counting or granted == clock
            assert self.delivered or clock - granted < 5, "not an item a clock"
        else:
            assert not counting or self.delivered or granted > clock - 4, "counts, and there is nothing"
        assert waiting or not ((self.complete and self.complete[0] < clock - 2) or self.uncounted), "something waits"
        assert not waiting or self.complete or self.uncounted or counting or granted > clock - 3

    def leave(self, ctx) -> None:
        """A block leaves as the packer has made it, after the head that says whose items are longer."""
        source = self.dut.source
        if self.grants:
            length, time, beats, members = self.encoder.blocks[self.took]
            self.took += 1
            assert self.complete, "a block leaves that is not complete"
            self.complete.popleft()
            length += COMPACT_HEAD.bytes * bool(self.head)
            assert (ctx.get(source.length), ctx.get(source.time)) == (length, time)
            self.owed_beats.extend([self.head, *beats] if self.head else beats)
            self.at_head = bool(self.head)
            self.uncounted.extend(members)
            self.granted = self.clock
            self.totals["blocks"] += 1
        elif self.takes and ctx.get(source.beats.valid):
            assert ctx.get(source.beats.p) == self.owed_beats.popleft(), "another beat"
            self.stored -= not self.at_head
            self.at_head = False
        elif self.takes:
            assert self.clock - self.granted < 6, "a beat of a complete block is not there"

    def enter(self, ctx) -> int:
        """There is room as long as that is said, and for some codes more; it is not denied without a reason. Returns
        whether there is."""
        dut = self.dut
        if self.data is not None:
            assert ctx.get(dut.beats.ready), "a beat is lost"
            self.stored += 1
        if self.block is not None:
            assert ctx.get(dut.blocks.ready), "a block is lost"
            self.complete.append(self.clock)
        self.logged += self.node is not None
        assert self.logged <= self.log, "an item is forgotten"
        room = ctx.get(dut.room)
        marks = [(beats >= self.depth - SPARE, blocks >= BLOCKS, items >= self.log - SPARE)
                 for beats, blocks, items in self.levels]
        if not room and self.clock > 2:
            assert any(map(any, marks)), f"no room, and much of it: {list(self.levels)}"
            for k, name in enumerate(("full beats", "full blocks", "full log")):
                self.totals[name] += all(mark[k] for mark in marks)
        # What leaves is counted for a clock more.
        self.levels.append((self.stored + self.takes, len(self.complete) + self.grants,
                            self.logged + bool(self.delivered)))
        self.room_for = self.room_for + 1 if room else 0
        self.low_since = 0 if room or self.grants or self.takes else self.low_since + 1
        return room

    def follow(self) -> None:
        """How long the block has been open, and how many items it has."""
        is_open = self.encoder.open
        if is_open and not self.open_for:
            self.totals["reopened"] += self.clock - self.opened < 3
            self.since, self.items = self.now, 0
        self.noticed = self.now if self.open_for <= NOTICED else self.noticed
        self.items += self.node is not None if is_open and self.open_for >= TOLD else 0
        self.open_for = self.open_for + 1 if is_open else 0
        self.opened = self.clock if is_open else self.opened

    def flush(self, ctx) -> int:
        """A block is closed when it has been open long enough, or half of the log is its items. Returns whether."""
        flush, is_open, limit = ctx.get(self.dut.flush), self.encoder.open, self.limit
        if not is_open:
            self.reached = self.crowded_for = 0
            assert not flush or self.clock - self.opened < 3
        else:
            waited = self.now - self.since
            if flush:
                assert waited >= limit or self.items >= self.log // 2 - 1, (
                    f"flushed after {waited} of {limit} windows, {self.items} items")
                self.totals["flushed" if waited >= limit else "crowded"] += not self.flush_before
            assert flush or not self.flush_before or self.open_for == 1, "to be closed, and then no longer"
            self.reached = self.reached + 1 if self.now - self.noticed >= limit else 0
            self.crowded_for = self.crowded_for + 1 if self.items >= self.log // 2 + 8 else 0
            assert flush or max(self.reached, self.crowded_for) <= SETTLED or self.open_for < SETTLED
        self.flush_before = flush and is_open
        return flush

    def skip(self, ctx) -> None:
        """Idle time is skipped, up to what the stage allows."""
        horizon, is_open = ctx.get(self.dut.horizon), self.encoder.open
        if not is_open and self.clock - self.opened > 3:
            assert horizon == NEVER
        elif is_open and self.open_for > 8 and self.clock - self.jumped > 8:
            left = max(0, self.limit - (self.now - self.since))
            assert left <= horizon <= left + 6, f"horizon {horizon}, {left} windows left"
            if horizon > 9 and self.rng.random() < 0.02:
                self.now, self.jumped = self.now + self.rng.randint(1, horizon - 8), self.clock
                self.totals["jumps"] += 1

    def choose(self, room: int, flush: int, codes: float, close: float, grant: float) -> str | None:
        """What the encoder does next."""
        action, is_open = None, self.encoder.open
        if room or (self.more and codes == 1.0 and not grant):
            self.more -= not room
            if is_open and ((flush and self.rng.random() < 0.2) or len(self.encoder.beats) >= COMPACT_BEATS - 2):
                action = "close"
            elif self.rng.random() < codes:
                action = "close" if is_open and self.rng.random() < close else "code"
        if self.room_for > 40:
            self.more = MORE
        return action

    async def step(self, ctx, codes, beat, item, close, grant, take, speed, switches):
        rng = self.rng
        if switches and rng.random() < 0.01:
            self.streaming ^= 1
        self.feed(ctx)
        self.ask(ctx, grant, take)
        self.count(ctx)
        self.leave(ctx)
        room = self.enter(ctx)
        self.follow()
        flush = self.flush(ctx)
        self.skip(ctx)
        action = self.choose(room, flush, codes, close, grant)
        self.encoder.clock(action, rng.random() < item, rng.random() < beat)
        self.stream_before = self.streaming
        self.now += rng.random() < speed
        self.clock += 1
        await ctx.tick()


def play(seed, nodes, order, log, *, limit=60, clocks=400):
    """Goes through the phases, then lets everything leave; returns how often what has been seen."""
    rng = random.Random(seed)
    dut = CompactSource(Geometry(nodes=nodes, compact_depth=2 * COMPACT_BEATS))
    encoder = Encoder(rng, nodes)
    # Some nodes' items are longer: then each block begins with a beat that says whose.
    words, events = (random.Random(seed * n).getrandbits(nodes) | 1 if seed % 2 else 0 for n in (2, 3))
    bench = Bench(dut, rng, encoder, words | events << 32, log, limit)

    async def phases(ctx):
        for field, value in ((dut.limit, limit), (dut.words, words), (dut.events, events)):
            ctx.set(field, value)
        for name in order:
            for _ in range(clocks):
                await bench.step(ctx, *PHASES[name])
            if "stalled" in name:
                # Until nothing goes any more; and on from there.
                while bench.low_since < 30:
                    await bench.step(ctx, *PHASES[name])
                bench.totals["held"] += 1
        # Everything leaves.
        bench.streaming = 1
        last = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, False)
        while encoder.open or bench.took < len(encoder.blocks) or bench.owed_beats or bench.uncounted:
            await bench.step(ctx, *last)
        for _ in range(10):
            await bench.step(ctx, *last)
        assert bench.room_for, "there is room again"
        assert bench.took == len(encoder.blocks)
        assert not bench.stored
        assert not bench.logged
        assert not ctx.get(dut.waiting)
        assert not ctx.get(dut.counting)
        assert ctx.get(dut.horizon) == NEVER

    run(dut, phases, clocks=60_000)
    return bench.totals


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
