"""Byte coder: its bytes say what the moments said, by the document; at full load no slot is left."""

import random

import pytest
from hypermon.hdl.regeneration.byte_coder import ByteCoder

from ..harness.stage import run
from .link_model import items


@pytest.mark.parametrize(("gap", "members"), [(300, 3), (9, 1), (4, 8), (900, 1)])
def test_codes(gap, members):
    rng = random.Random(gap)
    dut = ByteCoder()
    due, came, frames, tallied = [], [], [], []

    async def bench(ctx):
        waiting, at, end = [], 140, 128 * 60
        for now in range(end):
            if now == at:
                if len(waiting) < 60:
                    nodes = sorted(rng.sample(range(8), rng.randint(1, members)))
                    waiting.append((now, {n: rng.getrandbits(4) for n in nodes}))
                at += rng.randint(1, 2 * gap - 1)
            # An item is at the end of the FIFO some clocks after it came.
            if waiting and waiting[0][0] + 4 <= now:
                stamp, held = waiting[0]
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.p, {"mask": sum(1 << n for n in held), "stamp": stamp % 4096,
                                  "nibbles": sum(v << 4 * n for n, v in held.items())})
            else:
                ctx.set(dut.i.valid, 0)
            ctx.set(dut.now, now % 4096)
            ctx.set(dut.side, now // 128 % 16)
            slot, phase = now // 4 % 32, now % 4
            if phase == 3:
                byte = ctx.get(dut.byte)
                if slot == 31:
                    assert byte == 0x17
                    frames.append([now + 1])
                elif frames and slot < 29:
                    frames[-1].append(byte)
                if ctx.get(dut.sent):
                    tallied.append(ctx.get(dut.node))
            if ctx.get(dut.i.ready) and waiting and waiting[0][0] + 4 <= now:
                due.extend((waiting[0][0], n, v) for n, v in waiting[0][1].items())
                waiting.pop(0)
            await ctx.tick()

    run(dut, bench)
    for start, low, high, *data in frames[:-1]:
        assert high >> 4 == start // 128 % 16
        came += items(start, low | (high & 15) << 8, data)
    assert came == due[:len(came)]
    assert [n for _, n, _ in came] == tallied[:len(came)]
    assert len(came) > 5
    if gap == 4:
        assert not any(0 in f[3:] for f in frames[20:-1])
