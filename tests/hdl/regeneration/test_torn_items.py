"""A board's intake behind a line with wrong bits: each item is a twin's, whole or cut short, and none is put together
from parts of two."""

import functools
import heapq
import random

import cocotb
import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module
from hypermon.hdl.input.intake import Intake
from hypermon.hdl.layout import Geometry, Sink
from hypermon.hdl.regeneration.links import Links
from hypermon.hdl.regeneration.receiver import Receiver
from hypermon.hdl.regeneration.wired_boards import WiredBoards

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness import runner
from ..harness.stage import run
from .models import link_model
from .models.framed import FramedPair
from .models.pair import Line
from .test_transmitter import Writers

SEARCH, LATE, CLOCKS = 40 * 128, 4109, 20_000
#: Four nodes in event mode, two in word mode, two in nibble mode, as the writers write.
EVENTS, WORDS = 0x0f, 0x30


class Items:
    """What an intake offers, if everything is admitted: for each node start and nibbles of its items, and whether they
    were cut short."""

    def __init__(self, intake):
        self.intake, self.found = intake, [[] for _ in range(8)]

    def __call__(self, ctx, clock):
        offer = self.intake.items
        start = ctx.get(offer.start)
        ctx.set(offer.admit, start)
        push, cut, nibbles = ctx.get(offer.push), ctx.get(offer.cut), ctx.get(offer.nibble)
        for n in range(8):
            if start >> n & 1:
                self.found[n].append([clock, [], False])
            if push >> n & 1:
                if cut >> n & 1:
                    self.found[n][-1][2] = True
                else:
                    self.found[n][-1][1].append(nibbles >> 4 * n & 15)


def test_no_item_is_made_of_two():
    rng = random.Random(5)
    m = Module()
    m.domains.spine = ClockDomain()
    m.d.comb += ClockSignal("spine").eq(ClockSignal())
    m.submodules.wired = wired = WiredBoards(1)
    m.submodules.links = links = Links(1)
    m.submodules.linked = linked = Intake(Geometry(8, sinks=(Sink.EXTENDED,), links=1))
    m.submodules.twin = twin = Intake(Geometry(8, sinks=(Sink.EXTENDED,)))
    m.d.comb += [
        links.samples.eq(wired.samples),
        *(getattr(linked.levels, name).eq(getattr(links, name)) for name in linked.levels.signature.members),
    ]
    mine, its = Items(linked), Items(twin)
    writers = Writers(6, lambda clock: 25 if clock < CLOCKS - 5000 else 0)

    async def bench(ctx):
        for side in (linked.settings, twin.settings):
            for name, value in (("rising", 255), ("falling", 255), ("events", EVENTS), ("words", WORDS),
                                ("timeout", 1 << 30)):
                ctx.set(getattr(side, name), value)
        for name, value in (("rising", 255), ("falling", 255), ("events", EVENTS), ("words", WORDS)):
            ctx.set(getattr(wired, name), value)
        for side in (linked, twin):
            ctx.set(side.time.window.live, 255)
        await ctx.tick().repeat(SEARCH)
        for clock in range(CLOCKS):
            strobe, data = writers(clock)
            ctx.set(wired.strobe, strobe)
            ctx.set(wired.data, data)
            ctx.set(twin.levels.strobe, strobe)
            ctx.set(twin.levels.data, data)
            # One frame in four has a wrong bit.
            ctx.set(wired.wrong, 1 if rng.random() < 1 / 512 else 0)
            mine(ctx, clock)
            its(ctx, clock)
            await ctx.tick()

    run(m, bench, clocks=SEARCH + CLOCKS + 100)
    cut = lost = 0
    for n in range(8):
        due = {clock + LATE: nibbles for clock, nibbles, _ in its.found[n]}
        for clock, nibbles, torn in mine.found[n][:-1]:
            whole = due.pop(clock)
            assert nibbles == whole[:len(nibbles)]
            assert torn == (len(nibbles) < len(whole))
            cut += torn
        lost += len(due)
        assert len(mine.found[n]) > 10
    assert min(cut, lost) > 20


@pytest.mark.parametrize("seed", range(3))
def test_locks_in_the_middle_of_items(seed):
    """One frame is delivered and no other one. Nothing in it but its nibbles tells that the transmitter knows which of
    them begin an item; each has this beside it when it is replayed."""
    rng = random.Random(seed)
    frames = [[], []]
    for data in frames:
        while len(data) < 26:
            step = rng.randrange(1, 64) | 64 * rng.randrange(2)
            data += [0x80 | rng.getrandbits(7), step]
        data.append(0x80 | rng.getrandbits(7))
    bits = [0] * 600
    for data in frames:
        bits += link_model.frame(2000, 0, data)
    dut = Receiver()
    due = [more for *_, more in link_model.nibbles(0, 2000, frames[1])]
    seen = []

    async def bench(ctx):
        ctx.set(dut.toggles, 255)
        before = 0
        for clock in range(len(bits) // 2 + 4400):
            pair = bits[2 * clock:2 * clock + 2] or (0, 0)
            ctx.set(dut.samples, 3 * pair[0] | 12 * pair[1])
            await ctx.tick()
            strobe, further, torn = ctx.get(dut.strobe), ctx.get(dut.further), ctx.get(dut.torn)
            seen.extend((further >> n & 1, torn >> n & 1) for n in range(8) if (strobe ^ before) >> n & 1)
            before = strobe

    run(dut, bench, clocks=6000)
    assert [further for further, _ in seen] == due
    assert all(torn or further for further, torn in seen)
    assert set(due) == {0, 1}


class Nodes:
    """Eight nodes that write items of one to eleven nibbles, each nibble ``pace`` clocks on average after the one
    before; both edges are active, and data are there a clock before."""

    def __init__(self, rng, begin, pace):
        self.rng, self.pace, self.stopped = rng, pace, False
        self.strobe, self.data = 0, 0
        self.left = [[] for _ in range(8)]
        self.due = [(begin + 11 * n, n, False) for n in range(8)]

    def __call__(self, clock):
        while self.due[0][0] <= clock:
            at, n, ready = self.due[0]
            if not ready:
                if not self.left[n] and not self.stopped:
                    length = self.rng.randrange(1, 6)
                    more = 0 if n >= 6 else 7 if n >= 4 else 2 * length
                    first = length if n < 4 else self.rng.randrange(16)
                    self.left[n] = [first, *(self.rng.randrange(16) for _ in range(more))]
                if self.left[n]:
                    self.data = self.data & ~(15 << 4 * n) | self.left[n].pop(0) << 4 * n
                    at, ready = at + 1, True
                else:
                    at += 1000
            else:
                self.strobe ^= 1 << n
                at, ready = at + 1 + self.rng.randrange(2 * self.pace), False
            heapq.heapreplace(self.due, (at, n, ready))
        return self.strobe, self.data


@cocotb.test()
async def wrong_bits(dut):
    """Each item is its twin's, whole or cut short, at its time; every other one is counted, for its node."""
    stage, line = Stage(dut), Line(rng("line"), 17.7)
    superframe = 288 * 128
    nodes = Nodes(random.Random(rng().random()), 2 * superframe, CASE["pace"])
    await stage.start(strobe=0, data=0, events=EVENTS, words=WORDS, samples=0)
    sides = {"mine": [{} for _ in range(8)], "its": [{} for _ in range(8)]}
    latest, refused, seen, torn = {"mine": [0] * 8, "its": [0] * 8}, [0] * 8, 0, set()

    async def clocks(count):
        nonlocal seen
        for _ in range(count):
            strobe, data = nodes(stage.now)
            stage.put(strobe=strobe, data=data, samples=line(stage.get("bits")))
            await stage.clock()
            if not stage.get("stirs"):
                continue
            refusing = stage.get("refusing")
            for n in range(8):
                refused[n] += refusing >> n & 1
            for name, found in sides.items():
                value = stage.get(name)
                for n in range(8):
                    if value >> n & 1:
                        latest[name][n] = stage.now
                        found[n][stage.now] = []
                        seen += name == "its"
                    if value >> 8 + n & 1:
                        if value >> 16 + n & 1:
                            torn.add((n, latest[name][n]))
                        else:
                            found[n][latest[name][n]].append(value >> 24 + 4 * n & 15)

    await clocks(2 * superframe)
    line.errors = CASE["errors"]
    line.until = line._next()
    while seen < CASE["items"]:
        await clocks(5000)
    nodes.stopped = True
    line.errors, line.until = 0, 1 << 60
    await clocks(4 * superframe)
    # The cable and the pads, which are not the same here, make a constant; nothing is lost at first.
    late = min(sides["mine"][7]) - min(sides["its"][7])
    assert abs(late - LATE) < 16
    cut = lost = 0
    for n in range(8):
        due, last = dict(sides["its"][n]), max(sides["mine"][n])
        for clock, nibbles in sides["mine"][n].items():
            whole = due.pop(clock - late)
            assert nibbles == whole[:len(nibbles)], f"node {n}: an item that was not written"
            if clock != last:
                assert ((n, clock) in torn) == (len(nibbles) < len(whole))
                cut += len(nibbles) < len(whole)
        told = [stage.get(name) >> 32 * n & 0xffffffff for name in ("refused", "lost")]
        assert told[0] == refused[n]
        assert len(due) == sum(told), f"node {n}: offered is not delivered and lost"
        lost += told[1]
    assert min(cut, lost) > CASE["items"] // 1000
    cocotb.log.info(f"{seen} items, {line.wrong} wrong bits, {stage.get('bad')} frames not delivered, "
                    f"{cut} items cut short, {lost} lost on the line, {sum(refused)} refused, none wrong")


@functools.cache
def pair():
    return runner.component(FramedPair())


@pytest.mark.parametrize("pace", [90, 30])
def test_wrong_bits(pace):
    """Also with more than the line carries."""
    runner.run(pair(), __name__, "wrong_bits", pace, errors=1e-4, items=5000, pace=pace)


@pytest.mark.slow
def test_wrong_bits_in_a_hundred_thousand_items():
    runner.run(pair(), __name__, "wrong_bits", 3, errors=1e-4, items=100_000, pace=90)
