"""Marks: rises of pins as records, in order; those that have no room are missing in the numbers."""

import random

import pytest
from hypermon.hdl.accounts.marks import QUEUE_DEPTH, Marks
from hypermon.hdl.layout import EXTRA_PINS, MARK_LATENCY, MARK_RECORD, SYNC_LAG, Extra, Geometry, MarkSource

from ..harness.stage import run

WINDOW = 5      # clocks


class Bench:
    """Levels at the pins, clock by clock, and a blocker that grants when it likes."""

    def __init__(self, seed: int, pause: int, pins: int = 2, drifts: bool = False):
        self.rng = random.Random(seed)
        self.dut = Marks(Geometry.extended(extras=(*tuple(EXTRA_PINS)[:pins], *[Extra.DRIFT] * drifts)), pause)
        self.off: dict[int, bool] = {}      # by clock of the rise at the pad: it came early
        self.pads = [getattr(self.dut, name) for name in list(EXTRA_PINS.values())[:pins]]
        self.records: list[dict] = []
        self.blocks: list[int] = []         # clocks of the grants
        self.rises: list[list[int]] = [[] for _ in range(pins)]
        self.clock = 0

    def play(self, levels, grants: float, ready: float, *, enable=lambda clock: True, follows=0, clocks: int) -> None:
        dut, rng = self.dut, self.rng

        async def pads(ctx):
            ctx.set(dut.running, 1)
            ctx.set(dut.follows, follows)
            before = [1] * len(self.rises)
            for clock in range(clocks):
                now = levels(clock)
                for pin, level in enumerate(now):
                    if level and not before[pin]:
                        self.rises[pin].append(clock)
                before = now
                for pad, level in zip(self.pads, now, strict=True):
                    ctx.set(pad, level)
                if dut.drifts:      # as the synchronization has it: two flip-flops, and its own
                    ctx.set(dut.off, clock - 3 in self.off)
                    ctx.set(dut.early, self.off.get(clock - 3, self.rng.getrandbits(1)))
                ctx.set(dut.enable, enable(clock))
                # As the board has it: the window's number a clock late.
                ctx.set(dut.now, max(clock - 1, 0) // WINDOW)
                ctx.set(dut.left, WINDOW - 1 - clock % WINDOW)
                self.clock = clock
                await ctx.tick()

        async def blocker(ctx):
            source = dut.source
            while self.clock < clocks - 1:
                while not (ctx.get(source.request) and rng.random() < grants):
                    asked = ctx.get(source.request)
                    await ctx.tick()
                    assert not asked or ctx.get(source.request), "a request is held"
                    if self.clock >= clocks - 1:
                        return
                for _ in range(3):
                    await ctx.tick()
                    assert ctx.get(source.request)
                ctx.set(source.grant, 1)
                length = ctx.get(source.length)
                await ctx.tick()
                ctx.set(source.grant, 0)
                self.blocks.append(self.clock)
                assert length
                assert length % MARK_RECORD.bytes == 0
                for _ in range(length // MARK_RECORD.bytes):
                    while True:
                        takes = rng.random() < ready
                        ctx.set(source.beats.ready, takes)
                        if takes and ctx.get(source.beats.valid):
                            data = ctx.get(source.beats.p)
                            await ctx.tick()
                            break
                        await ctx.tick()
                    ctx.set(source.beats.ready, 0)
                    self.records.append(MARK_RECORD.unpack(data.to_bytes(16, "little")))

        run(dut, pads, blocker, clocks=clocks + 100)

    def moments(self, source: MarkSource) -> dict[int, int]:
        """By number, the clock that each record of a pin states."""
        own = [row for row in self.records if row["source"] == source]
        return {row["number"]: (row["stamp"] + 1) * WINDOW - 1 - row["left"] - row["latency"] for row in own}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("follows", [0, 1])
def test_each_rise_is_a_record(seed, follows):
    """With the clock edge that sampled it, however the blocker stalls, and whatever the other pin does."""
    bench = Bench(seed, 40)
    rng = random.Random(~seed)
    rises = [sorted(rng.sample(range(10, 4000, 97), 25)) for _ in range(2)]
    if seed == 0:
        rises[1] = rises[0]     # in the same clock
    bench.play(lambda clock: [any(0 <= clock - rise < 9 for rise in own) for own in rises], rng.choice((0.1, 0.9)),
               rng.choice((0.2, 1.0)), follows=follows, clocks=5000)
    for pin, source in enumerate((MarkSource.PPS, MarkSource.TRIGGER)):
        assert bench.moments(source) == {n: rise + follows * SYNC_LAG for n, rise in enumerate(rises[pin])}
    assert {row["latency"] for row in bench.records} == {MARK_LATENCY - follows * SYNC_LAG}
    stamps = [row["stamp"] for row in bench.records]
    assert stamps == sorted(stamps)


def test_a_pin_that_toggles_all_the_time():
    """At most a queue of marks in each pause; what is there is right, what is not is missing in the numbers."""
    pause, clocks = 300, 3000
    bench = Bench(1, pause)
    bench.play(lambda clock: [clock > 5 and clock % 4 < 2, clock == 1200], 1.0, 1.0, clocks=clocks)
    found = bench.moments(MarkSource.PPS)
    assert len(bench.rises[0]) > 700
    assert all(bench.rises[0][number] == moment for number, moment in found.items())
    assert len(found) <= (QUEUE_DEPTH + 2) * (clocks // pause + 1)
    assert len(found) >= QUEUE_DEPTH * (clocks // pause - 1)
    assert bench.moments(MarkSource.TRIGGER).get(0, 1200) == 1200
    assert all(two - one > pause for one, two in zip(bench.blocks, bench.blocks[1:], strict=False))


def test_after_a_stop_no_rise_counts_and_nothing_waits():
    bench = Bench(2, 1000)
    bench.play(lambda clock: [clock in (50, 100, 150, 400), False], 1.0, 1.0, enable=lambda clock: clock < 300,
               clocks=700)
    assert bench.moments(MarkSource.PPS) == {0: 50, 1: 100, 2: 150}
    assert bench.blocks[1] < 320


def test_a_pin_that_is_high_from_the_beginning_has_not_risen():
    bench = Bench(3, 10, pins=1)
    bench.play(lambda clock: [clock < 60 or clock > 80], 1.0, 1.0, clocks=300)
    assert bench.moments(MarkSource.PPS) == {0: 81}


@pytest.mark.parametrize("pins", [0, 2])
@pytest.mark.parametrize("seed", range(2))
def test_rises_that_show_the_drift(seed, pins):
    """They are numbered together, in both directions; pins beside them have marks as ever."""
    bench = Bench(seed, 40, pins, drifts=True)
    rng = random.Random(~seed)
    bench.off = {rise: bool(rng.getrandbits(1)) for rise in rng.sample(range(10, 4000, 50), 40)}
    rises = [sorted(bench.off)[k::2] for k in range(pins)]     # in the same clocks
    bench.play(lambda clock: [any(0 <= clock - rise < 9 for rise in own) for own in rises], 0.5, rng.choice((0.2, 1.0)),
               follows=1, clocks=5000)
    late, early = (bench.moments(source) for source in (MarkSource.SYNC_LATE, MarkSource.SYNC_EARLY))
    numbered = {n: (rise + SYNC_LAG, is_early) for n, (rise, is_early) in enumerate(sorted(bench.off.items()))}
    assert late == {n: at for n, (at, is_early) in numbered.items() if not is_early}
    assert early == {n: at for n, (at, is_early) in numbered.items() if is_early}
    for pin, source in enumerate((MarkSource.PPS, MarkSource.TRIGGER)[:pins]):
        assert bench.moments(source) == {n: rise + SYNC_LAG for n, rise in enumerate(rises[pin])}


def test_drift_counts_while_time_runs():
    bench = Bench(4, 10, 0, drifts=True)
    bench.off = {50: False, 100: True, 150: False}
    bench.play(lambda clock: [], 1.0, 1.0, enable=lambda clock: clock < 120, clocks=400)
    assert bench.moments(MarkSource.SYNC_LATE) == {0: 50}
    assert bench.moments(MarkSource.SYNC_EARLY) == {1: 100}
