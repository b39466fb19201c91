"""Link accounts: each loss in the totals and in one record, whoever stalls; and when the counts have settled."""

import random

import pytest
from hypermon.hdl.accounts.link_accounts import LinkAccounts
from hypermon.hdl.layout import LOSS_RECORD, Geometry, Sink, Window

from ..harness.resets import same_as_fresh
from ..harness.stage import run

#: Clocks: of a frame, by which an item is replayed, after a disable until counts are whole, and until
#: a link is given up; all from docs/regeneration.md.
FRAME, REPLAY = 128, 4096
SETTLES, PATIENCE = 2 * REPLAY, 1 << 19
#: ... for which losses that were told last are still taken.
TAIL = 63
GATE, LINE = 16, 32


def board(links, nodes=None):
    return LinkAccounts(Geometry(nodes or 8 * links, links=links))


class Bench:
    """Losses of all links at random, and a blocker that grants when it likes."""

    def __init__(self, dut, links, rng, window=Window.CLOCK):
        self.dut, self.links, self.rng, self.window = dut, links, rng, window
        self.told, self.records = [], []
        self.grants, self.takes, self.done = 0.02, 0.5, False

    def account(self, k):
        return getattr(self.dut, f"account{k}")

    async def tell(self, ctx, k, node, line, lost, first, last):
        """A loss; returns when it has been taken."""
        port = self.account(k).losses
        ctx.set(port.p.node, node)
        ctx.set(port.p.line, line)
        ctx.set(port.p.lost, lost)
        ctx.set(port.p.first, first & (1 << 48) - 1)
        ctx.set(port.p.last, last & (1 << 48) - 1)
        ctx.set(port.valid, 1)
        waited = 0
        while not ctx.get(port.ready):
            await ctx.tick()
            waited += 1
            assert waited < 40, "a loss is not taken"
        self.told.append((8 * k + node, LINE if line else GATE, lost, first, last))
        await ctx.tick()
        ctx.set(port.valid, 0)

    async def blocker(self, ctx):
        """Takes blocks, and takes them apart."""
        source = self.dut.source
        while not self.done:
            await ctx.tick()
            if not ctx.get(source.request) or self.rng.random() > self.grants:
                continue
            ctx.set(source.grant, 1)
            length = ctx.get(source.length)
            assert length
            assert length % LOSS_RECORD.bytes == 0
            await ctx.tick()
            ctx.set(source.grant, 0)
            data = b""
            while len(data) < length:
                if ctx.get(source.beats.valid) and self.rng.random() < self.takes:
                    ctx.set(source.beats.ready, 1)
                    data += ctx.get(source.beats.p).to_bytes(16, "little")
                await ctx.tick()
                ctx.set(source.beats.ready, 0)
            self.records += [LOSS_RECORD.unpack(data, at) for at in range(0, length, LOSS_RECORD.bytes)]

    def late(self):
        clocks = Geometry().window_clocks(self.window)
        return -(-(REPLAY + 2 * FRAME) // clocks) + 1

    def verify(self):
        """The records of each node and cause are its losses in order, some of them together."""
        for key in {(node, cause) for node, cause, *_ in self.told} | {(r["node"], r["causes"]) for r in self.records}:
            mine = [loss[2:] for loss in self.told if loss[:2] == key]
            for record in (r for r in self.records if (r["node"], r["causes"]) == key):
                assert record["zero_1"] == record["zero_2"] == 0
                part = []
                while sum(lost for lost, _, _ in part) < record["lost"]:
                    part.append(mine.pop(0))
                assert sum(lost for lost, _, _ in part) == record["lost"]
                assert record["first"] == part[0][1]
                assert record["last"] == part[-1][2] + self.late()
            assert not mine, f"losses without a record: {key}"

    def totals(self, ctx):
        for node in range(8 * self.links):
            ctx.set(self.dut.row, node)
            for cause, shown in ((GATE, self.dut.refused), (LINE, self.dut.lost)):
                expected = sum(lost for n, c, lost, *_ in self.told if (n, c) == (node, cause))
                assert ctx.get(shown) == expected % (1 << 48)


@pytest.mark.parametrize("links", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_every_loss_is_in_one_record(links, seed):
    rng = random.Random(f"{links} {seed}")
    dut = board(links)
    window = rng.choice(list(Window))
    bench = Bench(dut, links, rng, window)
    now = rng.choice([10**6, (1 << 48) + 50, rng.getrandbits(60)])

    async def losses(ctx):
        nonlocal now
        ctx.set(dut.window, window)
        ctx.set(dut.live, (1 << 8 * links) - 1)
        ctx.set(dut.enable, 1)
        ctx.set(dut.now, now)
        for k in range(links):
            ctx.set(bench.account(k).locked, 1)
            ctx.set(bench.account(k).based, 1)
        await ctx.tick()
        for _ in range(200):
            bench.grants, bench.takes = rng.choice([(0.002, 0.5), (0.2, 0.9), (0.2, 0.005)])
            now += rng.randrange(200)
            ctx.set(dut.now, now)
            k = rng.randrange(links)
            first, last = sorted(max(now - rng.randrange(1 << rng.randrange(1, 20)), 0) for _ in range(2))
            node = rng.choice([0, 7, rng.randrange(8)])
            await bench.tell(ctx, k, node, rng.getrandbits(1), rng.randrange(1, 1 << rng.randrange(1, 32)), first, last)
            for _ in range(rng.choice([0, 3, 40])):
                await ctx.tick()
        for _ in range(4):
            await ctx.tick()
        bench.totals(ctx)
        bench.grants = bench.takes = 0.5
        for _ in range(1500):
            await ctx.tick()
        assert not ctx.get(dut.open)
        bench.totals(ctx)
        bench.done = True

    run(dut, losses, bench.blocker, clocks=60_000)
    bench.verify()
    assert len(bench.records) < len(bench.told), "no record of several losses"


def test_several_links_at_once():
    """Losses of all links in one clock are taken one after the other, each once."""
    dut = board(4)
    bench = Bench(dut, 4, random.Random(1))

    async def one(ctx, k):
        for turn in range(30):
            await bench.tell(ctx, k, turn % 8, turn % 2, 1 + turn, 1000 + turn, 2000 + turn)
            for _ in range(60):
                await ctx.tick()

    async def zero(ctx):
        ctx.set(dut.now, 10**6)
        ctx.set(dut.window, Window.CLOCK)
        ctx.set(dut.live, -1)
        ctx.set(dut.enable, 1)
        await ctx.tick()
        await one(ctx, 0)
        bench.grants = 0.5
        for _ in range(1500):
            await ctx.tick()
        bench.totals(ctx)
        bench.done = True

    def of(k):
        async def losses(ctx):
            await ctx.tick()
            await one(ctx, k)
        return losses

    run(dut, zero, *(of(k) for k in (1, 2, 3)), bench.blocker, clocks=40_000)
    bench.verify()


def test_only_of_captured_nodes_and_only_in_a_run():
    dut = board(2)
    bench = Bench(dut, 2, random.Random(2))

    async def losses(ctx):
        ctx.set(dut.now, 10**6)
        ctx.set(dut.live, 0xfffe)
        for enabled in (0, 1):
            ctx.set(dut.enable, enabled)
            await ctx.tick()
            await bench.tell(ctx, 0, 0, 1, 5, 10, 20)
            await bench.tell(ctx, 1, 3, 0, 7, 10, 20)
            if not enabled:
                assert not ctx.get(dut.open)
                bench.told.clear()
        bench.told = [loss for loss in bench.told if loss[0] != 0]
        for _ in range(2000):
            await ctx.tick()
        bench.totals(ctx)
        bench.done = True

    run(dut, losses, bench.blocker)
    bench.window = Window.NS800
    assert [record["node"] for record in bench.records] == [11]
    bench.verify()


def settled_after(told_at, seen=True):
    """Clocks from the disable until nothing is open, if counts are told at these clocks, all at once and in order; and
    whether the link is unsure then."""
    dut, found = board(1), {}

    async def link(ctx):
        account = dut.account0
        ctx.set(dut.live, 255)
        ctx.set(account.locked, seen)
        ctx.set(account.based, 1)
        ctx.set(dut.enable, 1)
        for _ in range(20):
            await ctx.tick()
        ctx.set(account.locked, 0)
        assert not ctx.get(dut.open)
        ctx.set(dut.enable, 0)
        at = 0
        while at < 30 or ctx.get(dut.open):
            which = told_at.get(at)
            ctx.set(account.judged, which is not None)
            ctx.set(account.which, which or 0)
            await ctx.tick()
            at += 1
        found["at"], found["unsure"], found["absent"] = at, ctx.get(dut.unsure), ctx.get(dut.absent)

    run(dut, link, clocks=PATIENCE + 1000)
    return found


def test_counts_settle():
    every = {SETTLES + 100 * c: c for c in range(16)}
    assert settled_after(every) == {"at": SETTLES + 1501 + TAIL, "unsure": 0, "absent": 0}
    # What is told before does not count: its frames began too early.
    early = {SETTLES - 10: 3} | {SETTLES + 10 + c: c for c in range(16) if c != 3} | {SETTLES + 900: 3}
    assert settled_after(early)["at"] == SETTLES + 901 + TAIL


def test_the_loss_of_the_last_count_is_taken():
    """It is told one clock after its count was compared, by two links at once."""
    dut = board(2)
    bench = Bench(dut, 2, random.Random(3))

    async def losses(ctx):
        ctx.set(dut.now, 10**6)
        ctx.set(dut.live, 0xffff)
        ctx.set(dut.window, Window.CLOCK)
        for k in range(2):
            ctx.set(bench.account(k).locked, 1)
            ctx.set(bench.account(k).based, 1)
        ctx.set(dut.enable, 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.enable, 0)
        await ctx.tick().repeat(SETTLES + 10)
        for which in range(16):
            for k in range(2):
                ctx.set(bench.account(k).judged, 1)
                ctx.set(bench.account(k).which, which)
            await ctx.tick()
        for k in range(2):
            ctx.set(bench.account(k).judged, 0)
        await bench.tell(ctx, 0, 7, 1, 5, 10, 20)
        await bench.tell(ctx, 1, 7, 1, 6, 10, 20)
        bench.grants = 0.5
        await ctx.tick().repeat(400)
        bench.totals(ctx)
        assert not ctx.get(dut.open)
        await bench.tell(ctx, 1, 7, 1, 6, 10, 20)       # too late: not of this run
        bench.told.pop()
        await ctx.tick().repeat(40)
        bench.done = True

    run(dut, losses, bench.blocker)
    bench.verify()


def test_a_link_that_was_never_there_is_not_waited_for():
    assert settled_after({}, seen=False) == {"at": 30, "unsure": 0, "absent": 1}


@pytest.mark.slow
def test_a_silent_link_is_given_up():
    found = settled_after({SETTLES + c: c for c in range(15)})
    assert PATIENCE + TAIL - 10 < found["at"] <= PATIENCE + TAIL + 10
    assert found["unsure"] == 1


@pytest.mark.parametrize("what", ["began anew", "not told yet", "neither"])
def test_doubts(what):
    dut, live = board(2), {}

    async def link(ctx):
        ctx.set(dut.live, 0xff00)
        for k in range(2):
            ctx.set(getattr(dut, f"account{k}").locked, 1)
            ctx.set(getattr(dut, f"account{k}").based, what != "not told yet")
        await ctx.tick()
        assert not ctx.get(dut.unsure)
        ctx.set(dut.enable, 1)
        for _ in range(3):
            await ctx.tick()
        for k in range(2):
            ctx.set(getattr(dut, f"account{k}").anew, what == "began anew")
            ctx.set(getattr(dut, f"account{k}").based, 1)
        await ctx.tick()
        for k in range(2):
            ctx.set(getattr(dut, f"account{k}").anew, 0)
        await ctx.tick()
        live["unsure"], live["absent"], live["locked"] = (ctx.get(x) for x in (dut.unsure, dut.absent, dut.locked))
        live["restarted"] = ctx.get(dut.restarted)

    run(dut, link)
    # Only of links with nodes that are captured.
    assert live == {"unsure": 0 if what == "neither" else 2, "absent": 0, "locked": 3,
                    "restarted": 2 if what == "began anew" else 0}


def test_reset():
    same_as_fresh(lambda: LinkAccounts(Geometry(16, sinks=(Sink.EXTENDED,), links=2)), episodes=6, after=60)
