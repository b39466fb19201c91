"""Echoes of the wave: their sums, whatever the line does."""

import random

import pytest
from hypermon.hdl.layout import ECHO_CLOCKS, ECHO_SUM_BITS, ECHOES
from hypermon.hdl.time.echo import Echo

from ..harness.resets import same_as_fresh
from ..harness.stage import run


def play(periods: list[tuple[int, list[int]]]) -> list[tuple[int, int]]:
    """Periods, each of its length and the clocks of its rises at the line. Returns each sum, and the number of sets."""
    dut, got = Echo(), []

    async def bench(ctx):
        for length, rises in periods:
            for clock in range(length):
                ctx.set(dut.out, clock < length // 2)
                ctx.set(dut.rise, clock in rises)
                await ctx.tick()
                result = ctx.get(dut.result)
                seen = result & (1 << ECHO_SUM_BITS) - 1, result >> ECHO_SUM_BITS
                if not got or got[-1] != seen:
                    got.append(seen)

    run(dut, bench, clocks=4_000_000)
    return got


def wanted(periods: list[tuple[int, list[int]]]) -> list[tuple[int, int]]:
    sums, echoes = [(0, 0)], []
    for _, rises in periods:
        first = min(rises, default=ECHO_CLOCKS)
        # An echo in the very clock of the rise cannot be: two flip-flops are between.
        if 0 < first < ECHO_CLOCKS:
            echoes.append(first)
        if len(echoes) == ECHOES:
            sums.append((sum(echoes), len(sums)))
            echoes = []
    return sums


@pytest.mark.parametrize("seed", range(2))
def test_echoes_are_summed(seed):
    rng = random.Random(seed)
    periods = []
    for _ in range(3 * ECHOES + 100):
        length = rng.randint(60, 90)
        rises = [] if rng.random() < 0.1 else sorted(rng.sample(range(1, length - 1), rng.choice((1, 1, 3))))
        periods.append((length, rises))
    got = play(periods)
    assert got == wanted(periods)
    assert len(got) >= 3


def test_a_rise_in_the_very_clock_of_the_wave_is_no_echo():
    """Nor is another one of that period."""
    periods = [(60, [0, 9]), (60, [0])] + [(40, [7])] * ECHOES
    assert play(periods) == wanted(periods)


def test_an_echo_that_comes_too_late_does_not_count():
    last = ECHO_CLOCKS - 1
    periods = [(last + 40, [k]) for k in (5, last, last + 1, last + 20)] + [(40, [7])] * ECHOES
    assert play(periods) == wanted(periods)


def test_the_largest_sum_fits():
    assert (ECHO_CLOCKS - 1) * ECHOES < 1 << ECHO_SUM_BITS


def test_reset():
    """In sets that are nearly complete, too."""
    same_as_fresh(Echo, {"out": lambda rng: rng.random() < 0.5, "rise": lambda rng: rng.random() < 0.4}, episodes=3,
                  before=20 * ECHOES, after=20 * ECHOES)
