"""Link losses: counts against what came, each difference once, between the frames in which it can have happened."""

import random

import pytest
from hypermon.hdl.regeneration.link_losses import LinkLosses

from ..harness.stage import run

SUPERFRAME = 256


class Link:
    """Frames of a superframe with the counts of a transmitter, of which some are missed."""

    def __init__(self, dut, rng):
        self.dut, self.rng = dut, rng
        self.refused, self.sent, self.came = [0] * 8, [0] * 8, [0] * 8
        self.number, self.time, self.losses, self.judged = 0, 1000, [], []
        self.telling, self.flag = 0, False
        self.lossy = self.fail = 0.0
        self.history = []       # time, node, line: of each loss

    async def frame(self, ctx, force=None):
        """One frame: what happened before it, whether it comes, and its side channel."""
        dut, rng = self.dut, self.rng
        which, step = divmod(self.number % SUPERFRAME, 16)
        if step == 0:
            self.telling = (self.sent if which >= 8 else self.refused)[which % 8]
        side = self.flag | (self.number % SUPERFRAME == 0) << 1 | (self.telling >> 2 * step & 3) << 2
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
        for _ in range(rng.choice([0, 1, 5])):
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
        for _ in range(4):
            await self.clock(ctx)
        self.number += 1
        self.time += 128

    async def clock(self, ctx):
        if ctx.get(self.dut.judged):
            self.judged.append((ctx.get(self.dut.which), ctx.get(self.dut.fell)))
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
    dut = LinkLosses()
    link = Link(dut, rng)

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.locked, 1)
        for _ in range(2 * SUPERFRAME):
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

    run(dut, bench, clocks=60_000)
    assert link.losses
    link.verify()
    assert not any(fell for _, fell in link.judged)


def test_a_board_that_begins_anew():
    """Counts that fall are no loss, and are said; a board's time that begins anew forgets places."""
    dut = LinkLosses()
    link = Link(dut, random.Random(4))

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.locked, 1)
        link.lossy = 0.5
        for _ in range(3 * SUPERFRAME):
            await link.frame(ctx)
        assert link.losses
        link.lossy = 0.0
        for _ in range(SUPERFRAME + 32):
            await link.frame(ctx)
        link.losses.clear()
        link.refused = [0] * 8
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        assert not link.losses
        assert {which for which, fell in link.judged if fell} == set(range(8))
        # A reset of the board: time begins at 0, and no place is before it.
        ctx.set(dut.clear, 1)
        await link.clock(ctx)
        ctx.set(dut.clear, 0)
        link.time = 0
        link.lossy = 0.5
        for _ in range(SUPERFRAME):
            await link.frame(ctx)
        assert link.losses
        assert all(first <= last <= link.time for _, _, _, first, last in link.losses)

    run(dut, bench, clocks=60_000)
