"""Trigger: all items whose windows are from a start's to a stop's, late ones too, and every other item counted."""

import random
from itertools import pairwise

import pytest
from amaranth.sim import Simulator
from hypermon.hdl.layout import PRETRIGGER_MAX, Geometry, Sink
from hypermon.hdl.trigger.trigger import Trigger

from ..harness.resets import same_as_fresh

NODES = 5
EVENTS = 0b10010
FIELDS = ("node", "nibble", "first", "last", "begins", "time", "late")
#: Stamps are far apart at times: both halves of them count.
FAR = 1 << 32


def item(rng, node, events, port_bits):
    """Its nibbles: node, nibble, whether it begins."""
    length = rng.randint(1, 3) if events >> node & 1 else 0
    values = 1 << port_bits
    # The length is in the lower four bits.
    nibbles = [length or rng.randrange(values), *(rng.randrange(values) for _ in range(8 // port_bits * length))]
    if length and port_bits == 8:
        nibbles[0] |= rng.randrange(16) << 4
    return [(node, nibble, k == 0) for k, nibble in enumerate(nibbles)]


def window(rows, time, late=False):
    return [(node, nibble, k == 0, k == len(rows) - 1, begins, time, late)
            for k, (node, nibble, begins) in enumerate(rows)]


def windows(rng, count, events, port_bits=4, slow=0.0, far=0.0):
    """Nibbles of so many windows, as the expander gives them. ``slow``: how often an item of an event is passed over;
    ``far``: how often the next window's stamp is far away."""
    entries, passed, time = [], {}, rng.randrange(5)
    for _ in range(count):
        time += FAR * rng.randint(1, 3) + rng.randint(-3, 3) if rng.random() < far else rng.randint(1, 3)
        members = [n for n in range(NODES) if n not in passed]
        members = sorted(rng.sample(members, min(len(members), 1 if rng.random() < 0.6 else rng.randint(1, NODES))))
        rows = []
        for node in members:
            if events >> node & 1 and rng.random() < slow:
                passed[node] = window(item(rng, node, events, port_bits), time, late=True)
            else:
                rows += item(rng, node, events, port_bits)
        entries += window(rows, time)
        for node in [node for node in passed if rng.random() < 0.2]:
            entries += passed.pop(node)
    return entries + [entry for late in passed.values() for entry in late]


def matching(entries, events, match, port_bits):
    """Which entries decide that an item matches: the first nibble, or the third of an event, or its second byte."""
    id_place = 8 // port_bits
    found, place = [], 0
    for k, (node, nibble, _, _, begins, _, _) in enumerate(entries):
        place = 0 if begins else place + 1
        if match is None or match["event"] != bool(events >> node & 1) or place != (match["event"] and id_place):
            continue
        value = entries[k - 1][1] | nibble << 4 if match["event"] and port_bits == 4 else nibble
        if not (value ^ match["value"]) & match["value_mask"] and not (node ^ match["node"]) & match["node_mask"]:
            found.append(k)
    return found


def expected(entries, events, start, stop, before, port_bits):
    """What passes, of what is given; whether start and stop have been found; the last window."""
    begin, after, first, since = 0, -1, 0, 0
    if start is not None:
        hits = matching(entries, events, start, port_bits)
        if not hits:
            return [], False, False, None
        after = hits[0]
        first = since = entries[after][5]
        begin = max((k for k, entry in enumerate(entries[:max(0, after - before) + 1]) if entry[2]), default=0)
        first = min([first, *(entry[5] for entry in entries[begin:] if not entry[6])])
    stops = [k for k in matching(entries, events, stop, port_bits)
             if k > after and not (entries[k][6] and entries[k][5] < since)]
    kept = [k for k, entry in enumerate(entries) if k >= begin and entry[5] >= first]
    if not stops:
        return [entries[k] for k in kept], start is not None, False, None
    last = entries[stops[0]][5]
    over = next((k for k, entry in enumerate(entries) if k > stops[0] and entry[2] and not entry[6]), len(entries))
    begins = next((k for k, entry in enumerate(entries) if k > stops[0] and entry[2]), len(entries))
    kept = [k for k in kept if (k < begins or entries[k][5] <= last if entries[k][6] else k < over)]
    return [entries[k] for k in kept], start is not None, over < len(entries), last


def play(seed, entries, events, start, stop, before, gives, takes, port_bits=4):
    """Gives all entries, and compares; what was thrown away, nibbles."""
    rng = random.Random(seed)
    dut = Trigger(Geometry(nodes=NODES, sinks=(Sink.EXTENDED,), port_bits=port_bits))
    out, thrown, given = [], [0], [0]
    passes, triggered, stopped, last = expected(entries, events, start, stop, before, port_bits)
    items = sum(entry[4] for entry in entries)
    late = [(k, entry[0], entry[5]) for k, entry in enumerate(entries) if entry[6] and entry[4]]

    def awaited(k):
        """Nodes whose item is passed over when the entry comes, and not there yet."""
        now = max((entry[5] for entry in entries[:k + 1]), default=-1)
        return sum({1 << n for at, n, time in late if k < at and time <= now})

    async def give(ctx):
        ctx.set(dut.events, events)
        ctx.set(dut.before, before)
        for port, match in ((dut.start, start), (dut.stop, stop)):
            for name, value in (match or {}).items():
                ctx.set(getattr(port, name), value)
            ctx.set(port.on, match is not None)
        for _ in range(5):
            await ctx.tick()
        for k, entry in enumerate(entries):
            ctx.set(dut.awaited, awaited(k))
            while rng.random() >= gives:
                ctx.set(dut.i.valid, 0)
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            for name, value in zip(FIELDS, entry, strict=True):
                ctx.set(getattr(dut.i.p, name), value)
            await ctx.tick().until(dut.i.ready)
            given[0] += 1
            # A stop is complete when what was passed over before its window's end has come; but for some clocks.
            if last is not None and ctx.get(dut.stopped):
                assert not any(time <= last for at, _, time in late if at > k + 6), "stopped too early"
        ctx.set(dut.i.valid, 0)
        idle = 0
        while idle < 30:
            idle = 0 if ctx.get(dut.busy) else idle + 1
            await ctx.tick()
        assert out == passes
        if start is not None and not triggered:
            # What is kept: the windows that may be wanted yet.
            assert ctx.get(dut.holds)
            limit = max((k for k, e in enumerate(entries[:max(0, len(entries) - before) + 1]) if e[2]), default=0)
            assert thrown[0] == sum(entry[4] for entry in entries[:limit])
        else:
            assert thrown[0] == items - sum(entry[4] for entry in out)
        assert ctx.get(dut.triggered) == triggered
        assert ctx.get(dut.stopped) == stopped
        ctx.set(dut.finish, 1)
        clocks, empty_for = 0, 0
        while empty_for < 40:
            empty_for = 0 if ctx.get(dut.holds) else empty_for + 1
            clocks += 1
            assert clocks < 1100, "not all is thrown away"
            await ctx.tick()
        assert thrown[0] == items - sum(entry[4] for entry in out)
        assert out == passes

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
                out.append(tuple(ctx.get(getattr(dut.o.p, name)) for name in FIELDS))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(give)
    simulator.add_testbench(take, background=True)
    simulator.run()
    return len(entries) - len(passes)


def match(rng, event, port_bits=4, mask=None):
    byte = event or port_bits == 8
    mask = mask or (rng.choice([0xff, 0xf0, 0x3f]) if byte else rng.choice([0xf, 0x7, 0xff]))
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


@pytest.mark.parametrize(("seed", "port_bits"), [*((seed, 4) for seed in range(6)), (6, 8), (7, 8)])
def test_late_items(seed, port_bits):
    """Slow nodes: their items come after those of later windows, before and after start and stop, and make them."""
    rng = random.Random(seed)
    events = rng.choice([0b11110, EVENTS, 0b11111])
    entries = windows(rng, rng.randint(20, 300), events, port_bits, rng.choice([0.2, 0.6]), rng.choice([0, 0.1]))
    matches = [None, *(match(rng, rng.random() < 0.6, port_bits, rng.choice([3, 0xf])) for _ in range(6))]
    start, stop = rng.choice(matches[1:] if seed % 3 else matches), rng.choice(matches)
    play(seed, entries, events, start, stop, rng.choice([0, 0, 1, 3, 10, 100]),
         rng.choice([0.3, 1.0]), rng.choice([0.3, 0.9, 1.0]), port_bits)


def rows(*items):
    """Windows of one item each: node (0 to 2 write nibbles, 3 and 4 events), value or id, stamp, whether it is late."""
    return [entry for node, value, time, late in items for entry in window(
        [(node, nibble, k == 0) for k, nibble in enumerate([1, value & 15, value >> 4] if node > 2 else [value])],
        time, late)]


START, STOP = ({"value": value, "value_mask": 15, "node": 0, "node_mask": 0, "event": 0} for value in (9, 5))
STOP_EVENT, START_EVENT = ({**wanted, "value": 0xab, "value_mask": 255, "event": 1} for wanted in (STOP, START))


@pytest.mark.parametrize(("start", "stop", "before", "items"), [
    # An item from before the stop and one of its window belong to the capture, one from after it does not.
    (None, STOP, 0, ["yes", (0, 1, 10, 0), (0, 5, 20, 0), "no", (1, 1, 30, 0), "yes", (3, 1, 5, 1), (4, 1, 20, 1),
                     "no", (3, 2, 21, 1), (0, 1, 40, 0), (4, 7, 40, 1)]),
    # Likewise one of the start's window, one from after it, and not one from before it.
    (START, None, 0, ["no", (0, 1, 10, 0), "yes", (0, 9, 20, 0), "no", (3, 1, 19, 1), "yes", (4, 1, 20, 1),
                      (3, 1, 21, 1)]),
    # What counts is the first window that is kept before the start.
    (START, None, 1, ["no", (0, 1, 10, 0), "yes", (0, 2, 15, 0), (0, 9, 20, 0), "no", (3, 1, 14, 1), "yes",
                      (4, 1, 15, 1), (3, 1, 16, 1)]),
    # A late item starts: its own window is the first, but what came meanwhile has been thrown away.
    (START_EVENT, None, 0, ["no", (0, 1, 30, 0), "yes", (3, 0xab, 20, 1), "no", (4, 1, 19, 1), "yes", (4, 2, 20, 1),
                            (0, 1, 40, 0)]),
    # With nibbles before it, of a window before its own, or after.
    (START_EVENT, None, 3, ["no", (0, 0, 29, 0), "yes", (0, 1, 30, 0), (3, 0xab, 35, 1), "no", (4, 1, 29, 1),
                            "yes", (4, 1, 30, 1)]),
    (START_EVENT, None, 3, ["no", (0, 0, 29, 0), "yes", (0, 1, 30, 0), (3, 0xab, 20, 1), "no", (4, 1, 19, 1),
                            "yes", (4, 1, 20, 1)]),
    # The nibble so far before the start is of a late item: the next window is the first.
    (START, None, 1, ["no", (0, 1, 10, 0), (3, 1, 5, 1), "yes", (0, 9, 20, 0), "no", (4, 1, 19, 1)]),
    # A late item stops: its own window is the last, but what had come by then stays.
    (None, STOP_EVENT, 0, ["yes", (0, 1, 10, 0), (0, 1, 30, 0), (3, 0xab, 20, 1), (4, 1, 20, 1), "no", (4, 1, 21, 1),
                           (0, 1, 40, 0), "yes", (4, 1, 19, 1)]),
    # It does not stop if it is from before the start.
    (START, STOP_EVENT, 0, ["no", (0, 1, 10, 0), "yes", (0, 9, 20, 0), "no", (3, 0xab, 19, 1), "yes", (0, 1, 30, 0),
                            (4, 0xab, 20, 1), "no", (3, 1, 21, 1), (0, 1, 40, 0)]),
    # Not even if it is kept.
    (START, STOP_EVENT, 1, ["no", (0, 0, 5, 0), "yes", (0, 1, 10, 0), (0, 9, 20, 0), (3, 0xab, 15, 1), (0, 1, 30, 0),
                            (4, 0xab, 20, 1), "no", (3, 1, 21, 1), (0, 1, 40, 0)]),
])
@pytest.mark.parametrize("far", [1, FAR])
def test_by_stamps(start, stop, before, items, far):
    """What passes is marked by hand: "yes" before what does, "no" before what does not."""
    given, passing, passes = [], [], None
    for entry in items:
        if isinstance(entry, str):
            passes = entry == "yes"
            continue
        node, value, time, late = entry
        these = rows((node, value, time * far, late))
        given += these
        passing += these if passes else []
    assert expected(given, 0b11000, start, stop, before, 4)[0] == passing
    for gives, takes in ((1.0, 1.0), (0.3, 1.0), (1.0, 0.3)):
        play(1, given, 0b11000, start, stop, before, gives, takes)


@pytest.mark.parametrize("before", [0, 1, 5, 100])
def test_far_behind(before):
    """The start comes late: windows have been thrown away before it, as many as there may be."""
    rng = random.Random(before)
    entries = [(n, 1, *rest) for n, _, *rest in windows(rng, 700, 0)]
    at = next(k for k in range(900, 1000) if not entries[k][2])
    entries[at] = (entries[at][0], 9, *entries[at][2:])
    begin = at + 1 - len(expected(entries[:at + 1], 0, START, None, before, 4)[0])
    assert at - before - NODES < begin <= at - before
    assert play(before, entries, 0, START, None, before, 1.0, 1.0) == begin


@pytest.mark.parametrize("slow", [0, 0.5])
def test_everything_passes_without_triggers(slow):
    rng = random.Random(3)
    entries = windows(rng, 300, EVENTS, slow=slow)
    assert any(entry[6] for entry in entries) == bool(slow)
    assert all(a[5] < b[5] for a, b in pairwise(e for e in entries if e[2] and not e[6]))
    assert play(3, entries, EVENTS, None, None, 0, 0.9, 0.8) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_seeds(seed):
    for port_bits in (4, 8):
        test_slices(seed, port_bits)
        test_late_items(seed, port_bits)


def test_reset():
    """With a start, a stop, both or none."""
    def match(rng):
        return rng.getrandbits(1) << 31 | rng.randrange(8) << 8 | rng.randrange(8)

    same_as_fresh(lambda: Trigger(Geometry.extended(2)), {"finish": lambda rng: rng.random() < 0.01}, settings={
        "start": match, "stop": match, "before": lambda rng: rng.randrange(20),
        "events": lambda rng: rng.getrandbits(2)})
