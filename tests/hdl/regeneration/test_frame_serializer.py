"""Frame serializer: its bits are a frame by the document; so is its check, which finds up to four wrong bits."""

import random

from hypermon.hdl.regeneration.frame_serializer import FrameSerializer

from ..harness.stage import run
from .models.link_model import crc, frame, number


def test_frames():
    rng = random.Random(1)
    dut = FrameSerializer()
    sent = [[rng.randrange(256) for _ in range(29)] for _ in range(4)]
    sent[1] = [0] * 29
    line = []

    async def bench(ctx):
        for now in range(128 * 5):
            slot, at = now // 4 % 32, now // 128
            if now % 4 == 3:
                following = 0x17 if slot == 31 else sent[(at or 1) - 1][slot] if slot < 29 else rng.randrange(256)
                ctx.set(dut.byte, following)
            ctx.set(dut.now, now % 128)
            await ctx.tick()
            bits = ctx.get(dut.bits)
            line.extend((bits & 1, bits >> 1))

    run(dut, bench)
    for k, data in enumerate(sent):
        lag, side = data[0] | (data[1] & 15) << 8, data[1] >> 4
        assert line[256 * (k + 1):256 * (k + 2)] == frame(lag, side, data[2:])


def test_the_check_finds_up_to_four_wrong_bits():
    """The sums of one, two, three and four different syndromes are never 0."""
    zero = number(crc([0] * 232))
    ones = [number(crc([k == at for k in range(232)])) ^ zero for at in range(232)] + [1 << k for k in range(16)]
    pairs = [a ^ b for k, a in enumerate(ones) for b in ones[:k]]
    assert 0 not in ones
    assert len(set(pairs)) == len(pairs)
    assert not {0, *ones} & set(pairs)
