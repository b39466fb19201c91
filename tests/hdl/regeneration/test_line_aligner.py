"""Line aligner: it finds frames at every bit and in either sample, leaves what is none, and holds on through errors."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.regeneration.frame_checker import FrameChecker
from hypermon.hdl.regeneration.line_aligner import LineAligner

from ..harness.resets import same_as_fresh
from ..harness.stage import run
from .models.link_model import BYTES, SCRAMBLE, SYNC, frame, number


class Found(wiring.Component):
    """The aligner with the checker that judges its frames."""

    def __init__(self, **options):
        self.options = options
        super().__init__({"samples": In(4), "good": Out(1), "bad": Out(1), "locked": Out(1), "trusted": Out(1),
                          "lag": Out(12), "side": Out(4), "slot": In(5), "byte": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.aligner = aligner = LineAligner(**self.options)
        m.submodules.checker = checker = FrameChecker()
        m.d.comb += [
            aligner.samples.eq(self.samples), aligner.good.eq(checker.good), aligner.bad.eq(checker.bad),
            checker.collecting.eq(aligner.collecting), checker.bits.eq(aligner.bits),
            checker.count.eq(aligner.count), checker.slot.eq(self.slot), self.byte.eq(checker.byte),
            self.good.eq(checker.good), self.bad.eq(checker.bad), self.locked.eq(aligner.locked),
            self.trusted.eq(aligner.trusted), self.lag.eq(checker.lag), self.side.eq(checker.side),
        ]
        return m


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("shift", [0, 1, 77, 130])
def test_finds(shift, late):
    """Only one sample of each bit is right; the other is noise."""
    rng = random.Random(shift)
    dut = Found(patience=16)
    data = [[rng.randrange(256) for _ in range(27)] for _ in range(60)]
    line = [rng.getrandbits(1) for _ in range(shift)]
    for k, content in enumerate(data):
        line += frame(k, k % 16, content)
    wrong = [40, 41, 42, 50]
    for k in wrong:
        line[shift + 256 * k + rng.randrange(256)] ^= 1
    verdicts = []

    async def bench(ctx):
        for at in range(0, len(line) - 1, 2):
            bits = [line[at], line[at + 1]]
            noise = [rng.getrandbits(1) for _ in range(2)]
            pairs = [(n, b) if late else (b, n) for b, n in zip(bits, noise, strict=True)]
            ctx.set(dut.samples, sum(bit << k for k, bit in enumerate(bit for pair in pairs for bit in pair)))
            await ctx.tick()
            good, bad, locked = ctx.get(dut.good), ctx.get(dut.bad), ctx.get(dut.locked)
            if good:
                verdicts.append((ctx.get(dut.lag), locked))
                lag = ctx.get(dut.lag)
                assert ctx.get(dut.side) == lag % 16
                for slot in range(27):
                    ctx.set(dut.slot, 3 + slot)
                    assert ctx.get(dut.byte) == data[lag][slot]
            elif bad and locked:
                verdicts.append((None, locked))

    run(dut, bench)
    found = [lag for lag, _ in verdicts]
    first = found[0]
    assert first < (24 if late else 6)
    assert found == [None if k in wrong else k for k in range(first, first + len(found))]
    assert first + len(found) >= 59
    assert all(locked for lag, locked in verdicts if lag != first and lag != first + 1)


def test_leaves_a_dead_line():
    """Four bad frames in a row, and the line is searched again; a level is no frame."""
    rng = random.Random(3)
    dut = Found()
    alive = [bit for _ in range(12) for bit in frame(1, 2, [rng.randrange(256) for _ in range(27)])]

    async def bench(ctx):
        locked_until = None
        for at in range(0, len(alive) - 1, 2):
            ctx.set(dut.samples, alive[at] * 3 + alive[at + 1] * 12)
            await ctx.tick()
        assert ctx.get(dut.locked)
        for clock in range(128 * 8):
            ctx.set(dut.samples, 15)
            await ctx.tick()
            assert not ctx.get(dut.good) or clock < 10
            if not ctx.get(dut.locked) and locked_until is None:
                locked_until = clock
        assert 3 * 128 < locked_until <= 4 * 128 + 10

    run(dut, bench)


def test_patience_begins_when_the_lock_is_lost():
    """Only one sample of each bit is right. After an outage the frames are found again with that sample, however long
    the line had been locked before."""
    rng = random.Random(9)
    dut = Found(patience=16)
    outages = {26: 6, 55: 6, 83: 6, 106: 6}      # begin, and frames
    line = []
    for k in range(125):
        bits = frame(k, 0, [rng.randrange(256) for _ in range(27)])
        gone = any(begin <= k < begin + count for begin, count in outages.items())
        line += [rng.getrandbits(1) for _ in bits] if gone else bits
    good = set()

    async def bench(ctx):
        for at in range(0, len(line) - 1, 2):
            ctx.set(dut.samples, line[at] | rng.getrandbits(1) << 1 | line[at + 1] << 2 | rng.getrandbits(1) << 3)
            await ctx.tick()
            if ctx.get(dut.good):
                good.add(ctx.get(dut.lag))

    run(dut, bench)
    for begin, count in outages.items():
        assert begin - 1 in good
        assert {begin + count + k for k in range(4, 10)} <= good, "found again before the other samples are tried"


@pytest.mark.parametrize(("right", "left"), [(4, 60), (9, 110)])
def test_samples_that_are_right_for_some_frames_now_and_then(right, left):
    """As those at the edge of a bit are. They are left for the other samples, which are right."""
    rng = random.Random(4)
    dut = Found(patience=24)
    good = set()

    async def bench(ctx):
        for k in range(150):
            bits = frame(k, 0, [rng.randrange(256) for _ in range(27)])
            for at in range(0, 256, 2):
                edge = [bit if k % 20 < right else rng.getrandbits(1) for bit in bits[at:at + 2]]
                ctx.set(dut.samples, edge[0] | bits[at] << 1 | edge[1] << 2 | bits[at + 1] << 3)
                await ctx.tick()
                if ctx.get(dut.good):
                    good.add(ctx.get(dut.lag))

    run(dut, bench)
    assert {2, 3, 22, 23} <= good, "locked with the samples at the edge"
    assert not {10, 12, 14, 16, 30, 32} & good, "which are wrong then"
    assert set(range(left, 149)) <= good


#: Bits after a place that was tried in vain at which the search continues, and frames without a lock after which the
#: other samples are tried.
RESUMES, PATIENCE = 4, 72


def test_no_traffic_outlasts_the_patience():
    """All ways in which false syncs can follow each other, one or more in each frame. The seven bits before a sync and
    after it exclude another one."""
    assert all(SYNC[:k] != SYNC[-k:] for k in range(1, 8))
    tries = [0] * (256 + RESUMES + 1)           # the most that are tried from a place on until the frames are found
    for place in range(248, 0, -1):
        tries[place] = max(tries[place + 1], 1 + tries[place + RESUMES] if place >= 8 else 0)
    assert tries[1] == 61
    # The places of one frame, each one frame later than the one before; two good ones, and the rest of the first.
    assert tries[1] + 1 + 2 + 1 < PATIENCE


def with_false_sync(rng, place):
    """A whole frame with one false sync, at this bit."""
    while True:
        bits = [rng.getrandbits(1) for _ in range(256)]
        bits[place:place + 8] = SYNC
        body = [a ^ b for a, b in zip(bits[8:240], SCRAMBLE[:232], strict=True)]
        data = [number(body[16 + 8 * k:24 + 8 * k]) for k in range(BYTES)]
        made = frame(number(body[:12]), number(body[12:16]), data)
        if [at for at in range(1, 256) if (made + SYNC)[at:at + 8] == SYNC] == [place]:
            return made


def test_a_false_sync_in_each_frame():
    """Each is at the first place at which the search continues after the one before. The other samples are noise."""
    rng = random.Random(12)
    dut = Found()
    places = list(range(8, 233, RESUMES))
    line = [bit for k in range(PATIENCE + 30) for bit in with_false_sync(rng, places[k % len(places)])][1:]
    locked, bad = [], []

    async def bench(ctx):
        for at in range(0, len(line) - 1, 2):
            ctx.set(dut.samples, line[at] | rng.getrandbits(1) << 1 | line[at + 1] << 2 | rng.getrandbits(1) << 3)
            await ctx.tick()
            if ctx.get(dut.bad):
                bad.append(at // 256)
            if ctx.get(dut.locked):
                locked.append(at // 256)
                return

    run(dut, bench)
    assert locked, "the frames were not found"
    assert len(bad) == len(places)
    assert locked[0] <= len(places) + 4


def test_reset():
    same_as_fresh(lambda: LineAligner(1), episodes=12)
