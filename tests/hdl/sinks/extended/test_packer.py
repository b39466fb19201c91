"""Packer: groups one behind the other, blocks in beats of their own."""

import random

import pytest
from hypermon.hdl.layout import COMPACT_BEATS, GROUP_BITS, Geometry
from hypermon.hdl.sinks.extended.encoder import BEAT_GROUPS, code_groups
from hypermon.hdl.sinks.extended.packer import Packer, block_layout

from ...harness.stage import run


@pytest.mark.parametrize("nodes", [4, 16, 32])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_packs(nodes, stall):
    rng = random.Random(nodes)
    dut = Packer(Geometry(nodes=nodes))
    longest = code_groups(nodes)
    codes, expected = [], []
    for size in [1, BEAT_GROUPS - 1, BEAT_GROUPS, BEAT_GROUPS + 1, *(rng.randint(1, 500) for _ in range(12))]:
        groups, items, time = [], 0, rng.getrandbits(64)
        while len(groups) < size:
            count = min(size - len(groups), rng.choice([1, 2, 3, 4, longest, rng.randint(1, longest)]))
            new = [rng.getrandbits(GROUP_BITS) for _ in range(count)]
            item = rng.getrandbits(1)
            codes.append((new, not groups, 0, item, time))
            groups += new
            items += item
        codes.append(([], 0, 1, 0, rng.getrandbits(64)))
        expected.append(((len(groups) + 1) // 2, items, time, groups))
    beats, blocks, before = [], [], []

    async def give(ctx):
        for groups, opens, closes, item, time in codes:
            while rng.random() < stall:
                ctx.set(dut.valid, 0)
                await ctx.tick()
            ctx.set(dut.valid, 1)
            # The end of a block may say anything: none of it counts.
            value = rng.getrandbits(GROUP_BITS * longest) if closes else sum(
                g << GROUP_BITS * k for k, g in enumerate(groups))
            for field, v in ((dut.i.groups, value), (dut.i.count, len(groups)), (dut.i.opens, opens),
                             (dut.i.closes, closes), (dut.i.item, item), (dut.i.time, time)):
                ctx.set(field, v)
            await ctx.tick()
        ctx.set(dut.valid, 0)

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
    for (length, _, _, groups), complete in zip(expected, before, strict=True):
        count = -(-length // (BEAT_GROUPS // 2))
        assert complete >= at + count, "a block is complete before its last beat"
        payload = sum(g << GROUP_BITS * k for k, g in enumerate(groups))
        assert sum(beat << 128 * k for k, beat in enumerate(beats[at:at + count])) == payload
        at += count
    assert at == len(beats)


def test_the_longest_block_fits_its_description():
    layout = block_layout()
    assert layout["length"].width >= (COMPACT_BEATS * 16).bit_length()
    assert layout["items"].width >= (COMPACT_BEATS * BEAT_GROUPS).bit_length()
