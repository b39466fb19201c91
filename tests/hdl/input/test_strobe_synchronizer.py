"""Synchronizer: active edges, sample points, and no more latency than it says."""

import random

import pytest
from hypermon.hdl.input.strobe_synchronizer import StrobeSynchronizer
from hypermon.hdl.layout import LATENCY

from ..harness.stage import run
from .test_glitch_filter import fine_strobe, fine_verdicts, strobe, verdicts

#: Clocks from the edge that samples a strobe to its pulse: what remains of the latency is the
#: gate, its register, and the window's.
DELAY = LATENCY - 3


@pytest.mark.parametrize("pad_stage", [True, False])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_samples_at_the_limit(seed, pad_stage, guard, bits):
    """Strobe and data change at any clock: each level of the strobe is held for one clock at least.
    A filter that is off changes nothing."""
    rng = random.Random(seed)
    nodes = 3
    dut = StrobeSynchronizer(nodes, pad_stage, port_bits=bits, guard=guard)
    every = (1 << bits) - 1
    # Without pads' flip-flops of its own, one stands outside.
    delay = DELAY if pad_stage else DELAY - 1
    rising, falling, after = (rng.getrandbits(nodes) for _ in range(3))

    async def bench(ctx):
        nonlocal rising, falling, after
        strobes, datas = [0] * 8, [0] * 8
        pulses = offered = 0
        for clock in range(800):
            # In between, with all quiet, other settings are made.
            quiet = clock % 200 < 20
            if clock % 200 == 10:
                rising, falling, after = (rng.getrandbits(nodes) for _ in range(3)) if clock > 10 else \
                    (rising, falling, after)
                ctx.set(dut.rising, rising)
                ctx.set(dut.falling, falling)
                ctx.set(dut.after, after)
            strobes.append(strobes[-1] if quiet else rng.getrandbits(nodes))
            datas.append(rng.getrandbits(bits * nodes))
            ctx.set(dut.strobe, strobes[-1])
            ctx.set(dut.data, datas[-1])
            await ctx.tick()
            # The edge that has just passed took the last sample; pulses are of DELAY edges ago.
            k = len(strobes) - 1 - delay
            new, old = strobes[k], strobes[k - 1]
            expected = (new & ~old & rising) | (~new & old & falling)
            assert ctx.get(dut.pulse) == expected
            for i in range(nodes):
                if expected >> i & 1:
                    sample = datas[k + 1] if after >> i & 1 else datas[k - 1]
                    assert ctx.get(dut.nibble) >> bits * i & every == sample >> bits * i & every
                    pulses += 1
            offered += bool(rising | falling)
            if guard:
                assert not ctx.get(dut.rejected)
        assert pulses or not offered

    run(dut, bench)


@pytest.mark.parametrize("playing", [0, 1])
@pytest.mark.parametrize("phases", [1, 2, 4])
def test_played(playing, phases):
    """What an emulator plays, or what the ports say, and nothing of the other."""
    rng = random.Random(playing)
    nodes, clocks = 3, 400
    every = (1 << nodes) - 1
    dut = StrobeSynchronizer(nodes, emulated=True, phases=phases)
    # What is played comes in behind the two flip-flops.
    delay = DELAY - 2 * playing

    async def bench(ctx):
        ctx.set(dut.playing, playing)
        ctx.set(dut.rising, every)
        await ctx.tick().repeat(10)
        strobes, datas = [[0] * 8, [0] * 8], [[0] * 8, [0] * 8]
        pulses = 0
        for _ in range(clocks):
            for levels, nibbles in zip(strobes, datas, strict=True):
                levels.append(rng.getrandbits(nodes))
                nibbles.append(rng.getrandbits(4 * nodes))
            ctx.set(dut.strobe, strobes[0][-1])
            if phases > 1:
                ctx.set(dut.early, sum(strobes[0][-1] << nodes * j for j in range(phases - 1)))
            ctx.set(dut.data, datas[0][-1])
            ctx.set(dut.played_strobe, strobes[1][-1])
            ctx.set(dut.played_data, datas[1][-1])
            await ctx.tick()
            k = len(strobes[0]) - 1 - delay
            expected = strobes[playing][k] & ~strobes[playing][k - 1]
            assert ctx.get(dut.pulse) == expected
            for i in range(nodes):
                if expected >> i & 1:
                    assert ctx.get(dut.nibble) >> 4 * i & 15 == datas[playing][k - 1] >> 4 * i & 15
                    pulses += 1
        assert pulses > clocks // 8

    run(dut, bench)


@pytest.mark.parametrize("phases", [1, 2, 4])
@pytest.mark.parametrize("more", [1, 4, 14])
@pytest.mark.parametrize("seed", range(3))
def test_filter(seed, more, phases):
    """With ringing and runts: pulses are `more` clocks later, nibbles those around the edge that counts,
    and each active edge is a pulse or a reject. Sampled several times a clock, in whichever part an edge is."""
    rng = random.Random(10 * more + seed)
    nodes, clocks = 3, 1500
    dut = StrobeSynchronizer(nodes, guard=True, phases=phases)
    rising, falling, after = (rng.getrandbits(nodes) | seed for _ in range(3))
    levels = [strobe(rng, more, clocks) for _ in range(nodes)]
    datas = [rng.getrandbits(4 * nodes) for _ in range(clocks)]

    async def bench(ctx):
        for name, value in (("rising", rising), ("falling", falling), ("after", after), ("more", more)):
            ctx.set(getattr(dut, name), value)
        found: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        rejects = [0] * nodes
        ctx.set(dut.strobe, sum(levels[i][0] << i for i in range(nodes)))
        if phases > 1:
            ctx.set(dut.early, sum(levels[i][0] << nodes * j + i for i in range(nodes) for j in range(phases - 1)))
        await ctx.tick().repeat(20)
        for k in range(clocks):
            ctx.set(dut.strobe, sum(levels[i][k] << i for i in range(nodes)))
            ctx.set(dut.data, datas[k])
            if phases > 1:
                new = [rng.randrange(phases) for _ in range(nodes)]     # the first sample of the new level
                ctx.set(dut.early, sum(levels[i][max(0, k - (j < new[i]))] << nodes * j + i
                                       for i in range(nodes) for j in range(phases - 1)))
            await ctx.tick()
            assert not ctx.get(dut.pulse) & ctx.get(dut.rejected)
            for i in range(nodes):
                rejects[i] += ctx.get(dut.rejected) >> i & 1
                if ctx.get(dut.pulse) >> i & 1:
                    found[i].append((k - DELAY - more, ctx.get(dut.nibble) >> 4 * i & 15))
        for i in range(nodes):
            told = verdicts(levels[i], more, bool(rising >> i & 1), bool(falling >> i & 1))
            expected = [(k, datas[k + 1 if after >> i & 1 else k - 1] >> 4 * i & 15) for k, c in told.items() if c]
            assert found[i] == expected
            assert len(found[i]) + rejects[i] == len(told)

    run(dut, bench)


def part_of(ctx, dut, node: int) -> int:
    """Number of the part of its clock in which a strobe came."""
    half = ctx.get(dut.half)
    planes = [half >> at + node & 1 for at in range(0, len(dut.half), dut.nodes)]
    return int("".join(map(str, planes)), 2)


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("phases", [2, 4])
def test_half_clocks(seed, guard, phases):
    """Several samples a clock, levels that last a clock at least: the pulse says which of them saw the edge first."""
    rng = random.Random(seed)
    nodes, clocks = 3, 1500
    dut = StrobeSynchronizer(nodes, guard=guard, phases=phases)
    rising, falling, after = (rng.getrandbits(nodes) | seed for _ in range(3))
    samples = [[0] * phases for _ in range(nodes)]
    for one in samples:
        while len(one) < phases * clocks:
            one += [1 - one[-1]] * rng.choice([phases, phases, phases + 1, 2 * phases, rng.randint(phases, 20)])
    datas = [rng.getrandbits(4 * nodes) for _ in range(clocks)]

    async def bench(ctx):
        for name, value in (("rising", rising), ("falling", falling), ("after", after)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(10)
        found: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        for k in range(clocks):
            # Sample phases * k is that of the clock edge.
            ctx.set(dut.early, sum(samples[i][max(0, phases * (k - 1) + 1 + j)] << nodes * j + i
                                   for i in range(nodes) for j in range(phases - 1)))
            ctx.set(dut.strobe, sum(samples[i][phases * k] << i for i in range(nodes)))
            ctx.set(dut.data, datas[k])
            await ctx.tick()
            for i in range(nodes):
                if ctx.get(dut.pulse) >> i & 1:
                    place = phases * (k - DELAY - 1) + 1 + part_of(ctx, dut, i)
                    found[i].append((place, ctx.get(dut.nibble) >> 4 * i & 15))
        seen = set()
        for i in range(nodes):
            expected = []
            for h in range(1, phases * (clocks - DELAY - 1) + 1):
                one = samples[i]
                if one[h] != one[h - 1] and (rising if one[h] else falling) >> i & 1:
                    k = -(-h // phases)
                    expected.append((h, datas[k + 1 if after >> i & 1 else k - 1] >> 4 * i & 15))
            assert found[i] == expected
            seen |= {h % phases for h, _ in expected}
        assert seen == set(range(phases)) or not rising | falling

    run(dut, bench)


@pytest.mark.parametrize("more", [None, 0, 1, 4])
@pytest.mark.parametrize(("rising", "falling"), [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("phases", [2, 4])
def test_half_clocks_with_runts(more, rising, falling, phases):
    """Several samples a clock and levels of any length: each active edge is a pulse, in its part, or rejected. ``more``
    is None without a filter."""
    rng = random.Random(f"{more} {rising} {falling}")
    nodes, clocks = 3, 1200
    dut = StrobeSynchronizer(nodes, guard=more is not None, phases=phases)
    after, late = rng.getrandbits(nodes), more or 0
    samples = [fine_strobe(rng, late, clocks, phases) for _ in range(nodes)]
    datas = [rng.getrandbits(4 * nodes) for _ in range(clocks)]

    async def bench(ctx):
        def at(h: int) -> int:
            return sum(samples[i][h] << i for i in range(nodes))

        for name, value in (("rising", -rising), ("falling", -falling), ("after", after)):
            ctx.set(getattr(dut, name), value)
        if more is not None:
            ctx.set(dut.more, more)
        ctx.set(dut.early, sum(at(0) << nodes * j for j in range(phases - 1)))
        ctx.set(dut.strobe, at(0))
        await ctx.tick().repeat(20)
        found: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        rejects = [0] * nodes
        for k in range(clocks):
            ctx.set(dut.early, sum(at(max(0, phases * (k - 1) + 1 + j)) << nodes * j for j in range(phases - 1)))
            ctx.set(dut.strobe, at(phases * k))
            ctx.set(dut.data, datas[k])
            await ctx.tick()
            for i in range(nodes):
                if more is not None:
                    rejects[i] += (ctx.get(dut.rejected) >> i & 1) + sum(
                        ctx.get(dut.twice) >> nodes * j + i & 1 for j in range(phases - 1))
                if ctx.get(dut.pulse) >> i & 1:
                    place = phases * (k - DELAY - late - 1) + 1 + part_of(ctx, dut, i)
                    found[i].append((place, ctx.get(dut.nibble) >> 4 * i & 15))
        for i in range(nodes):
            told = fine_verdicts(samples[i], late, bool(rising), bool(falling), phases)
            counted = [h for h, counts in told.items() if counts]
            edges = [(h, -(-h // phases)) for h in counted]
            assert found[i] == [(h, datas[k + 1 if after >> i & 1 else k - 1] >> 4 * i & 15) for h, k in edges]
            assert more is None or len(found[i]) + rejects[i] == len(told)

    run(dut, bench)


@pytest.mark.parametrize("pad_stage", [True, False])
@pytest.mark.parametrize("half_clock", [False, True])
@pytest.mark.parametrize("more", [None, 0, 3])
def test_levels_beside_a_nibble_stay_with_it(more, half_clock, pad_stage):
    """They are the two lowest bits of the nibble, too: what comes with a pulse, or a clock before it, is the same."""
    rng = random.Random(more)
    nodes, linked = 5, 3
    dut = StrobeSynchronizer(nodes, pad_stage, guard=more is not None, phases=1 + half_clock, emulated=True,
                             linked=linked)
    seen = {"continues": 0, "tears": 0, "pulses": 0}

    async def bench(ctx):
        ctx.set(dut.rising, -1)
        ctx.set(dut.falling, 0b10101)
        if more:
            ctx.set(dut.more, more)
        strobe, tears, moved = 0, 0, False
        for clock in range(1500):
            further, torn = rng.getrandbits(linked), rng.getrandbits(linked)
            strobe ^= rng.getrandbits(nodes) & rng.getrandbits(nodes)
            playing = 900 <= clock < 1200
            ctx.set(dut.playing, playing)
            for name in ("strobe", "played_strobe", *(["early"] if half_clock else [])):
                ctx.set(getattr(dut, name), strobe)
            ctx.set(dut.data, sum((further >> n & 1 | (torn >> n & 1) << 1) << 4 * n for n in range(linked)))
            ctx.set(dut.further, further)
            ctx.set(dut.torn, torn)
            await ctx.tick()
            pulse, nibble, continues = ctx.get(dut.pulse), ctx.get(dut.nibble), ctx.get(dut.continues)
            for n in range(linked):
                value = nibble >> 4 * n & 15
                if pulse >> n & 1 and moved:
                    assert continues >> n & 1 == value & 1
                    assert tears >> n & 1 == value >> 1
                    seen["continues"] += value & 1
                    seen["tears"] += value >> 1
                    seen["pulses"] += 1
                    assert not playing or clock < 910 or value == 0
                elif moved:
                    assert not tears >> n & 1
            tears, moved = ctx.get(dut.tears), clock > 20

    run(dut, bench)
    assert seen["pulses"] > seen["continues"] + seen["tears"] // 2
    assert min(seen.values()) > 20
