"""Store port: every event of a few stores is whole at the port, or counted; a full FIFO says so."""

import random

import pytest
from hypermon.hdl.store_port import StorePort

from .harness.rejects import rejects
from .harness.resets import same_as_fresh
from .harness.stage import run


def words(event):
    """The stores of an event, from the contract."""
    first = len(event) | sum(byte << 8 + 8 * k for k, byte in enumerate(event[:3]))
    rest = event[3:]
    return [first] + [int.from_bytes(rest[k:k + 4], "little") for k in range(0, len(rest), 4)]


def nibbles(event):
    return [len(event), *(nibble for byte in event for nibble in (byte & 15, byte >> 4))]


class Bench:
    def __init__(self, dut, seed):
        self.dut, self.rng = dut, random.Random(seed)
        self.sent, self.seen, self.refused, self.gaps, self.done, self.waits = [], [], 0, [], False, 0
        self.refusals = []      # how many had been sent when each was told
        self.takes = 1.0

    async def store(self, ctx, word, sel=15, we=1):
        bus = self.dut.bus
        for name, value in (("cyc", 1), ("stb", 1), ("we", we), ("dat_w", word), ("sel", sel)):
            ctx.set(getattr(bus, name), value)
        while not ctx.get(bus.ack) and not ctx.get(bus.err):
            self.waits += 1
            assert self.waits < 5000
            await ctx.tick()
        ack, read = ctx.get(bus.ack), ctx.get(bus.dat_r)
        await ctx.tick()
        ctx.set(bus.stb, 0)
        return ack, read

    async def port(self, ctx):
        """Samples data before each change of the strobe."""
        level, before, since, at = 0, 0, None, 0
        while not self.done:
            strobe, data = ctx.get(self.dut.strobe), ctx.get(self.dut.data)
            if strobe != level:
                self.seen.append(before)
                if since is not None:
                    self.gaps.append(at - since)
                since = at
            level, before, at = strobe, data, at + 1
            await ctx.tick()

    async def teller(self, ctx):
        while not self.done:
            ready = self.rng.random() < self.takes
            ctx.set(self.dut.refused.ready, ready)
            if ready and ctx.get(self.dut.refused.valid):
                self.refused += 1
                self.refusals.append(len(self.sent))
            await ctx.tick()

    def verify(self):
        """What came is the events sent without those refused, in order and each whole."""
        at, came = 0, []
        while at < len(self.seen):
            size = 1 + 2 * self.seen[at]
            came.append(tuple(self.seen[at:at + size]))
            at += size
        assert at == len(self.seen), "half an event"
        due = iter(tuple(nibbles(event)) for event in self.sent)
        assert all(event in due for event in came), "an event that was not sent, or out of order"
        assert len(came) + self.refused == len(self.sent)
        return len(came)


@pytest.mark.parametrize("hold", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_whole_events_or_counted(hold, seed):
    dut = StorePort(16, hold)
    bench = Bench(dut, f"{hold} {seed}")
    rng = bench.rng

    async def node(ctx):
        for turn in range(250):
            slow = turn // 50 % 2
            bench.takes = rng.choice([1.0, 0.05])
            size = rng.choice([1, 3, 4, 7, 8, 11, 12, 15, rng.randint(1, 15)])
            event = bytes(rng.getrandbits(8) for _ in range(size))
            bench.sent.append(event)
            for word in words(event):
                await bench.store(ctx, word)
                for _ in range(rng.choice([0, 0, 1, 9]) * hold):
                    await ctx.tick()
            if rng.random() < 0.1:
                await bench.store(ctx, rng.getrandbits(28) << 4)    # no event
            for _ in range(rng.randrange(160) * slow * hold):
                await ctx.tick()
        bench.takes = 1.0
        for _ in range(1500 * hold):
            await ctx.tick()
        assert (await bench.store(ctx, 0, we=0))[1] == 16
        bench.done = True

    run(dut, node, bench.port, bench.teller, clocks=200_000)
    came = bench.verify()
    assert bench.refused > 20
    assert came > 80
    assert min(bench.gaps) == 2 * hold


def test_a_slow_node_loses_nothing_and_never_waits():
    """One store each 40 clocks: as fast as the port writes three bytes."""
    dut = StorePort()
    bench = Bench(dut, 7)

    async def node(ctx):
        for k in range(300):
            event = bytes((k & 255, bench.rng.getrandbits(8), bench.rng.getrandbits(8)))
            bench.sent.append(event)
            await bench.store(ctx, words(event)[0])
            for _ in range(15):
                await ctx.tick()
        for _ in range(300):
            await ctx.tick()
        bench.done = True

    run(dut, node, bench.port, bench.teller)
    assert bench.verify() == 300
    assert bench.waits == 0


def test_full_and_open_again_at_the_boundary():
    """Four events of four words fill it; the next one is refused, also if it needs one word, until half is free."""
    dut = StorePort(16, 20)
    bench = Bench(dut, 8)
    long, short = bytes(range(15)), b"\x21"

    async def node(ctx):
        async def send(event):
            bench.sent.append(event)
            for word in words(event):
                await bench.store(ctx, word)

        for _ in range(4):
            await send(long)
        free = (await bench.store(ctx, 0, we=0))[1]
        assert free in (0, 1)       # the first word has left
        await send(short if free == 0 else long)
        await ctx.tick()
        await ctx.tick()
        assert bench.refused == 1
        while (await bench.store(ctx, 0, we=0))[1] < 7:
            await ctx.tick()
        await send(short)
        await ctx.tick()
        await ctx.tick()
        assert bench.refused == 2
        while (await bench.store(ctx, 0, we=0))[1] < 8:
            await ctx.tick()
        await ctx.tick()
        await send(short)
        for _ in range(40 * 140):
            await ctx.tick()
        assert bench.refused == 2
        bench.done = True

    run(dut, node, bench.port, bench.teller)
    assert bench.verify() == 5


def test_a_store_that_is_not_a_word_is_an_error():
    dut = StorePort()
    bench = Bench(dut, 9)

    async def node(ctx):
        for sel in range(15):
            assert (await bench.store(ctx, 0x21, sel))[0] == 0
        for _ in range(50):
            await ctx.tick()
        bench.done = True

    run(dut, node, bench.port, bench.teller)
    assert not bench.seen
    assert not bench.refused


def test_refusals_are_kept_until_they_are_taken():
    """A store waits while fifteen are untold; then it continues."""
    dut = StorePort(8, 50)
    bench = Bench(dut, 10)
    bench.takes = 0.0

    async def node(ctx):
        for _ in range(40):
            bench.sent.append(b"\x01")
            if len(bench.sent) < 24:
                assert bench.waits == 0
            await bench.store(ctx, words(b"\x01")[0])
        for _ in range(3000):
            await ctx.tick()
        bench.done = True

    async def later(ctx):
        for _ in range(200):
            await ctx.tick()
        bench.takes = 0.1

    run(dut, node, later, bench.port, bench.teller)
    assert bench.waits > 0
    bench.verify()


@pytest.mark.parametrize("options", [{"depth": 12}, {"depth": 4}, {"hold": 0}])
def test_refused_parameters(options):
    rejects(lambda: StorePort(**options), *options.values())


def test_reset():
    """In the middle of an event, and with refused ones that were not taken."""
    same_as_fresh(lambda: StorePort(8, 2), {
        "bus.sel": lambda rng: rng.choice((15, 15, 15, rng.getrandbits(4))), "bus.cyc": lambda rng: 1,
        "bus.we": lambda rng: rng.random() < 0.9})
