"""Tally: every increase counts, whatever stands next to it, and a latch shows all words as of one clock."""

import random

import pytest
from hypermon.hdl.accounts import tally
from hypermon.hdl.accounts.tally import Tally
from hypermon.hdl.layout import COUNTER_BITS

from ..harness.stage import run

#: Clocks that a latch may take for each word, and on top, when clocks are kept free as they are asked for.
PACE, REST = 16, 60


def play(seed, depth, clocks, *, bits, greedy):
    """Counts at random, latches at random, clears sometimes; returns the number of copies compared.

    ``greedy``: counts in every clock but those that are to be kept free.
    """
    rng = random.Random(seed)
    dut = Tally(depth)
    seen = {"copies": 0, "cut": 0, "wraps": 0}

    async def bench(ctx):
        counts, copy = [0] * depth, None
        owed = 0                        # clocks to be kept free

        async def clear():
            ctx.set(dut.clear, 1)
            took = 0
            while not took or ctx.get(dut.clearing):
                ctx.set(dut.up, rng.random() < 0.5)     # what comes during a reset does not count
                ctx.set(dut.at, rng.randrange(depth))
                await ctx.tick()
                took += 1
            assert depth <= took < depth + 10
            ctx.set(dut.up, 0)
            ctx.set(dut.clear, 0)
            for _ in range(8):
                await ctx.tick()
            counts[:] = [0] * depth

        async def compare():
            for address in rng.sample(range(depth), depth):
                ctx.set(dut.address, address)
                ctx.set(dut.up, 0)
                for _ in range(2):
                    await ctx.tick()
                assert ctx.get(dut.word) == copy[address] % (1 << bits), (address, copy)
            seen["copies"] += 1

        await clear()
        asked, near, rate = None, 0, 1.0
        for clock in range(clocks):
            if rng.random() < 0.01:
                rate = 1.0 if greedy else rng.choice([0.0, 0.2, 0.9, 1.0])
            owed += ctx.get(dut.free)
            up = rng.random() < rate
            if up and owed and rng.random() < 0.3:
                up, owed = False, owed - 1
            # Often one of the last few again.
            near = (near + rng.choice([0, 0, 0, 1, 1, -1, 2])) % depth if rng.random() < 0.95 else rng.randrange(depth)
            latch = asked is None and rng.random() < 0.02
            ctx.set(dut.up, up)
            ctx.set(dut.at, near)
            ctx.set(dut.latch, latch)
            await ctx.tick()
            if up:
                counts[near] += 1
                seen["wraps"] += counts[near] >> bits
            if latch:
                asked, copy = clock, list(counts)
                assert not ctx.get(dut.latched)
            elif asked is not None and ctx.get(dut.latched):
                ctx.set(dut.latch, 0)
                await compare()
                asked = None
            elif asked is not None:
                assert clock - asked < PACE * depth + REST, "the latch does not end"
                if rng.random() < 0.0005:
                    await clear()
                    assert ctx.get(dut.latched), "a latch that a reset cut is not over"
                    seen["cut"] += 1
                    asked = None

    run(dut, bench, clocks=8 * clocks)
    return seen


@pytest.mark.parametrize("depth", [4, 16, 64])
@pytest.mark.parametrize("greedy", [False, True])
def test_counts(depth, greedy):
    seen = play(depth, depth, 6000, bits=COUNTER_BITS, greedy=greedy)
    assert seen["copies"] > 1
    assert not seen["wraps"]


@pytest.mark.parametrize("seed", range(2))
def test_carries(seed, monkeypatch):
    """With parts of two bits, of which every carry and the wrap are seen."""
    monkeypatch.setattr(tally, "_PART", 2)
    monkeypatch.setattr(tally, "COUNTER_BITS", 6)
    seen = play(seed, 8, 6000, bits=6, greedy=bool(seed))
    assert seen["copies"] > 3
    assert seen["wraps"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed, monkeypatch):
    monkeypatch.setattr(tally, "_PART", 1 + seed % 3)
    monkeypatch.setattr(tally, "COUNTER_BITS", bits := 3 + 3 * (seed % 3))
    seen = play(seed, 4 << seed % 3, 6000, bits=bits, greedy=seed % 2)
    assert seen["copies"]
