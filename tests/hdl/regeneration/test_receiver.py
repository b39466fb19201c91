"""Receiver, with a transmitter at the other end of a cable: ports come back as they were, all of them equally late."""

import functools
from collections import defaultdict

import cocotb
import pytest

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run
from .models.pair import Line, Pair
from .test_transmitter import Nodes

#: Clocks of a frame, and of a superframe.
FRAME, SUPERFRAME = 128, 128 * 288
#: Clocks in which the line is found.
SEARCH = 100 * FRAME


class Bench:
    """Runs the pair, clock by clock, and keeps what came out."""

    def __init__(self, dut, line, nodes, both=0):
        self.stage, self.line, self.nodes, self.both = Stage(dut), line, nodes, both
        self.twins, self.again, self.losses = [], [], []
        self.refused, self.bits, self.anew = [0] * 8, 0, 0

    async def start(self):
        await self.stage.start(strobe=0, data=0, both=self.both, samples=0, second=0)

    def _items(self, mask, nibbles, at, into):
        into += [(at, n, nibbles >> 4 * n & 15) for n in range(8) if mask >> n & 1]

    async def clocks(self, count):
        stage, line = self.stage, self.line
        for _ in range(count):
            strobe, data = self.nodes(stage.now)
            stage.put(strobe=strobe, data=data, samples=line(stage.get("bits")))
            await stage.clock()
            if mask := stage.get("twin"):
                self._items(mask, stage.get("twin_nibble"), stage.now, self.twins)
            if mask := stage.get("again"):
                self._items(mask, stage.get("again_nibble"), stage.now, self.again)
            if mask := stage.get("refusing"):
                for n in range(8):
                    self.refused[n] += mask >> n & 1
            self.anew += stage.get("anew")
            if stage.get("loss"):
                self.losses.append({name: stage.get(f"loss_{name}")
                                    for name in ("node", "line", "count", "first", "last")})

    def counts(self, name):
        value = self.stage.get(name)
        return [value >> 32 * n & 0xffffffff for n in range(8)]

    def compare(self, latency=None, within=0):
        """Every item that came back is one of the twins', of its node, with its nibble, and as late as all of them.
        Returns how late, and how many of each node did not come back. Gaps are found by the items themselves."""
        assert self.again
        if latency is None:
            twins, some = set(self.twins), self.again[:30]
            latency = next(late for late in range(4096, 4200)
                           if all(any((at - late + off, n, nibble) in twins for off in range(-within, within + 1))
                                  for at, n, nibble in some))
        due = {(at + latency, n): nibble for at, n, nibble in self.twins}
        for at, n, nibble in self.again:
            found = [at + off for off in range(-within, within + 1) if (at + off, n) in due]
            assert found, f"node {n} was not written to at {at - latency}"
            assert due.pop((found[0], n)) == nibble
        end = self.stage.now - 2
        missing = defaultdict(list)
        for (at, n) in due:
            if at <= end:
                missing[n].append(at - latency)
        return latency, missing


@cocotb.test()
async def comes_back(dut):
    """Some rates, some cables; nothing is refused, and every item comes back to the clock."""
    choose = rng()
    rate = CASE["rate"]
    bench = Bench(dut, Line(rng("line"), CASE["delay"], CASE["jitter"]), None, CASE["both"])
    source = Nodes(choose.random(), lambda clock, n: rate if clock > SEARCH else 0)
    bench.nodes = source
    await bench.start()
    await bench.clocks(SEARCH)
    assert bench.stage.get("locked")
    while len(bench.twins) < CASE["events"]:
        await bench.clocks(1000)
    source.rate = lambda clock, n: 0
    await bench.clocks(4300)
    _, missing = bench.compare()
    assert not missing
    assert not any(bench.refused)
    assert not any(bench.counts("lost"))
    assert not bench.losses
    assert bench.stage.get("bad") == 0


@cocotb.test()
async def keeps_up(dut):
    """Ten million items per second from eight nodes, two and a half million from one, each at its own steady rate."""
    period = [10 * 8 if CASE["nodes"] == 8 else 40] * 8
    phases = [rng().randrange(80) for _ in range(8)]

    def steady(clock):
        strobe = sum(((clock + phases[n]) % period[n] < period[n] // 2) << n for n in range(CASE["nodes"]))
        return strobe, ((clock // 7 * 0x12345679) & 0xffffffff if clock % 10 == 5 else steady.data) if False else \
            sum((((clock + phases[n] + period[n] // 4) // period[n] * (n + 3)) & 15) << 4 * n for n in range(8))

    steady.data = 0
    bench = Bench(dut, Line(rng("line"), 21.3), steady)
    await bench.start()
    await bench.clocks(SEARCH)
    begin = len(bench.twins)
    await bench.clocks(CASE["clocks"])
    assert len(bench.twins) - begin >= CASE["clocks"] * (0.0999 if CASE["nodes"] == 8 else 0.02499)
    assert not any(bench.refused)
    bench.twins = bench.twins[begin:]
    bench.again = [item for item in bench.again if item[0] > SEARCH + 4600]
    _, missing = bench.compare()
    assert all(at < SEARCH + 500 for ats in missing.values() for at in ats)


async def settled(bench, source):
    """Nothing is written until everything has come back, and all counts have been told twice."""
    source.rate = lambda clock, n: 0
    await bench.clocks(3 * SUPERFRAME if bench.line.errors == 0 else 10 * SUPERFRAME)


def contains(loss, ats):
    """A loss's place has all the items: refusals and frames are told a little later than the strobe."""
    return all(loss["first"] - 4 * FRAME - 3000 <= at <= loss["last"] + FRAME for at in ats)


@cocotb.test()
async def overload(dut):
    """More than the line carries: what is refused is counted for each node and placed, what is sent comes back."""
    source = Nodes(rng().random(), lambda clock, n: 0)
    bench = Bench(dut, Line(rng("line"), 33.0), source)
    await bench.start()
    # Frames that failed before the first lock are out of all places two marks after it.
    await bench.clocks(3 * SUPERFRAME)
    assert not bench.losses
    begin = bench.stage.now
    source.rate = lambda clock, n: 0.05 if (clock - begin) % 4000 < 1500 else 0.0005
    await bench.clocks(20_000)
    await settled(bench, source)
    _, missing = bench.compare()
    assert sum(bench.refused) > 1000
    assert [len(missing[n]) for n in range(8)] == bench.refused == bench.counts("refused")
    assert not any(bench.counts("lost"))
    for n in range(8):
        mine = [loss for loss in bench.losses if loss["node"] == n]
        assert sum(loss["count"] for loss in mine) == bench.refused[n]
        assert all(not loss["line"] for loss in mine)
        assert all(any(contains(loss, [at]) for loss in mine) for at in missing[n])
        assert all(begin - 500 <= loss["first"] <= loss["last"] <= begin + 26_000 for loss in mine)


@cocotb.test()
async def bit_errors(dut):
    """One bit in ten thousand is wrong: no item comes back wrong, and all that do not are counted."""
    source = Nodes(rng().random(), lambda clock, n: 0)
    bench = Bench(dut, Line(rng("line"), 17.7, errors=CASE["errors"]), source)
    await bench.start()
    await bench.clocks(2 * SUPERFRAME)
    bench.again.clear()
    source.rate = lambda clock, n: 0.008
    while len(bench.twins) < CASE["events"]:
        await bench.clocks(1000)
    bench.line.errors, bench.line.until = 0, 1 << 60
    await settled(bench, source)
    _, missing = bench.compare()
    lost = [len(missing[n]) for n in range(8)]
    assert not any(bench.refused)
    assert sum(lost) > 0
    assert lost == bench.counts("lost")
    assert bench.line.wrong >= bench.stage.get("bad") > bench.line.wrong // 8
    cocotb.log.info(f"{len(bench.twins)} items, {bench.line.wrong} wrong bits, {bench.stage.get('bad')} bad frames, "
                    f"{sum(lost)} items lost, none wrong")


@cocotb.test()
async def pulled(dut):
    """The cable is pulled and put back, also with another length: the link goes on, and what was lost is placed."""
    source = Nodes(rng().random(), lambda clock, n: 0.004 if clock > 2 * SUPERFRAME else 0)
    line = Line(rng("line"), 17.7)
    bench = Bench(dut, line, source)
    await bench.start()
    # Frames that failed before the first lock are out of all places two marks after it.
    await bench.clocks(3 * SUPERFRAME + 3000)
    for level in ("noise", 0, 1):
        out = bench.stage.now
        line.pulled = level
        await bench.clocks(CASE["clocks"])
        assert not bench.stage.get("locked")
        line.pulled, line.delay = None, rng(str(level)).choice([16.1, 17.7, 18.9])
        await bench.clocks(SEARCH)
        assert bench.stage.get("locked")
        back = bench.stage.now
        await bench.clocks(3 * SUPERFRAME)
        recent = [loss for loss in bench.losses if loss["first"] > out - FRAME]
        assert recent
        assert all(loss["line"] and out - FRAME <= loss["first"] and loss["last"] <= back + FRAME for loss in recent)
    await settled(bench, source)
    _, missing = bench.compare(within=1)
    lost = [len(missing[n]) for n in range(8)]
    assert min(lost) > 0
    assert lost == bench.counts("lost")
    for n in range(8):
        assert sum(loss["count"] for loss in bench.losses if loss["node"] == n) == lost[n]


@cocotb.test()
async def restarted(dut):
    """The transmitter begins anew, with a pause or without one: what each of the two refused is in losses, and counts
    of one are never subtracted from those of the other."""
    source = Nodes(rng().random(), lambda clock, n: 0)
    line = Line(rng("line"), CASE["delay"], 0.4)
    bench = Bench(dut, line, source)
    await bench.start()

    async def phase(rate, clocks):
        source.rate = lambda clock, n: rate
        before = list(bench.refused)
        await bench.clocks(clocks)
        await settled(bench, source)
        return [b - a for a, b in zip(before, bench.refused, strict=True)]

    def told(line):
        return [sum(loss["count"] for loss in bench.losses if (loss["node"], loss["line"]) == (n, line))
                for n in range(8)]

    first = await phase(*CASE["before"])
    assert told(0) == first
    assert bench.anew == 0
    for kept in (bench.losses, bench.twins, bench.again):
        kept.clear()
    line.pulled = CASE["pulled"]
    bench.stage.put(second=1)
    await bench.clocks(CASE["pause"])
    line.pulled = None
    # What the second one refuses before its first frame is received is in losses, too.
    second = await phase(*CASE["after"])
    assert bench.anew == 1
    offered, came = ([sum(1 for _, node, _ in items if node == n) for n in range(8)]
                     for items in (bench.twins, bench.again))
    lost = [a - b - c for a, b, c in zip(offered, came, second, strict=True)]
    assert told(0) == second == bench.counts("refused")
    assert told(1) == lost == bench.counts("lost")
    begin = bench.stage.now
    assert all(loss["first"] <= loss["last"] <= begin for loss in bench.losses)
    cocotb.log.info(f"refused before: {first}, after: {second}, lost on the line: {lost}")


@functools.cache
def pair():
    return component(Pair())


@functools.cache
def two_lives():
    return component(Pair(2))


#: Cables with every place of a sample within a bit.
CABLES = [(10.1, 0.0), (21.2, 1.0), (33.7, 0.4), (47.4, 1.1), (62.55, 0.0)]


@pytest.mark.parametrize(("delay", "jitter"), CABLES)
def test_comes_back(delay, jitter):
    run(pair(), __name__, "comes_back", 1, events=600, rate=0.006, delay=delay, jitter=jitter, both=0)


def test_comes_back_both_edges():
    run(pair(), __name__, "comes_back", 2, events=1500, rate=0.004, delay=12.0, jitter=0.5, both=1)


@pytest.mark.parametrize("nodes", [1, 8])
def test_keeps_up(nodes):
    run(pair(), __name__, "keeps_up", 1, nodes=nodes, clocks=30_000)


def test_overload():
    run(pair(), __name__, "overload", 1)


def test_bit_errors():
    run(pair(), __name__, "bit_errors", 1, errors=1e-4, events=4000)


def test_cable_pulled():
    run(pair(), __name__, "pulled", 1, clocks=9000)


@pytest.mark.parametrize(("before", "after", "pause", "pulled"), [
    ((0.06, 4_000), (0.06, 8_000), 700, 0), ((0.06, 8_000), (0.06, 2_000), 0, None),
    ((0.0, 0), (0.06, 5_000), 50_000, "noise")])
def test_restarted(before, after, pause, pulled):
    run(two_lives(), __name__, "restarted", 1, before=before, after=after, pause=pause, pulled=pulled, delay=15.3)


def test_long_comes_back():
    """A hundred thousand items."""
    run(pair(), __name__, "comes_back", 3, events=100_000, rate=0.0105, delay=41.3, jitter=0.9, both=0)


def test_long_bit_errors():
    """A hundred thousand items with one bit in ten thousand wrong."""
    run(pair(), __name__, "bit_errors", 4, errors=1e-4, events=100_000)
