"""Moment gate: what was offered came out in order or was refused, and an outage lasts until half of it is gone."""

import random

from hypermon.hdl.regeneration.moment_gate import MomentGate

from ..harness.stage import run


def test_queues_or_refuses():
    rng = random.Random(2)
    dut = MomentGate(depth=8)
    due, came, refused, reopened = [], [], 0, 0

    async def bench(ctx):
        nonlocal refused, reopened
        outage = False
        for clock in range(6000):
            busy = clock // 300 % 2
            pulse = rng.getrandbits(8) if rng.random() < (0.7 if busy else 0.1) else 0
            nibble, ready = rng.getrandbits(32), rng.random() < 0.3
            for name, value in (("pulse", pulse), ("nibble", nibble), ("now", clock % 4096)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.o.ready, ready)
            bad = ctx.get(dut.refused)
            inside = len(due) - len(came)
            assert bad in (0, pulse)
            if pulse and not bad:
                assert inside < 8
                assert not outage or inside <= 4
                reopened += outage
                outage = False
                due.append((pulse, nibble, clock % 4096))
            elif bad:
                assert outage or inside >= 7
                refused, outage = refused + 1, True
            valid, item = ctx.get(dut.o.valid), ctx.get(dut.o.p)
            if valid and ready:
                came.append((item.mask, item.nibbles, item.stamp))
            await ctx.tick()

    run(dut, bench)
    assert came == due[:len(came)]
    assert len(due) - len(came) <= 8
    assert refused > 100
    assert reopened > 5
