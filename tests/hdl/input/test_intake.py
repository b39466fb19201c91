"""Intake: what filter, mask and limit keep out together, and that all of it is counted."""

import random

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.sim import Simulator
from hypermon.hdl.input.intake import Intake
from hypermon.hdl.layout import Geometry, Sink

NODES = 3
#: Windows of an interval of the limit, and clocks of it in which nodes write.
SPAN, WRITING = 9, range(40, 440)


def simulate(dut, bench):
    """Runs a bench on an intake, whose limit is in a clock domain of its own."""
    m = Module()
    m.domains.spine = ClockDomain()
    m.submodules.dut = dut
    m.d.comb += ClockSignal("spine").eq(ClockSignal())
    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("limit", [0, 5, 20])
@pytest.mark.parametrize("mask", [0xffff, 0x5a3c])
def test_mask_and_limit(mask, limit):
    """What the mask keeps out does not use up the limit; words and events pass the mask, and count."""
    rng = random.Random(mask + limit)
    dut = Intake(Geometry(NODES, sinks=(Sink.EXTENDED,)))
    words, events = 0b100, 0b010
    intervals = 4

    async def bench(ctx):
        for name, value in (("rising", -1), ("live", -1), ("mask", mask), ("items", limit), ("span", SPAN),
                            ("words", words), ("events", events), ("timeout", 10_000)):
            ctx.set(dut.time.window.live if name == "live" else getattr(dut.settings, name), value)
        await ctx.tick().repeat(10)
        written = [[] for _ in range(NODES)]        # nibbles of the items, by interval
        passed = [[] for _ in range(NODES)]
        rejects = [0] * NODES
        left, level, free = [0] * NODES, [0] * NODES, [0] * NODES   # nibbles of the open word; strobes; next write
        nibble = [1] * NODES
        for clock in range(intervals << SPAN):
            now = clock & (1 << SPAN) - 1
            for n in range(NODES):
                if level[n] and clock >= free[n] - 2:
                    level[n] = 0
                elif not level[n] and clock >= free[n] and (now in WRITING or left[n]):
                    if not left[n]:
                        written[n].append((clock >> SPAN, nibble[n]))
                    if (words | events) >> n & 1:
                        left[n] = (left[n] or (8 if words >> n & 1 else 1 + 2 * nibble[n])) - 1
                    level[n], free[n] = 1, clock + rng.randint(5, 9)
                elif not level[n] and clock == free[n] - 1:
                    # Of events of one or two bytes the first nibble says so.
                    nibble[n] = rng.randint(1, 2) if events >> n & 1 and not left[n] else rng.getrandbits(4)
            ctx.set(dut.time.now, clock)
            ctx.set(dut.levels.strobe, sum(bit << n for n, bit in enumerate(level)))
            ctx.set(dut.levels.data, sum(value << 4 * n for n, value in enumerate(nibble)))
            starts = ctx.get(dut.items.start)
            let = starts & ctx.get(dut.items.allow)
            ctx.set(dut.items.admit, let)
            for n in range(NODES):
                if let >> n & 1:
                    passed[n].append((clock >> SPAN, ctx.get(dut.items.nibble) >> 4 * n & 15))
                rejects[n] += ctx.get(dut.account.rejected) >> n & 1
            await ctx.tick()
        for n in range(NODES):
            wanted = []
            for k in range(intervals):
                kept = [one for one in written[n] if one[0] == k and ((words | events) >> n & 1 or mask >> one[1] & 1)]
                wanted += kept[:limit or None]
            assert passed[n] == wanted
            assert rejects[n] == len(written[n]) - len(wanted)
            assert wanted
            assert (len(wanted) < len(written[n])) == (limit == 5 or (n < NODES - 2 and bool(limit or mask != 0xffff)))

    simulate(dut, bench)


@pytest.mark.parametrize("limit", [0, 1])
def test_runts_and_limit(limit):
    """Runts between two clock edges with both edges active and no filter: a pulse and a reject each; where the limit
    keeps the pulse out, too, both are counted in one clock."""
    dut = Intake(Geometry(NODES, sinks=(Sink.EXTENDED,), phases=2))
    runts = 30

    async def bench(ctx):
        for name, value in (("rising", -1), ("falling", -1), ("live", -1), ("mask", -1), ("items", limit),
                            ("span", 31), ("timeout", 10_000)):
            ctx.set(dut.time.window.live if name == "live" else getattr(dut.settings, name), value)
        await ctx.tick().repeat(10)
        passed = rejected = twice = 0
        for clock in range(runts * 8 + 20):
            ctx.set(dut.levels.early, clock % 8 == 0 and clock < runts * 8)
            let = ctx.get(dut.items.start) & ctx.get(dut.items.allow) & 1
            ctx.set(dut.items.admit, let)
            passed, rejected, twice = (passed + let, rejected + (ctx.get(dut.account.rejected) & 1),
                                       twice + (ctx.get(dut.account.twice) & 1))
            await ctx.tick()
        assert passed == (limit or runts)
        assert passed + rejected + twice == 2 * runts
        assert twice == runts - passed

    simulate(dut, bench)
