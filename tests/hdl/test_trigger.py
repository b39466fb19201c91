"""Trigger: whole windows from so many nibbles before the start to the stop, and every other item counted."""

import random

import pytest
from hypermon.hdl.layout import PRETRIGGER_MAX, Geometry, Sink
from hypermon.hdl.trigger import Trigger

NODES = 5
EVENTS = 0b10010
FIELDS = ("node", "nibble", "first", "last", "begins", "time")


def windows(rng, count, events, port_bits=4):
    """Nibbles of so many windows, as the expander gives them."""
    entries = []
    for time in range(count):
        members = sorted(rng.sample(range(NODES), 1 if rng.random() < 0.6 else rng.randint(1, NODES)))
        rows = []
        for node in members:
            length = rng.randint(1, 3) if events >> node & 1 else 0
            values = 1 << port_bits
            # The length is in the lower four bits.
            behind = 8 // port_bits * length
            nibbles = [length or rng.randrange(values), *(rng.randrange(values) for _ in range(behind))]
            if length and port_bits == 8:
                nibbles[0] |= rng.randrange(16) << 4
            rows += [(node, nibble, k == 0) for k, nibble in enumerate(nibbles)]
        entries += [(node, nibble, k == 0, k == len(rows) - 1, begins, time)
                    for k, (node, nibble, begins) in enumerate(rows)]
    return entries


def matching(entries, events, match, port_bits):
    """Which entries decide that an item matches: the first nibble, or the third of an event, or its second byte."""
    id_place = 8 // port_bits
    found, place = [], 0
    for k, (node, nibble, _, _, begins, _) in enumerate(entries):
        place = 0 if begins else place + 1
        if match is None or match["event"] != bool(events >> node & 1) or place != (match["event"] and id_place):
            continue
        value = entries[k - 1][1] | nibble << 4 if match["event"] and port_bits == 4 else nibble
        if not (value ^ match["value"]) & match["value_mask"] and not (node ^ match["node"]) & match["node_mask"]:
            found.append(k)
    return found


def expected(entries, events, start, stop, before, port_bits):
    """The slice that passes, and whether start and stop have been found."""
    begin, after, triggered = 0, -1, False
    if start is not None:
        hits = matching(entries, events, start, port_bits)
        if not hits:
            return 0, 0, False, False
        after, triggered = hits[0], True
        begin = max((k for k, entry in enumerate(entries[:max(0, after - before) + 1]) if entry[2]), default=0)
    stops = [k for k in matching(entries, events, stop, port_bits) if k > after]
    if not stops:
        return begin, len(entries), triggered, False
    behind = [k for k, entry in enumerate(entries) if entry[2] and k > stops[0]]
    return begin, behind[0] if behind else len(entries), triggered, bool(behind)


def play(seed, entries, events, start, stop, before, gives, takes, port_bits=4):
    rng = random.Random(seed)
    dut = Trigger(Geometry(nodes=NODES, sinks=(Sink.EXTENDED,), port_bits=port_bits))
    out, thrown, given = [], [0], [0]
    begin, end, triggered, stopped = expected(entries, events, start, stop, before, port_bits)

    def item(ctx, port):
        return tuple(ctx.get(getattr(port, name)) for name in FIELDS)

    async def give(ctx):
        ctx.set(dut.events, events)
        ctx.set(dut.before, before)
        for port, match in ((dut.start, start), (dut.stop, stop)):
            for name, value in (match or {}).items():
                ctx.set(getattr(port, name), value)
            ctx.set(port.on, match is not None)
        for _ in range(5):
            await ctx.tick()
        for entry in entries:
            while rng.random() >= gives:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            for name, value in zip(FIELDS, entry, strict=True):
                ctx.set(getattr(dut.i.p, name), value)
            await ctx.tick().until(dut.i.ready)
            given[0] += 1
        ctx.set(dut.i.valid, 0)
        idle = 0
        while idle < 30:
            idle = 0 if ctx.get(dut.busy) else idle + 1
            await ctx.tick()
        assert out == entries[begin:end]
        waiting = start is not None and not triggered
        discarded = [entry for k, entry in enumerate(entries) if not begin <= k < end]
        if waiting:
            # What is kept: the windows that may be wanted yet.
            assert ctx.get(dut.holds)
            limit = max((k for k, e in enumerate(entries[:max(0, len(entries) - before) + 1]) if e[2]), default=0)
            discarded = entries[:limit]
        assert thrown[0] == sum(entry[4] for entry in discarded)
        assert ctx.get(dut.triggered) == triggered
        assert ctx.get(dut.stopped) == stopped
        ctx.set(dut.finish, 1)
        for _ in range(1100):
            await ctx.tick()
        assert not ctx.get(dut.holds)
        assert thrown[0] == sum(entry[4] for k, entry in enumerate(entries) if not begin <= k < end)
        assert out == entries[begin:end]

    async def take(ctx):
        inside = 0
        while True:
            # Where all passes, what has been given and not taken is inside; `holds` is two registers behind.
            inside = inside + 1 if start is stop is None and given[0] > len(out) else 0
            assert inside <= 2 or ctx.get(dut.holds)
            thrown[0] += ctx.get(dut.thrown).bit_count()
            ready = rng.random() < takes
            ctx.set(dut.o.ready, ready)
            if ready and ctx.get(dut.o.valid):
                assert ctx.get(dut.busy)
                out.append(item(ctx, dut.o.p))
            await ctx.tick()

    from amaranth.sim import Simulator

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return len(entries) - (end - begin), begin


def match(rng, event, port_bits=4):
    byte = event or port_bits == 8
    mask = rng.choice([0xff, 0xf0, 0x3f]) if byte else rng.choice([0xf, 0x7, 0xff])
    return {"value": rng.getrandbits(8) & (mask if byte else mask & 15), "value_mask": mask,
            "node": rng.randrange(NODES), "node_mask": rng.choice([0, 0, 0x1f, 3]), "event": event}


@pytest.mark.parametrize(("seed", "port_bits"), [*((seed, 4) for seed in range(8)), *((seed, 8) for seed in (1, 3, 4))])
def test_slices(seed, port_bits):
    rng = random.Random(seed)
    events = EVENTS if seed % 2 else 0
    entries = windows(rng, rng.randint(20, 500), events, port_bits)
    start = match(rng, bool(events and rng.random() < 0.5), port_bits) if seed % 4 != 3 else None
    stop = match(rng, bool(events and rng.random() < 0.5), port_bits) if seed % 3 else None
    play(seed, entries, events, start, stop, rng.choice([0, 1, 2, 7, 40, PRETRIGGER_MAX]),
         rng.choice([0.3, 1.0]), rng.choice([0.3, 0.9, 1.0]), port_bits)


@pytest.mark.parametrize("before", [0, 1, 5, 100])
def test_far_behind(before):
    """The start comes late: windows have been thrown away before it, as many as there may be."""
    rng = random.Random(before)
    entries = [(n, 1, a, b, 1, t) for n, _, a, b, _, t in windows(rng, 700, 0)]
    at = next(k for k in range(900, 1000) if not entries[k][2])
    entries[at] = (entries[at][0], 9, *entries[at][2:])
    start = {"value": 9, "value_mask": 15, "node": 0, "node_mask": 0, "event": 0}
    thrown, begin = play(before, entries, 0, start, None, before, 1.0, 1.0)
    assert at - before - NODES < begin <= at - before
    assert thrown


def test_everything_passes_without_triggers():
    rng = random.Random(3)
    entries = windows(rng, 300, EVENTS)
    assert play(3, entries, EVENTS, None, None, 0, 0.9, 0.8) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_seeds(seed):
    test_slices(seed, 4)
    test_slices(seed, 8)
