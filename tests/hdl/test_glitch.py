"""Glitch filter: levels that last count, a fixed time later; all other active edges are rejected."""

import random

import pytest
from hypermon.hdl.glitch import GlitchFilter

from .stage import run

NODES = 4


def verdicts(levels: list[int], more: int, rising: bool, falling: bool) -> dict[int, bool]:
    """For every active edge of a strobe, does it count? By the clock in which it is seen."""
    edges = [k for k in range(1, len(levels)) if levels[k] != levels[k - 1]]
    known, told = levels[0], {}
    for k in edges:
        lasts = all(level == levels[k] for level in levels[k:k + more + 1])
        if rising if levels[k] else falling:
            told[k] = lasts and levels[k] != known
        if lasts:
            known = levels[k]
    return told


def strobe(rng: random.Random, more: int, clocks: int) -> list[int]:
    """Levels that last long, just long enough, just too short, and such as ring."""
    levels = [rng.getrandbits(1)] * (more + 2)
    while len(levels) < clocks - 20:
        length = rng.choice([1, 1, 2, more, more + 1, more + 1, more + 2, rng.randint(1, 20)])
        levels += [1 - levels[-1]] * max(1, length)
    return levels[:clocks - 20] + [levels[clocks - 21]] * 20


@pytest.mark.parametrize("more", [0, 1, 2, 3, 7, 14])
@pytest.mark.parametrize("seed", range(2))
def test_what_lasts_counts(more, seed):
    rng = random.Random(100 * more + seed)
    dut = GlitchFilter(NODES)
    clocks = 1500
    rising, falling = rng.choice([(0b0011, 0b0101), (0b1110, 0b0111), (0b1111, 0), (0, 0b1111)])
    levels = [strobe(rng, more, clocks) for _ in range(NODES)]
    told = [verdicts(levels[i], more, bool(rising >> i & 1), bool(falling >> i & 1)) for i in range(NODES)]

    async def bench(ctx):
        ctx.set(dut.more, more)
        ctx.set(dut.rising, rising)
        ctx.set(dut.falling, falling)
        packed = [sum(levels[i][k] << i for i in range(NODES)) for k in range(clocks)]
        for port in (dut.level, dut.level_before):
            ctx.set(port, packed[0])
        await ctx.tick().repeat(4)
        counted: list[list[int]] = [[] for _ in range(NODES)]
        rejects = [0] * NODES
        for k in range(1, clocks):
            ctx.set(dut.level, packed[k])
            ctx.set(dut.level_before, packed[k - 1])
            ctx.set(dut.edge, packed[k] ^ packed[k - 1])
            now = ctx.get(dut.counts)
            await ctx.tick()
            rejected, looking = ctx.get(dut.rejected), ctx.get(dut.looking)
            assert not now & rejected, "it counts and is rejected"
            fresh = any(one[j] != one[j - 1] for one in levels for j in range(max(1, k - more + 1), k + 1))
            assert looking == (more > 0 and fresh)
            for i in range(NODES):
                rejects[i] += rejected >> i & 1
                if now >> i & 1:
                    counted[i].append(k)
                seen = [j for j in told[i] if j <= k]
                # All edges seen so far but for the last have been judged.
                judged = len(counted[i]) + rejects[i]
                assert len(seen) - 1 <= judged <= len(seen)
        kinds = set()
        for i in range(NODES):
            assert counted[i] == [k + more for k, counts in told[i].items() if counts]
            assert rejects[i] == sum(not counts for counts in told[i].values())
            kinds |= set(told[i].values())
        assert kinds == ({True, False} if more else {True})

    run(dut, bench)


