"""Board time: one number for every stage, when it runs, who is captured, and the time of another board."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import ClockDomain
from hypermon.hdl.layout import Extra, Geometry, Sink, Window
from hypermon.hdl.time.board_sync import PATIENCE, QUIET_CLOCKS
from hypermon.hdl.time.board_time import BoardTime

from ..harness.stage import run

CLOCK_HZ = 10_000_000
#: Clocks of a window, by setting: 800, 400, 200 ns and one clock.
CLOCKS = {Window.NS800: 8, Window.NS400: 4, Window.NS200: 2, Window.CLOCK: 1}
#: The boards that differ: in how late an item comes, and in how late the number is that is not tied to the window.
BOARDS = {
    "classic": ({"sync": False}, 0, 1),
    "extended": ({"sinks": (Sink.EXTENDED,), "sync": False}, 1, 1),
    "synced": ({"sinks": (Sink.EXTENDED,)}, 1, 1),
    "narrow": ({"beat_bytes": 2}, 0, 0),
}


class Time:
    """What a board has to tell of time, from its first enable on."""

    def __init__(self, clocks: int):
        self.clocks, self.ran = clocks, -1      # of a window; since time 0
        self.wrapped = False

    @property
    def window(self) -> int:
        return max(0, self.ran) // self.clocks

    def told(self) -> tuple[bool, int, bool]:
        """Does the window end, its number, has the lower half of that just wrapped?"""
        return self.ran >= 0 and self.ran % self.clocks == self.clocks - 1, self.window, self.wrapped

    def tick(self, enable: int, skip: int) -> None:
        """A clock edge, at which some windows may be skipped."""
        before = self.window
        if self.ran >= 0 or enable:
            self.ran += 1 + skip * self.clocks
        self.wrapped = before >> 32 != self.window >> 32


@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("board", BOARDS)
def test_every_stage_is_told_the_same_time(board, window):
    rng = random.Random(f"{board} {window}")
    options, late, copied = BOARDS[board]
    nodes = 5
    dut = BoardTime(Geometry(nodes=nodes, clock_hz=CLOCK_HZ, **options))
    spine = ClockDomain("spine")
    wraps = []

    async def bench(ctx):
        settings, merge = dut.settings, dut.o.window
        ctx.set(settings.window, window)
        for _ in range(4):
            ctx.set(spine.rst, 1)
            ctx.set(settings.enable, 0)
            await ctx.tick().repeat(4)
            ctx.set(spine.rst, 0)
            time = Time(CLOCKS[window])
            mask = enable = 0
            # What there has been in the last clocks, the present one first; who is captured is known a clock late.
            times, enables, live = [(False, 0, False)] * 3, [0] * 3, [0] * 4
            for clock in range(400):
                if clock > 30 and rng.random() < 0.1:
                    enable = rng.getrandbits(1)
                if rng.random() < 0.1:
                    mask = rng.getrandbits(nodes)
                clear = rng.random() < 0.05
                skip = rng.choice([1, 7, 2**31 - 1]) if time.ran >= 0 and rng.random() < 0.03 else 0
                for field, value in ((settings.enable, enable), (settings.mask, mask), (dut.clear, clear),
                                     (dut.skip.advance, skip)):
                    ctx.set(field, value)
                times, enables = [time.told(), *times[:2]], [enable, *enables[:2]]
                live = [mask if enable and not clear else 0, *live[:3]]
                assert ctx.get(dut.o.running) == (time.ran >= 0)
                if clock > 3:
                    assert tuple(ctx.get(merge[name]) for name in ("end", "now", "wrap")) == times[late]
                    assert (ctx.get(merge.live), ctx.get(merge.enable)) == (live[1 + late], enables[late])
                    assert ctx.get(dut.o.now) == times[copied][1]
                wraps.append(times[0][2])
                await ctx.tick()
                time.tick(enable, skip)

    run(dut, bench, spine=spine)
    assert any(wraps)


@pytest.mark.parametrize("drift", [0, 1, -1])
def test_follows_another_board(drift):
    """The other board's wave, with a period that is a clock longer or shorter; then it stays away."""
    window, nodes = Window.NS400, 3
    period = 256 * CLOCKS[window]       # the first power of two of windows that has 1024 clocks
    rises, settled = 12, 3
    dut = BoardTime(Geometry(nodes=nodes, clock_hz=CLOCK_HZ, sinks=(Sink.EXTENDED,)))
    mine, other = [], [QUIET_CLOCKS + 50 + k * (period + drift) for k in range(rises)]

    async def bench(ctx):
        settings = dut.settings
        for field, value in ((settings.window, window), (settings.follow, 1), (settings.mask, -1)):
            ctx.set(field, value)
        await ctx.tick().repeat(4)
        ctx.set(settings.enable, 1)
        ran = level = 0
        for clock in range(other[-1] + (PATIENCE + 1) * period):
            ctx.set(dut.sync_in, any(0 <= clock - rise < period // 2 for rise in other))
            running = ctx.get(dut.o.running)
            assert ctx.get(settings.waits) == (not running)
            assert not running or clock > other[0], "started, and the other board has not"
            assert running or not ctx.get(dut.o.window.live), "captured before time runs"
            if running and clock < other[-1]:
                assert not ctx.get(settings.missing)
            ran += running
            if ran > 4:
                assert ctx.get(dut.o.window.live) == (1 << nodes) - 1
            before, level = level, ctx.get(dut.sync_out)
            if level and not before:
                mine.append(clock)
            await ctx.tick()
        assert ctx.get(settings.missing)
        longer, shorter = ctx.get(settings.longer_count), ctx.get(settings.shorter_count)
        assert (longer > rises - settled, shorter > rises - settled) == (drift > 0, drift < 0)
        assert drift or not longer + shorter

    run(dut, bench, spine=ClockDomain("spine"), clocks=40_000)
    lags = [ours - theirs for ours, theirs in zip(mine, other, strict=False)]
    assert len(lags) == rises
    assert max(lags) - min(lags) <= abs(drift), "its time is not that of the other board"
    assert 0 < min(lags) < 8


@pytest.mark.parametrize("drift", [1, -1])
def test_a_board_with_its_own_clock(drift):
    """It starts with the wave, and then its time is its own: no window is longer or shorter, and rises are reported."""
    period, rises = 1024, 8
    dut = BoardTime(Geometry(1, CLOCK_HZ, sinks=(Sink.EXTENDED,), extras=(Extra.DRIFT,)))
    other = [QUIET_CLOCKS + 50 + k * (period + drift) for k in range(rises)]
    mine, off = [], []

    async def bench(ctx):
        settings = dut.settings
        for field, value in ((settings.window, Window.CLOCK), (settings.follow, 1), (settings.own, 1)):
            ctx.set(field, value)
        await ctx.tick().repeat(4)
        ctx.set(settings.enable, 1)
        level = 0
        for clock in range(other[-1] + 50):
            ctx.set(dut.sync_in, any(0 <= clock - rise < period // 2 for rise in other))
            before, level = level, ctx.get(dut.sync_out)
            if level and not before:
                mine.append(clock)
            if ctx.get(dut.marks.off):
                off.append((clock, ctx.get(dut.marks.early)))
            await ctx.tick()
        assert not ctx.get(settings.missing)
        assert (ctx.get(settings.longer_count), ctx.get(settings.shorter_count)) == (
            (rises - 1, 0) if drift > 0 else (0, rises - 1))

    run(dut, bench, spine=ClockDomain("spine"), clocks=40_000)
    assert {two - one for one, two in pairwise(mine)} == {period}
    # Only the first: DRIFT_CLOCKS are more than this.
    assert off == [(other[1] + 3, int(drift < 0))]
