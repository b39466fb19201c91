"""Glitch filter: levels that last count, a fixed time later; all other active edges are rejected."""

import random
from functools import reduce
from itertools import pairwise
from operator import or_

import pytest
from hypermon.hdl.input.glitch_filter import GlitchFilter

from ..harness.stage import run

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


def fine_verdicts(samples: list[int], more: int, rising: bool, falling: bool, phases: int) -> dict[int, bool]:
    """For every active edge of a strobe that is sampled ``phases`` times a clock, does it count? By its place in
    ``samples``, of which every ``phases``-th is that of a clock edge."""
    edges = [h for h in range(1, len(samples)) if samples[h] != samples[h - 1]]
    known, told = samples[0], {}
    for h, following in zip(edges, [*edges[1:], 1 << 30], strict=True):
        clock, active = -(-h // phases), rising if samples[h] else falling
        if not more:
            # In a clock with several active edges the first one counts.
            counts = not any(-(-other // phases) == clock for other in told)
        else:
            lasts = -(-following // phases) > clock + more
            counts = lasts and samples[h] != known
            known = samples[h] if lasts else known
        if active:
            told[h] = counts
    return told


def fine_strobe(rng: random.Random, more: int, clocks: int, phases: int) -> list[int]:
    """Several samples a clock, as :func:`strobe` has one; among them runts between two clock edges."""
    last = phases * (clocks - 20)
    samples = [rng.getrandbits(1)] * (phases * more + 2 * phases + 1)
    while len(samples) < last:
        least = phases * more
        length = rng.choice([*[1] * (phases + 1), 2, 3, least + 1, least + phases, least + phases + 1,
                             rng.randint(1, 20 * phases)])
        samples += [1 - samples[-1]] * max(1, length)
    return samples[:last] + [samples[last - 1]] * (20 * phases)


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


@pytest.mark.parametrize("more", [0, 1, 3, 14])
@pytest.mark.parametrize(("rising", "falling"), [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("phases", [2, 4])
def test_half_clocks(more, rising, falling, phases):
    """Several samples a clock: every active edge of them is a pulse or rejected, those of short runts, too."""
    rng = random.Random(100 * more + 2 * rising + falling)
    dut = GlitchFilter(NODES, phases=phases)
    clocks = 1500
    samples = [fine_strobe(rng, more, clocks, phases) for _ in range(NODES)]
    told = [fine_verdicts(one, more, bool(rising), bool(falling), phases) for one in samples]
    # All edges that a clock can have.
    runts = sum(all(one[h] != one[h - 1] for h in range(phases * k - phases + 1, phases * k + 1))
                for one in samples for k in range(1, clocks))
    assert runts > 10
    most = 0

    async def bench(ctx):
        def at(h: int) -> int:
            return sum(samples[i][h] << i for i in range(NODES))

        ctx.set(dut.more, more)
        ctx.set(dut.rising, -rising)
        ctx.set(dut.falling, -falling)
        nonlocal most
        for port in (dut.level, dut.level_before):
            ctx.set(port, at(0))
        ctx.set(dut.middle, sum(at(0) << NODES * j for j in range(phases - 1)))
        await ctx.tick().repeat(4)
        counted: list[list[int]] = [[] for _ in range(NODES)]
        rejects, twos = [0] * NODES, 0
        for k in range(1, clocks):
            levels = [at(h) for h in range(phases * (k - 1), phases * k + 1)]
            ctx.set(dut.level_before, levels[0])
            ctx.set(dut.middle, sum(level << NODES * j for j, level in enumerate(levels[1:-1])))
            ctx.set(dut.level, levels[-1])
            ctx.set(dut.edge, reduce(or_, (a ^ b for a, b in pairwise(levels))))
            now = ctx.get(dut.counts)
            await ctx.tick()
            rejected, twice = ctx.get(dut.rejected), ctx.get(dut.twice)
            assert not more or not now & rejected, "it counts and is rejected"
            twos += twice.bit_count()
            for i in range(NODES):
                told_here = [rejected >> i & 1, *(twice >> NODES * j + i & 1 for j in range(phases - 1))]
                assert told_here == sorted(told_here, reverse=True), "a third and no second"
                most = max(most, sum(told_here))
                rejects[i] += sum(told_here)
                if now >> i & 1:
                    counted[i].append(k)
                seen = sum(h <= phases * k for h in told[i])
                assert seen - bool(more) <= len(counted[i]) + rejects[i] <= seen
        for i in range(NODES):
            assert counted[i] == [-(-h // phases) + more for h, counts in told[i].items() if counts]
            assert rejects[i] == sum(not counts for counts in told[i].values())
        if phases == 2:
            assert bool(twos) == bool(more and rising and falling)
            assert {c for one in told for c in one.values()} == ({True, False} if more or rising & falling else {True})
        elif rising and falling:
            assert most == phases - (not more)

    run(dut, bench)
