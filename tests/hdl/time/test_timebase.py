"""Time base: window ends, stamps, skipped time, the wrap of the stamp's lower half."""

import random

import pytest
from hypermon.hdl.layout import Geometry, Window
from hypermon.hdl.time import timebase as module
from hypermon.hdl.time.timebase import Timebase

from ..harness.resets import same_as_fresh
from ..harness.stage import run

GEOMETRY = Geometry(nodes=1, clock_hz=20_000_000)


@pytest.mark.parametrize("window", Window)
def test_counts_windows(window):
    rng = random.Random(int(window))
    timebase = Timebase(GEOMETRY)
    length = GEOMETRY.window_clocks(window)

    async def bench(ctx):
        ctx.set(timebase.window, window)
        await ctx.tick().repeat(3)
        assert not ctx.get(timebase.running)
        ctx.set(timebase.start, 1)
        await ctx.tick()
        assert ctx.get(timebase.running)
        skipped, carries = 0, set()
        for clock in range(1, 6000):
            # Before this edge the clock is number clock - 1.
            assert ctx.get(timebase.now) == (clock - 1) // length + skipped
            assert ctx.get(timebase.end) == (clock % length == 0)
            ctx.set(timebase.start, rng.getrandbits(1))
            before = ctx.get(timebase.now)
            advance = rng.choice((5, 1000, 2**31 - 1)) if rng.random() < 0.005 else 0
            if rng.random() < 0.02:
                # To just before a place where many bits change at once.
                bits = rng.choice((4, 16, 16, 20, 31, 32, 32))
                advance = min(max(0, -before % 2**bits - rng.randint(1, 3)), 2**31 - 1)
            ctx.set(timebase.advance, advance)
            await ctx.tick()
            skipped += advance
            now = ctx.get(timebase.now)
            assert ctx.get(timebase.wrap) == (before >> 32 != now >> 32)
            if now == before + 1:
                carries |= {bits for bits in (16, 32) if now % 2**bits == 0}
        assert carries == {16, 32}, "a wrap by counting was not reached"

    run(timebase, bench)


@pytest.mark.parametrize("window", Window)
def test_is_led(window):
    """Longer and shorter windows at random, across many carries: their lengths and numbers."""
    rng = random.Random(int(window))
    timebase = Timebase(GEOMETRY, disciplined=True)
    usual = GEOMETRY.window_clocks(window)

    async def bench(ctx):
        ctx.set(timebase.window, window)
        await ctx.tick().repeat(3)
        ctx.set(timebase.start, 1)
        await ctx.tick()
        number, clock, length, asked = 0, 0, usual, ""
        done = {"longer": 0, "shorter": 0, "carry": 0}
        for _ in range(8000):
            if not asked and rng.random() < 0.1:
                asked = rng.choice(["longer", "shorter"])
            ctx.set(timebase.longer, asked == "longer")
            ctx.set(timebase.shorter, asked == "shorter")
            assert ctx.get(timebase.now) == number
            assert ctx.get(timebase.end) == (clock == length - 1)
            corrected = ctx.get(timebase.corrected)
            advance = 0
            if corrected:
                assert asked
                done[asked] += 1
            elif not asked and rng.random() < 0.005:
                bits = rng.choice((16, 20, 32, 48))
                advance = min(max(0, -number % 2**bits - rng.randint(1, 40)), 2**31 - 1)
            ctx.set(timebase.advance, advance)
            await ctx.tick()
            clock += 1
            number += advance
            if clock == length:
                clock, length, before = 0, usual, number
                number += 1
                if corrected and asked == "longer":
                    length += 1
                elif corrected and usual == 1:
                    assert before % 16 == 0
                    number += 1
                elif corrected:
                    length -= 1
                done["carry"] += before >> 16 != number >> 16
            else:
                assert not corrected
            asked = "" if corrected else asked
        assert all(done.values()), done

    run(timebase, bench)


@pytest.mark.parametrize(("window", "count"), [(Window.CLOCK, 4), (Window.NS200, 3)])
def test_every_carry_by_counting(monkeypatch, window, count):
    """Hardware never skips: with quarters of 3 bits all carries come by counting alone, the third one, too."""
    monkeypatch.setattr(module, "QUARTER", 3)
    timebase = Timebase(GEOMETRY)
    length = GEOMETRY.window_clocks(window)

    async def bench(ctx):
        ctx.set(timebase.window, window)
        await ctx.tick().repeat(3)
        ctx.set(timebase.start, 1)
        await ctx.tick()
        for number in range((1 << 3 * count) + 20):
            assert ctx.get(timebase.now) == number % (1 << 12)
            assert ctx.get(timebase.wrap) == (number > 0 and number % (1 << 6) == 0)
            assert ctx.get(timebase.end) == (length == 1)
            await ctx.tick()
            for clock in range(1, length):
                assert not ctx.get(timebase.wrap)
                assert ctx.get(timebase.end) == (clock == length - 1)
                await ctx.tick()

    run(timebase, bench, clocks=10_000)


def test_the_wrap_by_counting():
    """From two carries of the second quarter before it to the wrap of the lower half, without a skip in between."""
    timebase = Timebase(GEOMETRY)
    begin = 2**32 - 2**17 - 5

    async def bench(ctx):
        ctx.set(timebase.window, Window.CLOCK)
        await ctx.tick().repeat(3)
        ctx.set(timebase.start, 1)
        await ctx.tick()
        for advance in (2**31 - 1, begin - 2**31):
            ctx.set(timebase.advance, advance)
            await ctx.tick()
        ctx.set(timebase.advance, 0)
        await ctx.tick().repeat(3)
        now = ctx.get(timebase.now)
        assert begin <= now < begin + 8
        await ctx.tick().repeat(2**32 - 1 - now)
        assert ctx.get(timebase.now) == 2**32 - 1
        assert not ctx.get(timebase.wrap)
        await ctx.tick()
        assert ctx.get(timebase.now) == 2**32
        assert ctx.get(timebase.wrap)
        await ctx.tick()
        assert ctx.get(timebase.now) == 2**32 + 1
        assert not ctx.get(timebase.wrap)

    run(timebase, bench, clocks=200_000)


@pytest.mark.parametrize("disciplined", [False, True])
def test_reset(disciplined):
    """Numbers above the lowest 16 bits come by skips."""
    same_as_fresh(
        lambda: Timebase(Geometry.extended(2), disciplined),
        {"advance": lambda rng: rng.getrandbits(31) if rng.random() < 0.05 else 0, "shift": lambda rng: 0},
        settings={"window": lambda rng: rng.randrange(4)})
