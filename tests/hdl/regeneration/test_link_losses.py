"""Link losses: counts against what came, each difference once, between the frames in which it can have happened."""

import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from hypermon.hdl.regeneration.link_losses import LinkLosses

from ..harness.stage import run

#: Frames; clocks of a frame, fewer than on the line.
SUPERFRAME, FRAME = 288, 16


class Link:
    """Frames of a superframe with the counts of a transmitter, of which some are missed."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.refused, self.sent, self.came = [0] * 8, [0] * 8, [0] * 8
        self.number, self.time, self.losses, self.judged = 256, 1000, [], []
        self.anew = 0
        self.telling, self.flag = 0, False
        self.lossy = self.fail = 0.0
        self.history = []       # time, node, line: of each loss

    async def frame(self, ctx, force=None):
        """One frame: what happened before it, whether it comes, and its side channel."""
        dut, rng = self.dut, self.rng
        which, step = divmod(self.number % SUPERFRAME, 16)
        if step == 0:
            self.telling = (
                [*self.refused, *self.sent, (self.number - 256) // SUPERFRAME, 0][which])
        side = self.flag | (self.number % SUPERFRAME == 256) << 1 | (self.telling >> 2 * step & 3) << 2
        self.flag = False
        good = rng.random() >= self.fail if force is None else force
        ctx.set(dut.good, good)
        ctx.set(dut.missed, not good)
        ctx.set(dut.side, side if good else rng.getrandbits(4))
        ctx.set(dut.time, self.time)
        await self.clock(ctx)
        ctx.set(dut.good, 0)
        ctx.set(dut.missed, 0)
        # Items of this frame come with it or are lost with it; the gate refuses some.
        taken = rng.choice([0, 1, 5])
        left = FRAME - 1 - taken * good
        for _ in range(taken):
            node = rng.randrange(8)
            self.sent[node] += 1
            if good:
                ctx.set(dut.delivered, 1)
                ctx.set(dut.node, node)
                self.came[node] += 1
                await self.clock(ctx)
                ctx.set(dut.delivered, 0)
            else:
                self.history.append((self.time, node, 1))
        if rng.random() < self.lossy:
            node = rng.randrange(8)
            self.refused[node] += 1
            self.flag = True
            self.history.append((self.time + 128, node, 0))
        for _ in range(left):
            await self.clock(ctx)
        self.number += 1
        self.time += 128

    async def clock(self, ctx):
        if ctx.get(self.dut.judged):
            self.judged.append(ctx.get(self.dut.which))
        self.anew += ctx.get(self.dut.anew)
        if ctx.get(self.dut.o.valid):
            o = self.dut.o.p
            self.losses.append(tuple(ctx.get(getattr(o, name)) for name in ("node", "line", "lost", "first", "last")))
        await ctx.tick()

    def verify(self):
        """Each item once, and each within the places of as many records of its node and cause as there are."""
        for line, node in ((line, node) for line in (0, 1) for node in range(8)):
            ats = [at for at, n, kind in self.history if (n, kind) == (node, line)]
            mine = [loss for loss in self.losses if loss[:2] == (node, line)]
            assert sum(loss[2] for loss in mine) == len(ats), (node, line)
            for _, _, lost, first, last in mine:
                part, ats = ats[:lost], ats[lost:]
                # A refusal may have been told by a frame that was lost.
                assert first <= part[0] <= part[-1] <= last, (node, line, first, last, part)


@pytest.mark.parametrize(("seed", "fail", "lossy"), [(1, 0.0, 0.2), (2, 0.03, 0.0), (3, 0.05, 0.1)])
def test_every_loss_once_and_in_its_place(seed, fail, lossy):
    rng = random.Random(seed)
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, rng)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await restart(link, ctx)
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        assert ctx.get(dut.based)
        assert not link.losses
        link.fail, link.lossy = fail, lossy
        for _ in range(3 * SUPERFRAME):
            await link.frame(ctx)
        link.fail = link.lossy = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        for n in range(8):
            assert ctx.get(dut.refused[n]) == link.refused[n]
            assert ctx.get(dut.lost[n]) == link.sent[n] - link.came[n]

    run(dut, bench, clocks=200_000)
    assert link.losses
    link.verify()
    assert link.anew == 0


def of(link, line, since=0):
    """Items in losses of each node from number ``since`` on."""
    return [sum(lost for n, kind, lost, *_ in link.losses[since:] if (n, kind) == (node, line)) for node in range(8)]


async def restart(link, ctx, gap=12, age=0):
    """The line is silent for some frames; a transmitter follows that has told ``age`` ages and counted nothing."""
    ctx.set(link.dut.locked, 0)
    for _ in range(gap):
        await link.frame(ctx, False)
    link.number = 256 + SUPERFRAME * age
    link.refused, link.sent, link.came = [0] * 8, [0] * 8, [0] * 8
    link.history.clear()
    ctx.set(link.dut.locked, 1)


@pytest.mark.parametrize(("before", "after"), [(0.2, 0.9), (0.9, 0.2), (0.5, 0.5), (0.0, 0.5)])
def test_restarted(before, after):
    """Counts of two lives are never subtracted: all that the new one refused, and all that did not come, is in losses;
    and the restart is reported once."""
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, random.Random(f"{before} {after}"))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.enable, 1)
        await restart(link, ctx)
        link.lossy = before
        for _ in range(2 * SUPERFRAME):
            await link.frame(ctx)
        link.lossy = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        assert of(link, 0) == link.refused
        assert link.anew == 0
        begin, out = len(link.losses), link.time
        await restart(link, ctx)
        link.lossy, link.fail = after, 0.01
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        link.lossy = link.fail = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        assert link.anew == 1
        assert of(link, 0, begin) == link.refused
        assert of(link, 1, begin) == [sent - came for sent, came in zip(link.sent, link.came, strict=True)]
        for n in range(8):
            assert ctx.get(dut.refused[n]) == link.refused[n]
            assert ctx.get(dut.lost[n]) == link.sent[n] - link.came[n]
        # Nothing of the new life is placed before the last report of the former one.
        assert all(first >= out - 128 * (SUPERFRAME + 16) for *_, first, _ in link.losses[begin:])
        del link.losses[:begin]

    run(dut, bench, clocks=200_000)
    link.verify()


def test_short_locks_between_two_lives():
    """Frames came in a lock that told no life. They may be of either: what did not come before the first counts of the
    new life is in no loss, and nothing is in a loss that did come."""
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, random.Random(7))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await restart(link, ctx)
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        await restart(link, ctx)
        for _ in range(10):
            await link.frame(ctx)
        await restart(link, ctx)
        link.lossy = 0.3
        for _ in range(2 * SUPERFRAME):
            await link.frame(ctx)
        assert link.anew == 1
        assert not any(of(link, 1))
        assert not any(ctx.get(dut.lost[n]) for n in range(8))
        link.lossy = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        assert of(link, 0) == link.refused

    run(dut, bench, clocks=200_000)


def test_the_same_board_after_a_pause():
    """It counted on: nothing is reported but its losses, also if its frames come a little earlier or later."""
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, random.Random(8))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await restart(link, ctx)
        for pause in (20, 400, 3 * SUPERFRAME):
            ctx.set(dut.locked, 1)
            for _ in range(SUPERFRAME + 32):
                await link.frame(ctx)
            ctx.set(dut.locked, 0)
            link.lossy = 0.1
            for _ in range(pause):
                await link.frame(ctx, False)
            link.lossy = 0.0
            for _ in range(3):
                await link.clock(ctx)
        ctx.set(dut.locked, 1)
        for _ in range(2 * SUPERFRAME):
            await link.frame(ctx)
        assert link.anew == 0

    run(dut, bench, clocks=200_000)
    link.verify()


@pytest.mark.parametrize(("life", "records", "known"), [
    ("before the receiver", False, False), ("before capture", False, False), ("in capture", True, False),
    ("another one, older", False, True)])
def test_the_first_counts(life, records, known):
    """Refusals before the first counts are in losses if the transmitter began after the receiver and capture did."""
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, random.Random(9))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        if known:
            await restart(link, ctx)
            for _ in range(SUPERFRAME):
                await link.frame(ctx)
        ctx.set(dut.enable, life != "before capture")
        await restart(link, ctx, age=2 if life in ("before the receiver", "another one, older") else 0)
        ctx.set(dut.locked, 0)
        link.lossy = 0.5
        for _ in range(20):
            await link.frame(ctx, False)
        ctx.set(dut.enable, 1)
        ctx.set(dut.locked, 1)
        for _ in range(2 * SUPERFRAME):
            await link.frame(ctx)
        link.lossy = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        assert min(link.refused) > 10
        lost = of(link, 0)
        assert (lost == link.refused) if records else all(a < b for a, b in zip(lost, link.refused, strict=True))
        assert link.anew == known

    run(dut, bench, clocks=200_000)
    if records:
        link.verify()


def test_a_time_that_begins_anew():
    """A reset of the board: time begins at 0, and no place is before it."""
    dut = LinkLosses(frame_clocks=FRAME)
    link = Link(dut, random.Random(4))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        await restart(link, ctx)
        link.lossy = 0.5
        for _ in range(3 * SUPERFRAME):
            await link.frame(ctx)
        assert link.losses
        link.losses.clear()
        ctx.set(dut.clear, 1)
        await link.clock(ctx)
        ctx.set(dut.clear, 0)
        link.time = 0
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        assert link.losses
        assert all(first <= last <= link.time for _, _, _, first, last in link.losses)

    run(dut, bench, clocks=200_000)


@pytest.mark.parametrize("silent", [False, True])
def test_a_reset_of_the_board_forgets_former_lives(silent):
    """Whether the line was silent before it or not: losses are those of the transmitter that begins after it. What came
    before the reset is in none of them."""
    m, reset = Module(), Signal()
    m.d.sync += Signal().eq(1)
    m.submodules.dut = ResetInserter(reset)(dut := LinkLosses(frame_clocks=FRAME))
    link = Link(dut, random.Random(5))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.enable, 1)
        await restart(link, ctx)
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        ctx.set(dut.locked, not silent)
        for _ in range(12):
            await link.frame(ctx, not silent)
        ctx.set(reset, 1)
        await ctx.tick().repeat(4)
        ctx.set(reset, 0)
        await restart(link, ctx)
        link.fail = 0.01
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        link.fail = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        for n in range(8):
            assert ctx.get(dut.lost[n]) == link.sent[n] - link.came[n]

    run(m, bench, clocks=200_000)
    link.verify()
