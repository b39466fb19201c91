"""Link counts: the side channel says, for each node, what was sent and refused until the frame in which it begins."""

import random

import pytest
from hypermon.hdl.regeneration.link_counts import LinkCounts

from ..harness.stage import run
from .models.link_model import counts


def test_tells():
    rng = random.Random(5)
    dut = LinkCounts()
    sides, flags = [], []
    refused, sent = [0] * 8, [0] * 8
    at_begin = {}

    async def bench(ctx):
        recent = False
        for now in range(128 * 288 + 128 * 17 + 128 * 256):
            slot, phase, frame = now // 4 % 32, now % 4, now // 128
            if now % 128 == 0:
                at_begin[frame] = (list(refused), list(sent))
            # In two frames in a row none but one: in the clock in which the flag is taken, or soon after that.
            some = (frame % 4 > 1 and rng.random() < 0.9) or now % 1024 in (6, 4 * 128 + 9)
            mask = rng.getrandbits(8) if some else 0
            ctx.set(dut.refused, mask)
            ctx.set(dut.now, now % (128 * 288))
            is_sent = phase == 3 and 2 <= slot <= 28 and rng.random() < 0.8
            node = rng.randrange(8)
            ctx.set(dut.sent, is_sent)
            ctx.set(dut.node, node)
            if slot == 1 and phase == 2:
                sides.append(ctx.get(dut.side))
                flags.append(recent)
                recent = False
            recent |= bool(mask)
            for n in range(8):
                refused[n] += mask >> n & 1
            if is_sent:
                sent[node] += 1
            await ctx.tick()

    run(dut, bench, clocks=120_000)
    assert [side & 1 for side in sides] == [int(flag) for flag in flags]
    assert [k for k, side in enumerate(sides) if side >> 1 & 1] == [256, 544]
    told = counts(sides[:288])
    assert told[16:] == [0, 0]
    assert told[8:16] == [at_begin[16 * (8 + n)][1][n] for n in range(8)]
    for n in range(8):
        # Refusals are added every 16 clocks.
        assert at_begin[16 * n][0][n] - 32 <= told[n] <= at_begin[16 * n][0][n] + 8
    # Another superframe would tell of the same totals; one count of it is here.
    assert counts([*sides[288:304], *[0] * 272])[0] == pytest.approx(at_begin[288][0][0], abs=32)
    assert min(told[1:16]) > 100
    # The age: superframes that began before.
    assert counts([*[0] * 256, *sides[544:560], *[0] * 16])[16] == 1
