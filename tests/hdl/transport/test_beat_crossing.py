"""Crossing of whole beats: they come out in order in the link's clock while registers are accessed from there."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypermon.hdl.control.pbx import Pbx
from hypermon.hdl.transport.beat_crossing import BeatCrossing


@pytest.mark.parametrize("beat_bytes", [16, 2])
@pytest.mark.parametrize("seed", range(3))
def test_crosses(beat_bytes, seed):
    choose = random.Random(seed)
    m = Module()
    m.submodules.dut = dut = BeatCrossing(beat_bytes)
    m.submodules.pbx = pbx = Pbx()
    wiring.connect(m, dut.bus, pbx.bus)
    m.d.sync += pbx.access.done.eq(pbx.access.start)
    m.d.comb += pbx.access.rdata.eq(pbx.access.wdata + pbx.access.addr)
    data = choose.randbytes(16 * 60)
    blocks = {choose.randrange(1, 60) * 16 for _ in range(20)} | {len(data)}
    got, replies = [], []

    async def give(ctx):
        for at in range(0, len(data), beat_bytes):
            while choose.random() < 0.3:
                await ctx.tick()
            word = int.from_bytes(data[at:at + beat_bytes], "little")
            ctx.set(dut.stream.p, {"data": word, "last": at + beat_bytes in blocks})
            ctx.set(dut.stream.valid, 1)
            await ctx.tick().until(dut.stream.ready)
            ctx.set(dut.stream.valid, 0)

    async def take(ctx):
        while 16 * len(got) < len(data):
            ready = choose.random() < 0.6
            ctx.set(dut.beats.ready, ready)
            *_, valid, beat, last = await ctx.tick("link").sample(
                dut.beats.valid, dut.beats.p.data, dut.beats.p.last)
            if ready and valid:
                got.append((beat.to_bytes(16, "little"), last))

    async def ask(ctx):
        for k in range(30):
            ctx.set(dut.command.p, {"write": k % 2, "addr": 4 * k, "wdata": k << 20})
            ctx.set(dut.command.valid, 1)
            await ctx.tick("link").until(dut.command.ready)
            ctx.set(dut.command.valid, 0)
            ctx.set(dut.reply.ready, 1)
            replies.append((await ctx.tick("link").sample(dut.reply.p).until(dut.reply.valid))[0])
            ctx.set(dut.reply.ready, 0)

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_clock(choose.choice([4e-9, 1.7e-8]), domain="link", phase=1.3e-9)
    for bench in (give, take, ask):
        simulator.add_testbench(bench)
    steps = 0
    while simulator.advance():
        steps += 1
        assert steps < 100_000
    assert b"".join(beat for beat, _ in got) == data
    assert {16 * (k + 1) for k, (_, last) in enumerate(got) if last} == blocks
    assert replies == [(k << 20) + 4 * k for k in range(30)]
