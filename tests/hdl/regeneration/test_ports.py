"""Ports: nodes of regeneration boards come from their lines and the others from the pads, each in its place."""

import random

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.layout import LINK_NODES, Geometry
from hypermon.hdl.regeneration.ports import Ports
from hypermon.hdl.regeneration.wired_boards import WiredBoards

from ..harness.stage import run

#: Clocks in which the line is found, and by which a replayed strobe is later than one that is wired directly.
SEARCH, LATE = 40 * 128, 4109


@pytest.mark.parametrize("phases", [1, 2, 4])
def test_without_links_the_pads_pass(phases):
    rng = random.Random(1)
    dut = Ports(Geometry.extended(5, phases=phases))

    async def bench(ctx):
        for _ in range(50):
            strobe, data, early = (rng.getrandbits(bits) for bits in (5, 20, 15))
            ctx.set(dut.pad_strobe, strobe)
            ctx.set(dut.pad_data, data)
            if phases > 1:
                early %= 1 << 5 * (phases - 1)
                ctx.set(dut.pad_early, early)
                assert ctx.get(dut.levels.early) == early
            assert (ctx.get(dut.levels.strobe), ctx.get(dut.levels.data)) == (strobe, data)
            await ctx.tick()

    m = Module()
    m.submodules.dut = dut
    m.d.sync += Signal().eq(0)      # the pads pass without a clock
    run(m, bench)


@pytest.mark.parametrize("phases", [2, 4])
def test_linked_nodes_come_first(phases):
    """Pads of the first eight nodes have no effect; the line's strobe is no earlier at the samples before."""
    rng = random.Random(2)
    m = Module()
    m.submodules.wired = wired = WiredBoards(1)
    m.submodules.dut = dut = Ports(Geometry(12, links=1, sinks=Geometry.extended().sinks, phases=phases))
    m.d.comb += dut.line.eq(wired.samples)
    seen = []

    async def bench(ctx):
        ctx.set(wired.rising, 0xff)
        await ctx.tick().repeat(SEARCH)
        assert ctx.get(dut.account0.locked)
        ctx.set(wired.data, 0x9 << 4 * 3)
        await ctx.tick().repeat(4)
        ctx.set(wired.strobe, 1 << 3)
        before = 0
        for clock in range(LATE + 50):
            pads, nibbles, early = rng.getrandbits(12), rng.getrandbits(48), rng.getrandbits(12 * (phases - 1))
            ctx.set(dut.pad_strobe, pads)
            ctx.set(dut.pad_data, nibbles)
            ctx.set(dut.pad_early, early)
            strobe, data = ctx.get(dut.levels.strobe), ctx.get(dut.levels.data)
            assert strobe >> LINK_NODES == pads >> LINK_NODES
            assert data >> 4 * LINK_NODES == nibbles >> 4 * LINK_NODES
            linked = strobe & 0xff
            for at in range(0, 12 * (phases - 1), 12):
                assert ctx.get(dut.levels.early) >> at & 0xfff == (early >> at & 0xf00) | linked
            if linked != before:
                seen.append((clock, linked ^ before, data >> 4 * 3 & 15))
            before = linked
            await ctx.tick()

    run(m, bench, clocks=SEARCH + LATE + 200)
    assert [(which, nibble) for _, which, nibble in seen] == [(1 << 3, 9)]
    assert abs(seen[0][0] - LATE) <= 8
