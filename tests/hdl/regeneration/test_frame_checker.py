"""Frame checker: whole frames pass, any damaged one does not, and bytes can be read while the next one comes."""

import random

import pytest
from hypermon.hdl.regeneration.frame_checker import FrameChecker

from ..harness.stage import run
from .models.link_model import BYTES, frame


@pytest.mark.parametrize("seed", range(3))
def test_frames(seed):
    rng = random.Random(seed)
    dut = FrameChecker()
    counts = {"good": 0, "bad": 0}

    async def line(ctx):
        due = None      # lag, side and bytes of the frame before
        for number in range(20):
            lag, side = rng.getrandbits(12), rng.getrandbits(4)
            data = [rng.getrandbits(8) for _ in range(BYTES)]
            bits = frame(lag, side, data)
            wrong = rng.choice([0, 0, 0, 1, 2, 3, 4])
            for at in rng.sample(range(256) if number % 3 else range(8), wrong):
                bits[at] ^= 1
            for clock in range(128):
                ctx.set(dut.collecting, 1)
                ctx.set(dut.count, clock)
                ctx.set(dut.bits, bits[2 * clock] | bits[2 * clock + 1] << 1)
                if due is not None and 2 <= clock < 2 + BYTES:
                    ctx.set(dut.slot, clock + 1)
                    if due[2] is not None:
                        assert ctx.get(dut.byte) == due[2][clock - 2], (number, clock)
                elif due is not None and due[2] is not None and clock < 2:
                    assert (ctx.get(dut.lag), ctx.get(dut.side)) == due[:2]
                assert (ctx.get(dut.good) or ctx.get(dut.bad)) == (clock == 0 and due is not None)
                if clock == 0 and due is not None:
                    assert ctx.get(dut.good) == (due[2] is not None)
                await ctx.tick()
            due = lag, side, None if wrong else data
            counts["bad" if wrong else "good"] += 1
            for _ in range(rng.choice([0, 0, 3])):      # a search: nothing is collected
                ctx.set(dut.collecting, 0)
                ctx.set(dut.count, rng.getrandbits(7))
                ctx.set(dut.bits, rng.getrandbits(2))
                if due is not None:
                    assert ctx.get(dut.good) == (due[2] is not None)
                    due = None
                await ctx.tick()
                assert not ctx.get(dut.good)
                assert not ctx.get(dut.bad)

    run(dut, line)
    assert min(counts.values()) > 2


def test_single_bits():
    """Each bit of the sync, and every third one of the others, inverted alone, makes the frame a bad one."""
    rng = random.Random(1)
    dut = FrameChecker()
    whole = frame(1234, 5, [rng.getrandbits(8) for _ in range(BYTES)])

    async def line(ctx):
        ctx.set(dut.collecting, 1)
        verdicts = []
        for at in (*range(-1, 8), *range(8, 256, 3)):
            for clock in range(128):
                pair = [bit ^ (2 * clock + k == at) for k, bit in enumerate(whole[2 * clock:2 * clock + 2])]
                ctx.set(dut.count, clock)
                ctx.set(dut.bits, pair[0] | pair[1] << 1)
                if clock == 0:
                    verdicts.append(ctx.get(dut.good))
                await ctx.tick()
        verdicts.append(ctx.get(dut.good))
        assert verdicts[1:] == [1] + [0] * (len(verdicts) - 2)

    run(dut, line)
