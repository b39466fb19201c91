"""CRC against zlib's."""

import random
import zlib

import pytest
from hypermon.hdl.stream.crc32 import Crc32

from ..harness.stage import run


@pytest.mark.parametrize("wide", [16, 4, 2])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_zlib(seed, wide):
    rng = random.Random(seed)
    crc = Crc32(wide)

    async def bench(ctx):
        for _ in range(20):
            block = rng.randbytes(16 * rng.randint(1, 9))
            cut = rng.getrandbits(1)
            for at in range(0, len(block), wide):
                ctx.set(crc.data, int.from_bytes(block[at:at + wide], "little"))
                ctx.set(crc.first, at == 0)
                ctx.set(crc.valid, 1)
                await ctx.tick()
                ctx.set(crc.valid, 0)
                ctx.set(crc.data, rng.getrandbits(8 * wide))
                ctx.set(crc.first, rng.getrandbits(1))
                for _ in range(rng.choice((0, 0, 1, 5))):
                    await ctx.tick()
            ctx.set(crc.first, 0)
            ctx.set(crc.finish, 1)
            ctx.set(crc.cut, cut)
            await ctx.tick()
            ctx.set(crc.finish, 0)
            ctx.set(crc.cut, rng.getrandbits(1))
            await ctx.tick().repeat(5 if wide == 2 else 3)
            assert ctx.get(crc.crc) == zlib.crc32(block + bytes([cut]) + bytes(11))

    run(crc, bench)
