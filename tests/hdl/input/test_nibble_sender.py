"""Nibble sender: each nibble is stable around the change of its strobe, at its time."""

import random

from amaranth.hdl import Module
from hypermon.hdl.input.nibble_sender import NibbleSender

from ..harness.stage import run


def test_nibbles_at_their_times():
    rng = random.Random(1)
    m = Module()
    m.submodules.dut = dut = NibbleSender()
    expected, seen, levels = [], [], []

    async def bench(ctx):
        clock, before = 0, 0

        async def clocks(count):
            nonlocal clock, before
            for _ in range(count):
                strobe, data = ctx.get(dut.strobe), ctx.get(dut.data)
                levels.append(data)
                if strobe != before:
                    seen.append((clock, data))
                before = strobe
                clock += 1
                await ctx.tick()

        for _ in range(60):
            count = rng.randrange(1, 4)
            nibbles = [rng.getrandbits(4) for _ in range(count)]
            expected.extend((clock + 5 + 8 * k, nibble) for k, nibble in enumerate(nibbles))
            ctx.set(dut.load, 1)
            ctx.set(dut.count, count)
            ctx.set(dut.nibbles, sum(nibble << 4 * k for k, nibble in enumerate(nibbles)))
            await clocks(1)
            ctx.set(dut.load, 0)
            ctx.set(dut.nibbles, rng.getrandbits(12))
            ctx.set(dut.count, rng.getrandbits(2))
            for _ in range(8 * count - 1):
                assert ctx.get(dut.busy)
                assert not ctx.get(dut.ready)
                await clocks(1)
            assert ctx.get(dut.busy)
            assert ctx.get(dut.ready)
            if rng.random() < 0.5:
                await clocks(1)
                assert not ctx.get(dut.busy)
                assert ctx.get(dut.ready)
                await clocks(rng.randrange(20))
        await clocks(10)

    run(m, bench)
    assert seen == expected
    for clock, nibble in seen:
        assert levels[clock - 3:clock + 4] == [nibble] * 7
