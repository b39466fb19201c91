"""Pads in front of an intake: items as without, each in its half of the clock."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.sim import Simulator
from hypermon.boards.measure.core_timing import SerialShell
from hypermon.hdl.input.intake import Intake
from hypermon.hdl.input.pads import Pads
from hypermon.hdl.layout import Geometry, Sink

PERIOD = 10_000
#: Clock edges from the one that samples a strobe to the one behind which its item stands.
LATE = 4
NODES = 3


def strobes(rng, count, bits):
    """Writes of a node: time of the rising strobe, value; data stand from a clock and a half before."""
    time, writes = 300_000, []
    for _ in range(count):
        # Nobody knows what is seen of a change at the very moment of an edge.
        time += rng.randrange(5 * PERIOD, 9 * PERIOD)
        writes.append((time + (time % (PERIOD // 2) == 0), rng.randrange(1 << bits)))
    return writes


@pytest.mark.parametrize(("half_clock", "port_bits"), [(False, 4), (True, 4), (True, 8)])
def test_items(half_clock, port_bits):
    rng = random.Random(port_bits)
    geometry = Geometry(NODES, sinks=(Sink.EXTENDED,), phases=1 + half_clock, port_bits=port_bits)
    m = Module()
    m.submodules.pads = pads = Pads(geometry)
    m.submodules.dut = dut = Intake(geometry, pad_stage=False)
    m.d.comb += [dut.levels.strobe.eq(pads.strobe), dut.levels.data.eq(pads.data)]
    if half_clock:
        m.d.comb += dut.levels.early.eq(pads.early)
    writes = [strobes(rng, 60, port_bits) for _ in range(NODES)]
    changes = sorted(
        change for n, one in enumerate(writes) for time, value in one
        for change in ((time - PERIOD * 3 // 2, n, 0, value), (time, n, 1, value), (time + PERIOD * 2, n, 0, value)))
    found = [[] for _ in range(NODES)]

    async def play(ctx):
        now = 0
        for time, node, strobe, value in changes:
            if time > now:
                await ctx.delay((time - now) * 1e-12)
                now = time
            ctx.set(pads.pad_strobe[node], strobe)
            ctx.set(pads.pad_data.word_select(node, port_bits), value)
        await ctx.tick().repeat(12)

    async def watch(ctx):
        ctx.set(dut.settings.rising, -1)
        ctx.set(dut.time.window.live, -1)
        ctx.set(dut.settings.mask, -1)
        edge = 0        # behind which we are; the first one comes half a period after the start
        async for _ in ctx.tick():
            edge += 1
            for node in range(NODES):
                if ctx.get(dut.items.start) >> node & 1:
                    sampled = 2 * (edge - LATE) - 1     # in half clocks
                    early = half_clock and not ctx.get(dut.items.half) >> node & 1
                    found[node].append((sampled - early, ctx.get(dut.items.nibble.word_select(node, port_bits))))

    simulator = Simulator(m)
    simulator.add_clock(PERIOD * 1e-12)
    simulator.add_testbench(play)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    step = 1 if half_clock else 2
    for node, one in enumerate(writes):
        # The first sample at or behind the strobe: clock edges are odd half clocks.
        seen = [-(-time // (PERIOD // 2)) for time, _ in one]
        assert found[node] == [(at if step == 1 or at % 2 else at + 1, value)
                               for at, (_, value) in zip(seen, one, strict=True)]
    assert not half_clock or {at % 2 for one in found for at, _ in one} == {0, 1}


def test_in_front_of_a_board_that_samples_twice():
    """There both clock edges are used, the falling one by one register."""
    geometry = Geometry(1, vector_depth=256, sinks=(Sink.EXTENDED,), phases=2)
    shell = SerialShell(geometry, "portable")
    text = rtlil.convert(shell, name="top", ports=shell.ports(), emit_src=False)
    assert text.count("CLK_POLARITY 1") > 100
    assert text.count("CLK_POLARITY 0") == 1
