"""Encoder: what it writes is what the document says, and blocks end where they must."""

import itertools
import random
from collections import deque

import pytest
from hypermon.hdl.encoder import _MARGIN, BEAT_GROUPS, Encoder, window_groups
from hypermon.hdl.expander import MANY
from hypermon.hdl.layout import COMPACT_BEATS, GAP_GROUPS, Geometry, Sink
from hypermon.host.compact import encode

from .stage import run

LONGEST = 8**GAP_GROUPS - 1
#: Clocks from a code's choice, for which there is room, until it is written.
CHOSEN = 4


def windows(rng, nodes, count, gaps, bits=4):
    """So many windows (time, nodes and their nibbles), at gaps drawn from ``gaps``."""
    time, out = rng.getrandbits(40), []
    for _ in range(count):
        time = (time + rng.choice(gaps)(rng)) % 2**64
        size = 1 if rng.random() < 0.5 else rng.randint(1, nodes)
        out.append((time, [(n, rng.getrandbits(bits)) for n in sorted(rng.sample(range(nodes), size))]))
    return out


def play(nodes, given, *, stall=0.0, flush=None, rng=None, bits=4):
    """Gives windows to an encoder, and returns its blocks: time, groups, items; and how many items
    it wrote in how many clocks, and how often it was asked to close a block. ``flush``: which is
    after so many clocks at random."""
    rng = rng or random.Random(0)
    dut = Encoder(Geometry(nodes=nodes, sinks=(Sink.EXTENDED,), port_bits=bits))
    blocks = []
    total = sum(len(members) for _, members in given)
    done = {"items": 0, "clocks": 0, "asked": 0}

    async def give(ctx):
        ctx.set(dut.single, 1)
        for time, members in given:
            for k, (n, nibble) in enumerate(members):
                while rng.random() < stall:
                    ctx.set(dut.i.valid, 0)
                    ctx.set(dut.i.p.time, rng.getrandbits(64))
                    await ctx.tick()
                p = dut.i.p
                ctx.set(dut.i.valid, 1)
                for field, value in ((p.node, n), (p.nibble, nibble), (p.first, k == 0),
                                     (p.last, k == len(members) - 1), (p.many, len(members) >= MANY),
                                     (p.vector, sum(1 << m for m, _ in members)), (p.time, time), (p.begins, 1)):
                    ctx.set(field, value)
                await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        is_open, closing, flush_before = False, False, 0
        rooms = deque([False] * CHOSEN, CHOSEN + 1)
        while done["items"] < total or is_open or closing:
            rooms.append(rng.random() >= stall)
            ctx.set(dut.room, rooms[-1])
            closing = done["items"] == total or bool(flush and (closing or rng.random() < 1 / flush))
            # It may stand for a clock after the block has been closed, and means no other block.
            closing = closing and bool(ctx.get(dut.open))
            done["asked"] += closing and not flush_before
            ctx.set(dut.flush, closing or flush_before)
            flush_before = closing
            if ctx.get(dut.valid):
                code = dut.o
                assert ctx.get(dut.busy)
                assert rooms[0], "a code that there is no room for"
                if ctx.get(code.closes):
                    assert is_open
                    assert (ctx.get(code.count), ctx.get(code.item)) == (0, 0)
                    is_open = False
                else:
                    assert ctx.get(code.opens) == (not is_open)
                    if not is_open:
                        blocks.append([ctx.get(code.time), [], []])
                        is_open = True
                    groups, count = ctx.get(code.groups), ctx.get(code.count)
                    assert groups >> 4 * count == 0
                    blocks[-1][1] += [groups >> 4 * k & 15 for k in range(count)]
                    if ctx.get(code.item):
                        blocks[-1][2].append(ctx.get(code.node))
                        done["items"] += 1
            await ctx.tick()
            done["clocks"] += 1
        for _ in range(4):
            await ctx.tick()
        assert not ctx.get(dut.busy)

    run(dut, give, watch, clocks=80 * total + 1000)
    return blocks, done


def check(nodes, given, blocks, bits=4):
    """Every block holds whole windows, and exactly what the document's encoder makes of them."""
    at = 0
    for time, groups, items in blocks:
        members = []
        assert given[at][0] == time, "a block begins with the time of its first window"
        while len(members) < len(items):
            members += [(given[at][0], n, nibble) for n, nibble in given[at][1]]
            at += 1
        assert [n for _, n, _ in members] == items
        assert len(groups) <= COMPACT_BEATS * BEAT_GROUPS
        padded = groups + [0] * (len(groups) % 2)
        payload = bytes(low | high << 4 for low, high in zip(padded[::2], padded[1::2], strict=True))
        assert payload == encode(members, nodes, bits)
    assert at == len(given)


GAPS = [lambda rng: rng.randint(1, 8), lambda rng: rng.randint(1, 600), lambda rng: rng.randint(1, LONGEST)]


@pytest.mark.parametrize(("nodes", "bits"), [
    *((nodes, 4) for nodes in (1, 3, 4, 16, 17, 32)), (3, 8), (17, 8),
    *(pytest.param(nodes, 8, marks=pytest.mark.slow) for nodes in (1, 4, 16, 32))])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_writes_what_the_document_says(nodes, stall, bits):
    rng = random.Random(nodes)
    given = windows(rng, nodes, 300, GAPS, bits)
    blocks, _ = play(nodes, given, stall=stall, rng=rng, bits=bits)
    check(nodes, given, blocks, bits)


def test_one_code_a_clock():
    rng = random.Random(1)
    given = [(10 * k, [(rng.randrange(16), k % 16)]) for k in range(400)]
    _, done = play(16, given, rng=rng)
    assert done["clocks"] < 400 + 20


@pytest.mark.parametrize("seed", range(4))
def test_closes_when_asked(seed):
    rng = random.Random(seed)
    given = windows(rng, 16, 300, GAPS[:2])
    blocks, done = play(16, given, stall=0.3, flush=40, rng=rng)
    check(16, given, blocks)
    assert len(blocks) <= done["asked"] + 1, "closed, and nobody has asked"
    assert len(blocks) > 10


@pytest.mark.parametrize("gap", [LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST + 1, 2 * LONGEST + 2, 2 * LONGEST + 3,
                                 3 * LONGEST, 2**32, 2**32 + 5, 2**43 + 1])
@pytest.mark.parametrize("begin", [0, 5, LONGEST - 2, 2 * LONGEST - 1, 2**32 - 3, 2**64 - 2 * LONGEST])
def test_a_long_gap_begins_another_block(gap, begin):
    given = [(begin, [(0, 1)]), ((begin + gap) % 2**64, [(1, 2)]), ((begin + gap + 3) % 2**64, [(2, 3)])]
    if begin + gap + 3 >= 2**64:
        pytest.skip("time ends")
    blocks, _ = play(4, given)
    check(4, given, blocks)
    assert len(blocks) == len({time // (LONGEST + 1) for time, _ in given})


@pytest.mark.parametrize(("nodes", "bits"), [
    (16, 8), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((16, 4), (32, 4), (32, 8)))])
def test_a_block_is_never_too_long(nodes, bits):
    """Full windows at long gaps; and blocks are nearly full, but where time takes another one."""
    rng = random.Random(2)
    given, time = [], 0
    for _ in range(2 * COMPACT_BEATS * BEAT_GROUPS // (nodes + 11)):
        time += rng.choice([8**4, 8**4 + 1, 1])
        given.append((time, [(n, rng.getrandbits(bits)) for n in range(nodes)]))
    blocks, _ = play(nodes, given, rng=rng, bits=bits)
    check(nodes, given, blocks, bits)
    assert len(blocks) > 1
    for (time, groups, _), (following, _, _) in itertools.pairwise(blocks):
        other = time // (LONGEST + 1) != following // (LONGEST + 1)
        assert other or len(groups) > 0.95 * COMPACT_BEATS * BEAT_GROUPS


@pytest.mark.parametrize(("bits", "long"), [(4, 4), (4, 5), (4, 6), (8, 6)])
def test_a_block_has_room_for_what_is_not_counted_yet(bits, long):
    """A block in which there is room for the longest window of nibbles, just so: items with the longest gaps, and then
    that window. One of bytes has to be full before."""
    nodes, gap = 32, 8**(GAP_GROUPS - 1)
    most, each = COMPACT_BEATS * BEAT_GROUPS, 3 + bits // 4
    count, rest = divmod(most - _MARGIN - window_groups(nodes, single=True), each)
    # The first gaps are a group longer, so that none is left.
    given = [(k + 8 * min(k, rest), [(k % nodes, 5)]) for k in range(count)]
    given += [(given[-1][0] + gap * k, [(k, 6)]) for k in range(1, long + 1)]
    given.append((given[-1][0] + gap, [(n, 7) for n in range(nodes)]))
    # What follows is one block: the one before was full, not this.
    given += [(given[-1][0] + k, [(k, 8)]) for k in range(1, 20)]
    blocks, _ = play(nodes, given, bits=bits)
    check(nodes, given, blocks, bits)
    assert len(blocks) == 2
