"""Encoder: what it writes is what the document says, and blocks end where they must."""

import itertools
import random
from collections import deque

import pytest
from hypermon.hdl.items.expander import MANY
from hypermon.hdl.layout import COMPACT_BEATS, COMPACT_HEAD, GAP_GROUPS, Code, Geometry, Sink
from hypermon.hdl.sinks.extended.encoder import _MARGIN, BEAT_GROUPS, Encoder, window_groups
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemModes

from tests.host.compact_write import encode, encode_items

from ...harness.stage import run

LONGEST = 8**GAP_GROUPS - 1
#: Clocks from a code's choice, for which there is room, until it is written.
CHOSEN = 4
#: Clocks without a code after the end of a block, with short beats.
PAUSE = 4


def windows(rng, nodes, count, gaps, bits=4):
    """So many windows (time, nodes and their nibbles), at gaps drawn from ``gaps``."""
    time, out = rng.getrandbits(40), []
    for _ in range(count):
        time = (time + rng.choice(gaps)(rng)) % 2**64
        size = 1 if rng.random() < 0.5 else rng.randint(1, nodes)
        out.append((time, [(n, rng.getrandbits(bits)) for n in sorted(rng.sample(range(nodes), size))]))
    return out


def rows_of(given):
    """What the encoder is given of windows of single nibbles: fields by name, a row an item."""
    return [{"node": n, "nibble": nibble, "first": k == 0, "last": k == len(members) - 1, "begins": 1,
             "many": len(members) >= MANY, "vector": sum(1 << m for m, _ in members), "time": time}
            for time, members in given for k, (n, nibble) in enumerate(members)]


def play(nodes, given, **options):
    """As :func:`run_rows`, of windows of single nibbles."""
    return run_rows(nodes, rows_of(given), **options)


def run_rows(nodes, rows, *, stall=0.0, flush=None, rng=None, bits=4, single=1, wide=16):
    """Gives rows to an encoder, and returns its blocks: time, groups, items; and how many items
    it wrote in how many clocks, and how often it was asked to close a block. ``flush``: which is
    after so many clocks at random. ``wide``: bytes of a beat."""
    rng = rng or random.Random(0)
    dut = Encoder(Geometry(nodes=nodes, sinks=(Sink.EXTENDED,), port_bits=bits, beat_bytes=wide))
    blocks = []
    total = sum(row["begins"] and not row.get("void", 0) for row in rows)
    names = dict.fromkeys((*rows[0], "late", "missing", "void"))
    done = {"items": 0, "clocks": 0, "asked": 0, "given": False}

    async def give(ctx):
        ctx.set(dut.single, single)
        for row in rows:
            while rng.random() < stall:
                ctx.set(dut.i.valid, 0)
                ctx.set(dut.i.p.time, rng.getrandbits(64))
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            for name in names:
                ctx.set(getattr(dut.i.p, name), row.get(name, 0))
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)
        done["given"] = True

    async def watch(ctx):
        is_open, closing, flush_before = False, False, 0
        chosen = CHOSEN + (wide == 4)
        rooms, pause = deque([False] * chosen, chosen + 1), 0
        while done["items"] < total or is_open or closing:
            rooms.append(rng.random() >= stall)
            ctx.set(dut.room, rooms[-1])
            over = done["items"] == total and done["given"]
            closing = over or bool(flush and (closing or rng.random() < 1 / flush))
            # It may stand for a clock after the block has been closed, and means no other block.
            closing = closing and bool(ctx.get(dut.open))
            done["asked"] += closing and not flush_before
            ctx.set(dut.flush, closing or flush_before)
            flush_before = closing
            if ctx.get(dut.valid):
                code = dut.o
                assert ctx.get(dut.busy)
                assert rooms[0], "a code that there is no room for"
                assert not pause, "a code that the packer has no time for"
                if wide == 4:
                    pause = PAUSE if ctx.get(code.closes) else sum(ctx.get(code.count) > k for k in (8, 16))
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
            else:
                pause = max(0, pause - 1)
            await ctx.tick()
            done["clocks"] += 1
        for _ in range(4):
            await ctx.tick()
        assert not ctx.get(dut.busy)

    run(dut, give, watch, clocks=80 * len(rows) + 1000)
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
@pytest.mark.parametrize("wide", [16, 4])
def test_writes_what_the_document_says(nodes, stall, bits, wide):
    rng = random.Random(nodes)
    given = windows(rng, nodes, 300, GAPS, bits)
    blocks, _ = play(nodes, given, stall=stall, rng=rng, bits=bits, wide=wide)
    check(nodes, given, blocks, bits)


@pytest.mark.parametrize("wide", [16, 4])
def test_one_code_a_clock(wide):
    rng = random.Random(1)
    given = [(10 * k, [(rng.randrange(16), k % 16)]) for k in range(400)]
    _, done = play(16, given, rng=rng, wide=wide)
    assert done["clocks"] < 400 + 20


@pytest.mark.parametrize("wide", [16, 4])
@pytest.mark.parametrize("seed", range(4))
def test_closes_when_asked(seed, wide):
    rng = random.Random(seed)
    given = windows(rng, 16, 300, GAPS[:2])
    blocks, done = play(16, given, stall=0.3, flush=40, rng=rng, wide=wide)
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


# -------------------------------------------------------------------------------------- late items

#: Ages have a sign, and so many bits.
AGE_BITS = 3 * GAP_GROUPS
NEAR = 1 << AGE_BITS - 1


def decoded(groups, time, nodes, modes):
    """Items of a block's groups, as the document says: window, node, nibbles, missing, late."""
    at, window, found = 0, time, []

    def take(count):
        nonlocal at
        at += count
        return groups[at - count:at]

    def number():
        value, place, more = 0, 0, 8
        while more:
            group, = take(1)
            value, place, more = value | (group & 7) << place, place + 3, group & 8
        return value

    def item(at_window, late):
        node = sum(group << 4 * k for k, group in enumerate(take(1 if nodes <= 16 else 2)))
        nibbles = take(1)
        rest = 2 * nibbles[0] if modes.events >> node & 1 else 7 if modes.words >> node & 1 else 0
        found.append([at_window, node, bytes(nibbles + take(rest)), 0, late])

    while at < len(groups):
        code = groups[at] & 7 if groups[at] & 8 and groups[at + 1:at + 2] == [0] else None
        if code is None:
            window += number()
            item(window, False)
            continue
        take(2)
        if code == Code.ABORTED:
            found[-1][3] = take(1)[0] | take(1)[0] << 4
        elif code == Code.LATE:
            age = number()
            item(window - (age - (age >= NEAR) * 2 * NEAR), True)
        else:
            window += number()
            vector = sum(group << 4 * k for k, group in enumerate(take(4 if nodes <= 16 else 8)))
            found += [[window, n, bytes(take(1)), 0, False] for n in range(nodes) if vector >> n & 1]
    return [tuple(one) for one in found]


def mixed_windows(rng, nodes, modes, count):
    """Windows with items of all modes, and items that were passed over: (time, node, nibbles, missing, late) each."""
    time, out = (1 << 30) + NEAR // 2, []
    ages = [lambda: rng.randint(-4, 40), lambda: rng.randint(-4, 40), lambda: rng.randrange(-NEAR, NEAR),
            lambda: rng.choice([NEAR - 1, NEAR, NEAR + 1, -NEAR, 1 - NEAR, -NEAR - 1, 2 * NEAR, 3 * NEAR, 1 << 29])]

    def item(at, node, late):
        length = rng.randint(1, 15) if rng.random() < 0.3 else rng.randint(1, 3)
        rest = 2 * length if modes.events >> node & 1 else 7 if modes.words >> node & 1 else 0
        nibbles = bytes([length, *(rng.getrandbits(4) for _ in range(rest))])
        missing = rng.randint(1, rest) if rest and rng.random() < 0.1 else 0
        return at, node, nibbles[:len(nibbles) - missing] + bytes(missing), missing, late

    longer = [n for n in range(nodes) if (modes.events | modes.words) >> n & 1]
    for _ in range(count):
        if out and rng.random() < 0.4:
            out.append([item(time - rng.choice(ages)(), rng.choice(longer), True)])
            continue
        time += rng.choice([1, rng.randint(1, 6), rng.randint(1, 900), rng.randint(1, NEAR if out[-1:] else 1)])
        chosen = rng.sample(range(nodes), rng.choice([1, 1, 2, nodes]))
        out.append([item(time, n, False) for n in sorted(chosen)])
    return out


@pytest.mark.parametrize("nodes", [3, 17])
@pytest.mark.parametrize(("stall", "flush"), [(0.0, None), (0.3, 60)])
def test_late_items(nodes, stall, flush):
    """Items that were passed over come with their own window, in a block of their own if it is too far away."""
    rng = random.Random(nodes)
    modes = ItemModes(words=0b110 & ~1, events=0b1 | 0b100)
    given = mixed_windows(rng, nodes, modes, 260)
    rows = []
    for members in given:
        many = len(members) >= MANY and not any((modes.words | modes.events) >> n & 1 for _, n, *_ in members)
        vector = sum(1 << n for _, n, *_ in members)
        void = rng.random() < 0.1       # the window ends with an item that was thrown away
        for k, (time, node, nibbles, missing, late) in enumerate(members):
            for j, nibble in enumerate(nibbles):
                end = j == len(nibbles) - 1
                rows.append({"node": node, "nibble": nibble, "first": k == j == 0, "begins": j == 0, "many": many,
                             "last": end and k == len(members) - 1 and not void, "vector": vector, "time": time,
                             "late": late, "missing": missing * end, "void": 0})
        if void:
            rows.append(rows[-1] | {"first": 0, "last": 1, "void": 1, "missing": 0, "begins": rng.getrandbits(1)})
    blocks, done = run_rows(nodes, rows, stall=stall, flush=flush, rng=rng, single=0)
    expected = [item for members in given for item in members]
    came, ages, alone = [], [], False
    for time, groups, _ in blocks:
        found = decoded(groups, time, nodes, modes)
        assert found[0][0] == time
        assert not found[0][4], "a block begins with a late item"
        # What has been said before is no business of another block's.
        running = time
        for at, _, _, _, late in found:
            if late:
                ages.append(running - at)
            running = running if late else at
        was_late = expected[len(came)][4]
        if came and was_late and not flush and not alone:
            window = next(at for at, *_, late in reversed(expected[:len(came)]) if not late)
            assert time // NEAR != window // NEAR, "a block for a near one"
        alone = was_late
        assert not was_late or len(found) == 1 or all(late for *_, late in found[1:])
        payload = bytes(low | high << 4 for low, high in itertools.zip_longest(groups[::2], groups[1::2], fillvalue=0))
        written = [LongItem(at, n, nibbles, missing, late) for at, n, nibbles, missing, late in found]
        assert payload == encode_items(written, modes, nodes)[COMPACT_HEAD.bytes:]
        came += found
    assert [one[:4] for one in came] == [one[:4] for one in expected]
    assert not any(late for (*_, late), (*_, given_late) in zip(came, expected, strict=True) if not given_late)
    assert any(age < 0 for age in ages)
    assert len(ages) > 30
    assert done["items"] == len(expected)
