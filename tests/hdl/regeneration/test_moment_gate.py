"""Moment gate: what was offered came out in order or was refused, and an outage lasts until half of it is gone."""

import random

from hypermon.hdl.regeneration.moment_gate import MomentGate

from ..harness.stage import run


def test_queues_or_refuses():
    rng = random.Random(2)
    dut = MomentGate(depth=8)
    due, came, refused, torn, reopened = [], [], 0, 0, 0

    async def bench(ctx):
        nonlocal refused, torn, reopened
        outage = False
        for clock in range(9000):
            busy = clock // 300 % 2
            start, further = (rng.getrandbits(8) & rng.getrandbits(8) if rng.random() < (0.6 if busy else 0.07) else 0
                              for _ in range(2))
            further &= ~start
            nibble, ready = rng.getrandbits(32), rng.random() < 0.3
            for name, value in (("start", start), ("further", further), ("nibble", nibble), ("now", clock % 4096)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.o.ready, ready)
            bad, admitted, tears = ctx.get(dut.refused), ctx.get(dut.admit), ctx.get(dut.tears)
            inside = len(due) - len(came)
            assert {bad, admitted} <= {0, start}
            assert bad ^ admitted == start
            if (start or further) and not tears:
                assert not bad
                assert inside < 8
                assert not outage or inside <= 4
                reopened += outage
                outage = False
                due.append((start | further, further, nibble, clock % 4096))
            elif tears:
                assert start or further
                assert not admitted
                # Full a clock ago; an item that leaves is counted for one clock more.
                assert outage or inside >= 5
                refused, torn, outage = refused + (bad != 0), torn + (further != 0), True
            valid, item = ctx.get(dut.o.valid), ctx.get(dut.o.p)
            if valid and ready:
                came.append((item.mask, item.more, item.nibbles, item.stamp))
            await ctx.tick()

    run(dut, bench, clocks=10_000)
    assert came == due[:len(came)]
    assert len(due) - len(came) <= 8
    assert min(refused, torn) > 100
    assert reopened > 5
    assert any(more and more != mask for mask, more, *_ in due)
