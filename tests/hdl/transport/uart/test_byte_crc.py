"""CRC-32 a byte a clock: zlib's, and what it leaves behind itself."""

import random
import zlib

from hypermon.hdl.transport.uart.byte_crc import ByteCrc

from ...harness.stage import run


def test_is_zlibs():
    dut, choose = ByteCrc(), random.Random(1)

    async def bench(ctx):
        for _ in range(20):
            message = choose.randbytes(choose.randrange(1, 12))
            ctx.set(dut.clear, 1)
            ctx.set(dut.valid, choose.getrandbits(1))
            await ctx.tick()
            ctx.set(dut.clear, 0)
            good = choose.random() < 0.5
            crc = zlib.crc32(message) ^ (0 if good else 1 << choose.randrange(32))
            for at, byte in enumerate(message + crc.to_bytes(4, "little")):
                if at == len(message):
                    assert ctx.get(dut.crc) == zlib.crc32(message)
                while choose.random() < 0.3:
                    ctx.set(dut.valid, 0)
                    ctx.set(dut.data, choose.randrange(256))
                    await ctx.tick()
                ctx.set(dut.valid, 1)
                ctx.set(dut.data, byte)
                await ctx.tick()
            ctx.set(dut.valid, 0)
            assert bool(ctx.get(dut.good)) is good
    run(dut, bench)
