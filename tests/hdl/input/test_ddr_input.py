"""DDR input and synchronizer: the time of an edge to half a clock, whenever it comes."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from hypermon.hdl.input.ddr_input import DdrInput
from hypermon.hdl.input.strobe_synchronizer import StrobeSynchronizer

PERIOD = 10_000
NODES = 2


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_half_a_clock(seed, guard):
    """Asynchronous strobes at any picosecond, each level for a clock or longer; both edges are active."""
    rng = random.Random(seed)
    m = Module()
    m.submodules.inputs = inputs = DdrInput(NODES)
    m.submodules.dut = dut = StrobeSynchronizer(NODES, pad_stage=False, guard=guard, phases=2)
    data = Signal(4 * NODES)
    clock = Signal(32)
    m.d.comb += [dut.strobe.eq(inputs.level), dut.early.eq(inputs.early)]
    # Behind a rising edge `clock` is its number: 1 at the first one, half a period after the start.
    m.d.sync += [dut.data.eq(data), clock.eq(clock + 1)]
    edges: list[list[int]] = []
    for _ in range(NODES):
        time, one = 200_000, []
        for _ in range(300):
            time += rng.choice([PERIOD, PERIOD + 1, rng.randint(PERIOD, 4 * PERIOD)])
            # Nobody knows what is seen of a change at the very moment of an edge.
            time += time % (PERIOD // 2) == 0
            one.append(time)
        edges.append(one)
    changes = sorted((time, node) for node, one in enumerate(edges) for time in one)
    found: list[list[int]] = [[] for _ in range(NODES)]

    async def pads(ctx):
        now = 0
        for time, node in changes:
            if time > now:
                await ctx.delay((time - now) * 1e-12)
                now = time
            ctx.set(inputs.pads, ctx.get(inputs.pads) ^ 1 << node)
        await ctx.tick().repeat(10)

    async def watch(ctx):
        ctx.set(dut.rising, -1)
        ctx.set(dut.falling, -1)
        async for _ in ctx.tick():
            for node in range(NODES):
                if ctx.get(dut.pulse) >> node & 1:
                    # The pulse stands behind edge k + 3; half clocks from the start are counted.
                    half = ctx.get(dut.half) >> node & 1
                    found[node].append(2 * (ctx.get(clock) - 3) - 1 - (1 - half))

    simulator = Simulator(m)
    simulator.add_clock(PERIOD * 1e-12)
    simulator.add_testbench(pads)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    for node in range(NODES):
        assert found[node] == [-(-time // (PERIOD // 2)) for time in edges[node]]
    assert {place % 2 for one in found for place in one} == {0, 1}
