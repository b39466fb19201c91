"""Replay: each moment 4096 clocks after its time, data a clock before the strobe, whatever the edges are."""

import random

import pytest
from hypermon.hdl.regeneration.replay import Replay

from ..harness.stage import run

LATE, WRAP = 4096, 1 << 13


@pytest.mark.parametrize("seed", range(3))
def test_every_moment_at_its_time(seed):
    rng = random.Random(seed)
    dut = Replay()
    toggles = (0, 0xff, rng.getrandbits(8))[seed]
    times = [5000]
    for _ in range(60):
        times.append(times[-1] + rng.choice([1, 2, 3, rng.randrange(1, 300)]))
    moments = [(at, rng.randrange(1, 256), rng.getrandbits(32), rng.getrandbits(8), rng.random() < 0.2)
               for at in times]
    framed = seed != 1

    async def bench(ctx):
        ctx.set(dut.toggles, toggles)
        clock, queue, level = times[0] + LATE - 20, list(moments), 0
        due = {at: rest for at, *rest in moments}
        held, pulse, further, torn, gaps = 0, 0, 0, 0, 0
        ctx.set(dut.framed, framed)
        while clock < times[-1] + LATE + 10:
            ctx.set(dut.now, clock % WRAP)
            # Each is there at least three clocks before it is due.
            there = queue and clock >= queue[0][0] + LATE - rng.choice([3, 100, 4000])
            there = there or (queue and clock >= queue[0][0] + LATE - 3)
            ctx.set(dut.i.valid, bool(there))
            if there:
                at, mask, nibbles, more, gap = queue[0]
                ctx.set(dut.i.p.time, at % WRAP)
                ctx.set(dut.i.p.mask, mask)
                ctx.set(dut.i.p.nibbles, nibbles)
                ctx.set(dut.i.p.more, more)
                ctx.set(dut.i.p.torn, gap)
                if ctx.get(dut.i.ready):
                    assert clock == at + LATE
                    queue.pop(0)
            elif not there:
                assert not ctx.get(dut.i.ready)
            await ctx.tick()
            # Data have changed with this edge, the strobe does at the next one.
            level = (level & toggles) ^ pulse
            assert ctx.get(dut.strobe) == level
            pulse, nibbles, more, gap = due.get(clock - LATE, (0, 0, 0, 0))
            gaps |= 255 * gap
            for n in range(8):
                if pulse >> n & 1:
                    held = held & ~(15 << 4 * n) | (nibbles & 15 << 4 * n)
            if pulse:
                # Of the last nibble of each node; a gap counts for its next one.
                further = further & ~pulse | more & pulse
                torn = torn & ~pulse | (gaps | ~more) & pulse
                gaps &= ~pulse
            assert ctx.get(dut.data) == held
            assert (ctx.get(dut.further), ctx.get(dut.torn)) == ((further, torn) if framed else (0, 0))
            clock += 1
        assert not queue

    run(dut, bench)
