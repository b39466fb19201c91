"""Blocker: whole blocks with a right sum, whatever the sources, the link and resets do."""

import random
import zlib

import pytest
from hypermon.hdl.blocker import Blocker
from hypermon.hdl.layout import BLOCK_HEADER, BLOCK_TRAILER, BlockType, Geometry, TrailerFlag, padded

from .stage import run


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_makes_whole_blocks(seed, resets):
    rng = random.Random(seed)
    geometry = Geometry(nodes=4)
    dut = Blocker(geometry, (BlockType.LOSS, BlockType.FRAMES))
    payloads = [[rng.randbytes(8 * rng.randint(2, 21)) for _ in range(8)] for _ in range(2)]
    times = [[rng.getrandbits(64) for _ in range(8)] for _ in range(2)]
    blocks, begun = [], []
    sent = {0: 0, 1: 0, "done": 0}
    state = {"clear": False}
    fast = rng.choice((0.3, 0.95))

    def source(k):
        async def bench(ctx):
            port = getattr(dut, f"source{k}")
            for payload, time in zip(payloads[k], times[k], strict=True):
                for _ in range(rng.choice((0, 10, 60))):
                    await ctx.tick()
                while state["clear"]:
                    await ctx.tick()
                ctx.set(port.request, 1)
                ctx.set(port.length, len(payload))
                ctx.set(port.time, time)
                granted = False
                while not granted and not state["clear"]:
                    _, _, granted = await ctx.tick().sample(port.grant)
                ctx.set(port.request, 0)
                beats = payload + bytes(padded(len(payload)) - len(payload))
                at = 0
                while at < len(beats) and not state["clear"]:
                    offer = rng.random() < fast
                    ctx.set(port.beats.valid, offer)
                    ctx.set(port.beats.p, int.from_bytes(beats[at:at + 16], "little"))
                    _, _, ready = await ctx.tick().sample(port.beats.ready)
                    at += 16 if offer and ready else 0
                ctx.set(port.beats.valid, 0)
                sent[k] += at >= len(beats)
            sent["done"] += 1
        return bench

    async def reset(ctx):
        while sent["done"] < 2:
            await ctx.tick().repeat(rng.randint(20, 150))
            if resets:
                state["clear"] = True
                ctx.set(dut.clear, 1)
                await ctx.tick().repeat(70)
                ctx.set(dut.clear, 0)
                state["clear"] = False

    async def link(ctx):
        block = b""
        idle = 0
        while sent["done"] < 2 or idle < 100:
            ready = rng.random() < fast
            ctx.set(dut.o.ready, ready)
            _, _, valid, beat, last = await ctx.tick().sample(dut.o.valid, dut.o.p.data, dut.o.p.last)
            idle = 0 if valid else idle + 1
            if valid and ready:
                block += beat.to_bytes(16, "little")
                if last:
                    blocks.append(block)
                    block = b""
        assert block == b""

    run(dut, source(0), source(1), reset, link, clocks=60_000)
    whole = {t: [] for t in BlockType}
    for number, block in enumerate(blocks):
        header = BLOCK_HEADER.unpack(block)
        trailer = BLOCK_TRAILER.unpack(block, len(block) - 16)
        begun.append(header["type"])
        assert header["magic"].to_bytes(4, "little") == b"HMON"
        assert (header["sequence"], header["nodes"], header["clock_hz"]) == (number, 4, geometry.clock_hz)
        assert len(block) == 32 + padded(header["length"]) + 16
        assert trailer["crc"] == zlib.crc32(block[:-4])
        payload = block[32:32 + header["length"]]
        k = 0 if header["type"] == BlockType.LOSS else 1
        original = payloads[k][times[k].index(header["time"])]
        if trailer["flags"] & TrailerFlag.CUT:
            beats = range(0, len(original), 16)
            kept = next((n for n in beats if payload[n:n + 16] != original[n:n + 16]), len(original))
            assert payload[kept:] == bytes(len(payload) - kept)
        else:
            assert payload == original
            whole[header["type"]].append(payload)
    if not resets:
        assert whole[BlockType.LOSS] == payloads[0]
        assert whole[BlockType.FRAMES] == payloads[1]
    else:
        assert blocks
