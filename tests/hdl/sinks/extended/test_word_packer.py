"""Word packer: groups in sequence, in short beats, blocks padded with zeros to 16 bytes."""

import random

import pytest
from hypermon.hdl.layout import GROUP_BITS, Geometry
from hypermon.hdl.sinks.extended.encoder import code_groups
from hypermon.hdl.sinks.extended.word_packer import WordPacker

from ...harness.stage import run

#: Groups of a beat; of 16 bytes, to which a block is padded.
BEAT, ROW = 8, 32
#: Clocks that follow the end of a block without a code.
CLOSING = 4


def pause(groups: int) -> int:
    """Clocks without a code after one of so many groups, by the packer's contract."""
    return (groups > BEAT) + (groups > 2 * BEAT)


def blocks_of_codes(rng, longest):
    """Codes (groups, opens, closes, item, time) of some blocks, and what is to be read of each block."""
    codes, expected = [], []
    for size in [1, BEAT - 1, BEAT, BEAT + 1, ROW - 1, ROW, ROW + 1, *(rng.randint(1, 500) for _ in range(20))]:
        groups, items, time = [], 0, rng.getrandbits(64)
        while len(groups) < size:
            count = min(size - len(groups), rng.choice([1, 2, 3, BEAT, longest, rng.randint(1, longest)]))
            new = [rng.getrandbits(GROUP_BITS) for _ in range(count)]
            item = rng.getrandbits(1)
            codes.append((new, not groups, 0, item, time))
            groups += new
            items += item
        codes.append(([], 0, 1, 0, rng.getrandbits(64)))
        expected.append(((len(groups) + 1) // 2, items, time, groups))
    return codes, expected


@pytest.mark.parametrize("nodes", [4, 16, 32])
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_packs(nodes, stall, seed):
    rng = random.Random(nodes + 100 * seed)
    dut = WordPacker(Geometry(nodes=nodes, beat_bytes=4))
    longest = code_groups(nodes)
    codes, expected = blocks_of_codes(rng, longest)
    beats, blocks, before = [], [], []

    async def give(ctx):
        for groups, opens, closes, item, time in codes:
            while rng.random() < stall:
                ctx.set(dut.valid, 0)
                await ctx.tick()
            ctx.set(dut.valid, 1)
            # What is at the inputs beside a code, or with the end of a block, does not count.
            value = rng.getrandbits(GROUP_BITS * longest) if closes else sum(
                g << GROUP_BITS * k for k, g in enumerate(groups))
            for field, v in ((dut.i.groups, value), (dut.i.count, len(groups)), (dut.i.opens, opens),
                             (dut.i.closes, closes), (dut.i.item, item), (dut.i.time, time)):
                ctx.set(field, v)
            await ctx.tick()
            ctx.set(dut.valid, 0)
            ctx.set(dut.i.groups, rng.getrandbits(GROUP_BITS * longest))
            ctx.set(dut.i.count, rng.randint(0, longest))
            for _ in range(CLOSING if closes else pause(len(groups))):
                await ctx.tick()

    async def watch(ctx):
        while len(blocks) < len(expected):
            if ctx.get(dut.beats.valid):
                beats.append(ctx.get(dut.beats.p))
                assert ctx.get(dut.busy)
            if ctx.get(dut.blocks.valid):
                assert ctx.get(dut.busy)
                p = dut.blocks.p
                blocks.append((ctx.get(p.length), ctx.get(p.items), ctx.get(p.time)))
                before.append(len(beats))
            await ctx.tick()
        await ctx.tick()
        assert not ctx.get(dut.busy)

    run(dut, give, watch)
    assert blocks == [block[:3] for block in expected]
    at = 0
    for (_, _, _, groups), complete in zip(expected, before, strict=True):
        count = -(-len(groups) // ROW) * (ROW // BEAT)
        assert complete == at + count, "a block is complete with its last beat, and padded to 16 bytes"
        payload = sum(g << GROUP_BITS * k for k, g in enumerate(groups))
        assert sum(beat << 32 * k for k, beat in enumerate(beats[at:at + count])) == payload
        at += count
    assert at == len(beats)


def test_a_short_code_every_clock():
    """At one code of eight groups per clock, a beat leaves per clock, after so many clocks."""
    dut = WordPacker(Geometry(nodes=4, beat_bytes=4))
    seen = []

    async def bench(ctx):
        ctx.set(dut.valid, 1)
        ctx.set(dut.i.count, BEAT)
        for k in range(40):
            ctx.set(dut.i.opens, k == 0)
            ctx.set(dut.i.groups, k)
            if ctx.get(dut.beats.valid):
                seen.append((k, ctx.get(dut.beats.p)))
            await ctx.tick()

    run(dut, bench)
    assert seen == [(k + 5, k) for k in range(35)]
