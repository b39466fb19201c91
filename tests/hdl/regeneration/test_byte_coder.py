"""Byte coder: its bytes say what the moments said, by the document; at full load no slot is left."""

import random

import pytest
from hypermon.hdl.regeneration.byte_coder import ByteCoder

from ..harness.stage import run
from .models.link_model import nibbles


def in_order(stamp, held):
    """Nibbles of a moment: first those that begin an item."""
    return [(stamp, n, *v) for n, v in sorted(held.items(), key=lambda item: (item[1][1], item[0]))]


@pytest.mark.parametrize("framed", [0, 1])
@pytest.mark.parametrize(("gap", "members"), [(300, 3), (9, 1), (4, 8), (900, 1), (60, 2)])
def test_codes(gap, members, framed):
    rng = random.Random(gap)
    dut = ByteCoder()
    due, came, frames, tallied = [], [], [], []

    async def bench(ctx):
        ctx.set(dut.framed, framed)
        waiting, at, end = [], 140, 128 * 60
        for now in range(end):
            if now == at:
                if len(waiting) < 60:
                    nodes = sorted(rng.sample(range(8), rng.randint(1, members)))
                    waiting.append((now, {n: (rng.getrandbits(4), framed and rng.randrange(2)) for n in nodes}))
                at += rng.randint(1, 2 * gap - 1)
            # An item is at the end of the FIFO some clocks after it came.
            if waiting and waiting[0][0] + 4 <= now:
                stamp, held = waiting[0]
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.p, {"mask": sum(1 << n for n in held), "stamp": stamp % 4096,
                                  "more": sum(more << n for n, (_, more) in held.items()),
                                  "nibbles": sum(v << 4 * n for n, (v, _) in held.items())})
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
                due.extend(in_order(*waiting.pop(0)))
            await ctx.tick()
        due.extend(item for moment in waiting for item in in_order(*moment))

    run(dut, bench)
    for start, low, high, *data in frames[:-1]:
        assert high >> 4 == start // 128 % 16
        came += nibbles(start, low | (high & 15) << 8, data)
        assert not framed or 0 not in data
        assert framed or not any(0x40 <= byte < 0x80 for byte in data)
    assert came == due[:len(came)]
    begun = [n for _, n, _, more in came if not more]
    assert begun == tallied[:len(begun)]
    assert len(came) > 5
    if framed:
        assert {more for *_, more in came} == {0, 1}
    if gap == 4:
        # At full load nothing fills, and the two kinds of a moment's nibbles take at most one byte more.
        assert not any({0, 0x40} & set(f[4:]) for f in frames[20:-1] if not framed)
        for f in frames[20:-1]:
            steps = [byte for byte in f[3:] if byte < 0x80]
            assert len(steps) <= 2 * sum(byte % 64 != 0 for byte in steps) + 2


@pytest.mark.parametrize("needs", [4, 8])
@pytest.mark.parametrize("before", range(12))
def test_a_moment_just_before_an_idle_frame(before, needs):
    """A moment of the last clocks before a frame, which needs some clocks to the end of the FIFO, is in that frame: its
    time is not before the frame's first one."""
    dut, frames = ByteCoder(), []
    stamp = 3 * 128 - before

    async def bench(ctx):
        waits = True
        for now in range(128 * 6):
            ctx.set(dut.i.valid, waits and now >= stamp + needs)
            ctx.set(dut.i.p, {"mask": 4, "stamp": stamp, "nibbles": 9 << 8})
            ctx.set(dut.now, now)
            slot, phase = now // 4 % 32, now % 4
            if phase == 3 and slot == 31:
                frames.append([now + 1])
            elif phase == 3 and frames and slot < 29:
                frames[-1].append(ctx.get(dut.byte))
            waits &= not (ctx.get(dut.i.ready) and now >= stamp + needs)
            await ctx.tick()

    run(dut, bench)
    came = [(start, *item) for start, low, high, *data in frames[:-1]
            for item in nibbles(start, low | (high & 15) << 8, data)]
    assert came == [(3 * 128, stamp, 2, 9, 0)]
