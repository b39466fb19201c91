"""Link life: the same transmitter, one that began later, and one that began earlier, by nothing but their ages."""

import random

import pytest
from hypermon.hdl.regeneration.link_life import LinkLife

from ..harness.resets import same_as_fresh
from ..harness.stage import run

#: Clocks of a frame, fewer than on the line; frames of a superframe; frames in which a transmitter is silent.
FRAME, SUPERFRAME, SILENT = 4, 288, 8


class Life:
    """Tells ages of transmitters that began at given frames, and keeps the answers."""

    def __init__(self, dut):
        self.dut, self.clock = dut, 0

    async def until(self, ctx, clock):
        while self.clock < clock:
            await ctx.tick()
            self.clock += 1

    async def age(self, ctx, birth, number, off=0):
        """Age ``number`` of the transmitter that began at frame ``birth``; it is ``off`` clocks too late."""
        dut = self.dut
        await self.until(ctx, FRAME * (birth + SILENT + 1 + SUPERFRAME * number) + off)
        ctx.set(dut.marked, 1)
        await self.until(ctx, self.clock + 1)
        ctx.set(dut.marked, 0)
        await self.until(ctx, self.clock + FRAME * 15)
        ctx.set(dut.told, 1)
        ctx.set(dut.age, number)
        answers = []
        for clock in range(6):
            await self.until(ctx, self.clock + 1)
            ctx.set(dut.told, 0)
            answers += [(clock, name) for name in ("same", "new", "old") if ctx.get(getattr(dut, name))]
        ((clock, answer),) = answers
        assert clock == 2
        return answer


@pytest.mark.parametrize("seed", range(3))
def test_lives(seed):
    rng = random.Random(seed)
    dut = LinkLife(FRAME)

    async def bench(ctx):
        life = Life(dut)
        ctx.set(dut.enable, 1)
        ctx.set(dut.sure, 1)
        birth = rng.choice([0, 5, 700])
        assert await life.age(ctx, birth, 0) == "new"
        for number in (1, 2, 4):
            # The cable has another length, and the receiver's frames begin elsewhere.
            assert await life.age(ctx, birth, number, rng.randrange(FRAME)) == "same"
        # A restart at once, at the same place of a frame: after the silence, and sooner than any superframe ends.
        later = birth + SUPERFRAME * 4 + SILENT + rng.randrange(20, 300)
        assert await life.age(ctx, later, 0) == "new"
        assert await life.age(ctx, later, 1) == "same"
        # The former one again, and one that is younger by no more than the silence.
        assert await life.age(ctx, birth, 7) == "old"
        assert await life.age(ctx, birth + SILENT, 8) == "new"
        assert await life.age(ctx, birth + SILENT, 9) == "same"

    run(dut, bench, clocks=60_000)


def test_before_the_receiver_and_before_capture():
    dut = LinkLife(FRAME)

    async def bench(ctx):
        life = Life(dut)
        # It has told two ages before the receiver began.
        assert await life.age(ctx, 20 - SUPERFRAME * 2, 3) == "old"
        assert await life.age(ctx, 20 - SUPERFRAME * 2, 4) == "same"
        # Capture begins while no frames come: another life may have begun before it, and the same one is the same.
        ctx.set(dut.enable, 1)
        await life.until(ctx, life.clock + 3)
        assert await life.age(ctx, 20 - SUPERFRAME * 2, 5) == "same"
        for _ in range(2):
            ctx.set(dut.enable, 0)
            await life.until(ctx, life.clock + 3)
            ctx.set(dut.enable, 1)
            await life.until(ctx, life.clock + 3)
        birth = life.clock // FRAME - 6
        assert await life.age(ctx, birth, 0) == "old"
        # ... but not if they come.
        ctx.set(dut.sure, 1)
        ctx.set(dut.enable, 0)
        await life.until(ctx, life.clock + 3)
        ctx.set(dut.enable, 1)
        assert await life.age(ctx, life.clock // FRAME + 4, 0) == "new"

    run(dut, bench, clocks=60_000)


def test_the_first_one_after_capture_began():
    """No life is known when capture begins: one that began before that is old, and one that began after it is new."""
    for since, answer in ((-3, "old"), (3, "new")):
        dut = LinkLife(FRAME)

        async def bench(ctx, dut=dut, since=since, answer=answer):
            life = Life(dut)
            await life.until(ctx, FRAME * 100)
            ctx.set(dut.enable, 1)
            assert await life.age(ctx, 100 + since, 0) == answer

        run(dut, bench, clocks=60_000)


def test_reset():
    same_as_fresh(lambda: LinkLife(16))
