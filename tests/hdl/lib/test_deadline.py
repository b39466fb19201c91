"""Deadline: due after the limit and not before, and the horizon promises no more than is left."""

import random

import pytest
from hypermon.hdl.lib.deadline import Deadline

from ..harness.stage import run

NEVER = 2**32 - 1
#: Clocks from the beginning of the waiting until something is said of it, and until all says it.
SPEAKS, SETTLED = 3, 8


@pytest.mark.parametrize("limit", [0, 1, 7, 40, 2**31 - 1])
@pytest.mark.parametrize("seed", range(3))
def test_is_patient(limit, seed):
    """Waits of all lengths, time that runs, stands and skips, also past the end of its 32 bits."""
    rng = random.Random(10 * limit + seed)
    dut = Deadline()
    totals = {"due": 0, "early": 0, "skips": 0, "idle": 0}

    async def bench(ctx):
        now = 2**32 - rng.randint(1, 60) if seed else rng.getrandbits(32)
        ctx.set(dut.limit, limit)
        ctx.set(dut.idle, 1)
        for _ in range(6):
            await ctx.tick()
        for _ in range(60):
            speed = rng.choice([1, 1, 0.3, 0.05])
            length = rng.choice([1, 2, 4, 5, 6, 30, 200])
            began, due_before, reached, skipped = now, False, 0, 0
            for clock in range(length):
                ctx.set(dut.idle, 0)
                ctx.set(dut.now, now % 2**32)
                due, horizon, waited = ctx.get(dut.due), ctx.get(dut.horizon), now - began
                # What it said of the wait before is forgotten two clocks after its end.
                if clock > 2:
                    assert not due or waited >= limit, f"due after {waited} of {limit} windows"
                    assert due or not due_before, "due, and then no longer"
                    due_before = due
                    reached = reached + 1 if waited >= limit else 0
                    assert due or reached <= SETTLED
                    totals["due" if due else "early"] += 1
                if clock == 2:
                    assert horizon == NEVER
                if clock > SETTLED and clock - skipped > SETTLED:
                    left = max(0, limit - waited)
                    assert left <= horizon <= left + 4, f"horizon {horizon}, {left} windows left"
                    if horizon > 8 and rng.random() < 0.05:
                        now, skipped = now + rng.randint(1, horizon - 8), clock
                        totals["skips"] += 1
                now += rng.random() < speed
                await ctx.tick()
            for clock in range(rng.choice([1, 1, 2, 3, 10])):
                ctx.set(dut.idle, 1)
                ctx.set(dut.now, now % 2**32)
                if clock > 3:
                    assert not ctx.get(dut.due)
                    assert ctx.get(dut.horizon) == NEVER
                    totals["idle"] += 1
                now += rng.random() < speed
                await ctx.tick()

    run(dut, bench)
    assert totals["early"]
    assert totals["idle"]
    assert totals["due"] or limit > 1000
    assert totals["skips"] or limit < 20


def test_says_something_three_clocks_after_the_waiting_began():
    dut = Deadline()

    async def bench(ctx):
        ctx.set(dut.limit, 100)
        ctx.set(dut.now, 5)
        ctx.set(dut.idle, 1)
        for _ in range(8):
            await ctx.tick()
        ctx.set(dut.idle, 0)
        await ctx.tick()
        for _ in range(SPEAKS):
            assert ctx.get(dut.horizon) == NEVER
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.horizon) == 100

    run(dut, bench)


def test_a_shorter_limit_is_heeded():
    """And a longer one does not take back what was due."""
    dut = Deadline()

    async def bench(ctx):
        ctx.set(dut.limit, 1000)
        for now in range(50):
            ctx.set(dut.now, now)
            await ctx.tick()
        assert not ctx.get(dut.due)
        ctx.set(dut.limit, 20)
        for _ in range(4):
            await ctx.tick()
        assert ctx.get(dut.due)
        assert ctx.get(dut.horizon) == 0
        ctx.set(dut.limit, 1000)
        for _ in range(4):
            await ctx.tick()
        assert ctx.get(dut.due)

    run(dut, bench)
