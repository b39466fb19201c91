"""Counters: every event of every node in every clock, in rows that belong to one instant."""

import functools

import cocotb
import pytest
from hypermon.hdl.accounts.counters import ROW, SWEPT, Counters, counter_rows
from hypermon.hdl.layout import Counter

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run, seeds
from ..harness.stage import run as simulate

LAG_BITS = 4


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def counts(dut):
    stage, choose = Stage(dut), rng()
    nodes, sweeps, fetch = CASE["nodes"], 5 if CASE["shared"] else 3, 4 if CASE["shared"] else 2
    sweep = ROW * counter_rows(nodes)
    await stage.start(clear=1, latch=0, reading=0, address_0=0, address_1=0,
                      **{f"event_{k}": 0 for k in range(len(SWEPT))}, **{f"beyond_{b}": 0 for b in range(LAG_BITS)},
                      **({"twice": 0} if CASE["doubled"] else {}))
    for _ in range(sweep + 8):
        await stage.clock()
    stage.put(clear=0)
    # On a board that rejects nothing the last counter stays 0, whatever comes.
    counted = [1] * (len(SWEPT) - 1) + [CASE["rejects"]]
    history = []                                # totals of every node after each clock
    totals = [[0] * len(SWEPT) for _ in range(nodes)]
    lags = [0] * nodes
    asked = [None, None]
    checked = 0

    async def clock(rate, latch=0):
        events = [sum((choose.random() < rate) << n for n in range(nodes)) for _ in SWEPT]
        events[1] = events[0]                   # two that always come together
        # Further planes of REJECTED, each only where the one before is set.
        further = [events[-1]]
        for _ in range(CASE["doubled"]):
            further.append(further[-1] & (choose.getrandbits(nodes) if rate < 1 else -1 % (1 << nodes)))
        twice = sum(plane << nodes * k for k, plane in enumerate(further[1:]))
        for node in range(nodes):
            if rate and choose.random() < 0.01:
                lags[node] = choose.randint(lags[node], 2**LAG_BITS - 3)
        stage.put(latch=latch, **{f"event_{k}": e for k, e in enumerate(events)},
                  **{f"beyond_{b}": sum((lag + 2 >> b & 1) << n for n, lag in enumerate(lags))
                     for b in range(LAG_BITS)})
        if CASE["doubled"]:
            stage.put(twice=twice)
        await stage.clock()
        for node in range(nodes):
            for k, event in enumerate(events):
                totals[node][k] += (event >> node & 1) * counted[k]
            totals[node][-1] += sum(plane >> node & 1 for plane in further[1:])
        history.append([list(row) for row in totals])

    async def check(side, exact):
        nonlocal checked
        for node in range(nodes):
            row = []
            for word in range(ROW):
                stage.put(reading=1 << side, **{f"address_{side}": ROW * node + word})
                for _ in range(fetch):
                    await clock(0)
                await stage.settle()
                row.append(stage.get(f"word_{side}"))
            stage.put(reading=0)
            swept = [row[c] for c in SWEPT]
            assert swept[0] == swept[1], f"node {node}: a row of two instants"
            if exact:
                assert swept == totals[node]
                assert row[Counter.LAG_MAX] == lags[node]
            else:
                # An event takes a few clocks to its row.
                low = history[max(0, asked[side] - 1)][node]
                high = history[min(asked[side] + sweeps * sweep, len(history) - 1)][node]
                assert all(a <= v <= b for a, v, b in zip(low, swept, high, strict=True)), (low, swept, high)
        checked += 1

    for phase in range(12):
        rate = choose.choice([0.02, 0.5, 1.0])
        for _ in range(choose.randint(2 * sweep, 10 * sweep)):
            latch = 0
            for side in range(2):
                if asked[side] is None and choose.random() < 0.01:
                    latch |= 1 << side
            await clock(rate, latch)
            for side in range(2):
                if latch >> side & 1:
                    asked[side] = len(history) - 1
                elif asked[side] is not None and dut.latched.value[side]:
                    await check(side, False)
                    asked[side] = None
        if phase % 3 == 2:
            # Silence, longer than the sweep: nothing may be left in the small counters.
            for _ in range(6 * sweep):
                await clock(0)
            await clock(0, 3)
            for _ in range(sweeps * sweep + 8):
                await clock(0)
            for side in range(2):
                assert dut.latched.value[side]
                await check(side, True)
                asked[side] = None
    # Bursts and pauses that keep step with the sweep: it must come round in the pauses too.
    for offset in range(0, sweep, sweep // 8):
        for _ in range(offset):
            await clock(0)
        for _ in range(6):
            for tick in range(sweep):
                await clock(1.0 if tick < sweep - 24 else 0)
    await clock(0, 1)
    for _ in range(sweeps * sweep + 8):
        await clock(0)
    await check(0, True)
    assert checked > 12
    # In the midst of events.
    for _ in range(20):
        await clock(1.0)
    stage.put(clear=1, **{f"event_{k}": 0 for k in range(len(SWEPT))}, **({"twice": 0} if CASE["doubled"] else {}))
    for _ in range(sweep + 8):
        await stage.clock()
    stage.put(clear=0)
    totals[:] = [[0] * len(SWEPT) for _ in range(nodes)]
    for side in range(2):
        await clock(0, 1 << side)
        for _ in range(sweeps * sweep + 8):
            await clock(0)
        await check(side, True)


@functools.cache
def simulator(nodes, rejects, shared, doubled):
    return component(Counters(nodes, LAG_BITS, rejects=rejects, shared=shared, doubled=doubled))


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(("nodes", "rejects", "shared", "doubled"), [
    (1, True, False, 0), pytest.param(16, False, False, 0, marks=pytest.mark.slow),
    pytest.param(16, True, False, 0, marks=pytest.mark.slow), (17, True, False, 0), (4, False, True, 0),
    (9, True, False, 1), (9, True, False, 3)])
def test_counts(nodes, rejects, shared, doubled, seed):
    run(simulator(nodes, rejects, shared, doubled), __name__, "counts", seed, nodes=nodes, rejects=rejects,
        shared=shared, doubled=doubled)


@pytest.mark.parametrize("ahead", [1, 2, 3, 4])
def test_a_skip_after_a_copy_begins_no_other(ahead):
    """A skip past the end of the sweep, just after a copy: what was copied stays, though the sweeps rest later."""
    nodes = 16
    dut = Counters(nodes, 7)

    async def word(ctx, address):
        ctx.set(dut.address[0], address)
        await ctx.tick().repeat(4)
        return ctx.get(dut.word[0])

    async def bench(ctx):
        ctx.set(dut.clear, 1)
        await ctx.tick().repeat(300)
        ctx.set(dut.clear, 0)
        for _ in range(50):
            ctx.set(dut.event[0], 0x5a5a)
            await ctx.tick()
        ctx.set(dut.event[0], 0)
        await ctx.tick().repeat(400)
        ctx.set(dut.latch, 1)
        await ctx.tick()
        ctx.set(dut.latch, 0)
        while not ctx.get(dut.latched) & 1:
            await ctx.tick()
        await ctx.tick().repeat(ahead)
        assert not ctx.get(dut.busy)
        ctx.set(dut.slip, 124 + ROW * 16)
        await ctx.tick()
        ctx.set(dut.slip, 0)
        for _ in range(700):
            assert not ctx.get(dut.copying)
            await ctx.tick()
        ctx.set(dut.reading, 1)
        assert [await word(ctx, ROW * n) for n in range(nodes)] == [50 * (0x5a5a >> n & 1) for n in range(nodes)]

    simulate(dut, bench)
