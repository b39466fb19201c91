"""Event mask: events that are kept out go whole, and windows still begin and end."""

import random

import pytest
from hypermon.hdl.layout import EVENT_IDS, EVENT_MASK_ROW, Geometry, Sink
from hypermon.hdl.trigger.event_mask import EventMask

from ..harness.stage import run

NODES = 5
FIELDS = ("node", "nibble", "first", "last", "begins", "missing", "late", "time", "many", "vector")


def event_of(rng, identity, length, port_bits):
    """Writes of an event of so many bytes: with ports of 8 bits, the upper half of the first means nothing."""
    if port_bits == 8:
        return [length | rng.randrange(16) << 4, identity, *(rng.randrange(256) for _ in range(length - 1))]
    return [length, identity & 15, identity >> 4, *(rng.randrange(16) for _ in range(2 * length - 2))]


def identity_of(item, port_bits):
    return item[1]["nibble"] if port_bits == 8 else item[1]["nibble"] | item[2]["nibble"] << 4


def windows(rng, count, events, ids, port_bits):
    """Items of so many windows, each a row of nibbles as the expander gives them; a late one alone."""
    out = []
    for time in range(count):
        late = rng.random() < 0.1
        members = sorted(rng.sample(range(NODES), 1 if late or rng.random() < 0.5 else rng.randint(1, NODES)))
        items = []
        for node in members:
            nibbles = [rng.randrange(1 << port_bits)]
            if events >> node & 1:
                nibbles = event_of(rng, rng.choice(ids), rng.choice([1, 2, 15]), port_bits)
            items.append((node, nibbles, rng.randrange(20) if rng.random() < 0.1 else 0))
        rows = []
        for k, (node, nibbles, missing) in enumerate(items):
            end = len(nibbles) - 1
            rows.append([{
                "node": node, "nibble": nibble, "first": k == 0 and n == 0, "last": k == len(items) - 1 and n == end,
                "begins": n == 0, "missing": missing if n == end else 0, "late": late, "time": time,
                "many": len(items) >= 4 and not events, "vector": sum(1 << m for m in members),
            } for n, nibble in enumerate(nibbles)])
        out.append(rows)
    return out


def expected(given, events, out, port_bits):
    """What is to come: rows of nibbles, and None where a window has lost its end."""
    rows = []
    for window in given:
        kept = []
        for item in window:
            kept.append(not (events >> item[0]["node"] & 1 and identity_of(item, port_bits) in out))
        owed = False
        for item, keep in zip(window, kept, strict=True):
            if keep:
                rows += [row | {"first": row["first"] or (owed and row["begins"])} for row in item]
                owed = False
            else:
                owed = owed or item[0]["first"]
        if not kept[-1]:
            rows.append(None)
    return rows


@pytest.mark.parametrize(("seed", "port_bits"), [
    pytest.param(seed, bits, marks=() if seed < quick else pytest.mark.slow)
    for bits, quick, seeds in ((4, 4, 12), (8, 2, 3)) for seed in range(seeds)])
def test_masks(seed, port_bits):
    rng = random.Random(seed)
    dut = EventMask(Geometry(nodes=NODES, sinks=(Sink.EXTENDED,), port_bits=port_bits))
    events = [0b10010, 0b11111, 0][seed % 3]
    ids = [rng.randrange(EVENT_IDS) for _ in range(6)]
    out = set(rng.sample(range(EVENT_IDS), rng.choice([0, 40, EVENT_IDS]))) | set(ids[:seed % 4])
    given = windows(rng, 120, events, ids, port_bits)
    gives, takes = rng.choice([0.3, 1.0]), rng.choice([0.3, 1.0])
    rows = expected(given, events, out, port_bits)
    dropped = [0]

    async def give(ctx):
        ctx.set(dut.events, events)
        ctx.set(dut.load, 1)
        order = list(range(EVENT_IDS // EVENT_MASK_ROW))
        rng.shuffle(order)
        for row in order:
            ctx.set(dut.entry.row, row)
            ctx.set(dut.entry.out, sum((8 * row + b in out) << b for b in range(EVENT_MASK_ROW)))
            await ctx.tick()
        ctx.set(dut.load, 0)
        ctx.set(dut.entry.out, 0xff)
        for row in (row for window in given for item in window for row in item):
            while rng.random() >= gives:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            for name in FIELDS:
                ctx.set(getattr(dut.i.p, name), row[name])
            await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    async def take(ctx):
        idle = 0
        for want in rows:
            while True:
                assert idle < 5000, "it sticks"
                ctx.set(dut.o.ready, rng.random() < takes)
                taken = ctx.get(dut.o.valid) and ctx.get(dut.o.ready)
                p = dut.o.p
                found = {name: ctx.get(getattr(p, name)) for name in FIELDS} | {"void": ctx.get(p.void)}
                assert ctx.get(dut.busy) or not taken
                dropped[0] += ctx.get(dut.dropped)
                await ctx.tick()
                idle += 1
                if taken:
                    break
            idle = 0
            if want is None:
                assert (found["void"], found["first"], found["last"]) == (1, 0, 1)
            else:
                assert found == want | {"void": 0}
        ctx.set(dut.o.ready, 1)
        for _ in range(40):
            assert not ctx.get(dut.o.valid)
            dropped[0] += ctx.get(dut.dropped)
            await ctx.tick()
        assert not ctx.get(dut.busy)

    run(dut, give, take, clocks=60_000)
    items = [item for window in given for item in window]
    assert dropped[0] == sum(
        events >> item[0]["node"] & 1 and identity_of(item, port_bits) in out for item in items)


def test_speed():
    """One nibble a clock."""
    dut = EventMask(Geometry(nodes=NODES))
    taken = [0]

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for name in ("first", "last", "begins"):
            ctx.set(getattr(dut.i.p, name), 1)
        for _ in range(300):
            taken[0] += ctx.get(dut.o.valid)
            await ctx.tick()

    run(dut, bench)
    assert taken[0] > 285
