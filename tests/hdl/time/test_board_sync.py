"""Two boards share one time, see ``benches/boards.py``."""

import dataclasses
import functools
import random
import re
from pathlib import Path

import pytest
from amaranth.hdl import Fragment
from hypermon.hdl.layout import DRIFT_CLOCKS, PERIOD_CLOCKS, Extra, Geometry, Sink, Window, period_bits
from hypermon.hdl.time.board_sync import BoardSync

from ..harness import stage
from ..harness.resets import same_as_fresh
from ..harness.runner import board, build, run, seeds, verilog_of

GEOMETRY = Geometry(1, 20_000_000, node_depth=8, vector_depth=32, frame_depth=16, sinks=tuple(Sink))


def wave(dut, inputs, levels, clocks):
    """Plays levels of ``sync_in`` by clock, with ``now`` counting windows of a clock if time runs; returns what the
    outputs were."""
    seen = []
    names = ["sync_out", "start", "waits", "missing", "longer", "shorter", *["risen"][:hasattr(dut, "risen")]]

    async def bench(ctx):
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        for clock in range(clocks):
            ctx.set(dut.now, clock if inputs.get("running") else 0)
            ctx.set(dut.sync_in, levels(clock))
            seen.append({name: ctx.get(getattr(dut, name)) for name in names})
            await ctx.tick()

    stage.run(dut, bench, clocks=10**6)
    return seen


@pytest.mark.parametrize("window", Window)
def test_the_wave_of_a_board(window):
    """It rises with each window whose number is a multiple of the period, and is high for half of it; low before time
    runs."""
    dut = BoardSync(GEOMETRY)
    bits = next(k for k in range(1, 20) if GEOMETRY.window_clocks(window) << k >= PERIOD_CLOCKS)
    for running in (1, 0):
        found = []

        async def bench(ctx, running=running, found=found):
            ctx.set(dut.window, window)
            ctx.set(dut.running, running)
            for number in range(5 << bits):
                ctx.set(dut.now, number)
                await ctx.tick()
                found.append(ctx.get(dut.sync_out))

        stage.run(dut, bench, clocks=10**5)
        assert found == [running * (number % (1 << bits) < 1 << bits >> 1) for number in range(5 << bits)]


@pytest.mark.parametrize("low", [4095, 4096, 4097, 8192 + 100])
def test_it_starts_with_the_first_rise_after_silence(low):
    """Two flip-flops later, for one clock, and waits until then, however long; 4095 clocks of silence start nothing."""
    dut = BoardSync(dataclasses.replace(GEOMETRY, extras=(Extra.ECHO,)))
    rises = (100, 100 + 20 + low)
    # The line is high at first; it falls 20 clocks after each rise.
    found = wave(dut, {"follow": 1, "enable": 1, "window": Window.CLOCK},
                 lambda clock: clock < 10 or any(rise <= clock < rise + 20 for rise in rises), rises[1] + 40)
    assert [clock for clock, row in enumerate(found) if row["start"]] == [rises[1] + 2] * (low >= 4096)
    assert [clock for clock, row in enumerate(found) if row["risen"]] == [rise + 2 for rise in rises]
    assert all(row["waits"] for row in found)
    assert not any(row["missing"] | row["longer"] | row["shorter"] | row["sync_out"] for row in found)
    for inputs, starts, waits in (({"enable": 1}, 1, 0), ({"follow": 1}, 0, 0), ({}, 0, 0),
                                  ({"follow": 1, "enable": 1, "running": 1}, 0, 0)):
        rows = wave(BoardSync(dut.geometry), {"window": Window.CLOCK, **inputs}, lambda clock: 0, 10)
        assert {(row["start"], row["waits"]) for row in rows} == {(starts, waits)}


@pytest.mark.parametrize(("gone", "wanted"), [((2, 3, 4), None), ((2, 3, 4, 5), 6)])
def test_a_wave_that_fails_for_four_periods_is_missing(gone, wanted):
    """It is said from then on; not of a wave that is away for three periods, nor on a board that follows none."""
    period, count = 1 << period_bits(1), 8
    inputs = {"enable": 1, "running": 1, "window": Window.CLOCK}

    def levels(clock):      # a rise comes in the clock before a period begins, two flip-flops before that is seen
        number, phase = divmod(clock + 3, period)
        return phase < 9 and number > 0 and number not in gone

    rows = wave(BoardSync(GEOMETRY), inputs | {"follow": 1}, levels, count * period)
    assert not any(row["longer"] | row["shorter"] for row in rows)
    first = next((clock for clock, row in enumerate(rows) if row["missing"]), None)
    assert (first is None) == (wanted is None)
    if wanted is not None:
        # The fourth period without a rise has begun a few clocks ago.
        assert wanted * period - period < first <= (wanted - 1) * period + 5
        assert all(row["missing"] for row in rows[first:])
    assert not any(row["missing"] for row in wave(BoardSync(GEOMETRY), inputs, levels, 6 * period))


def test_the_wave_is_missing_again_and_again():
    """Periods without a rise count from the last rise on: two and then three are no four."""
    period = 1 << period_bits(1)
    inputs = {"enable": 1, "running": 1, "follow": 1, "window": Window.CLOCK}
    away = {2, 3, 5, 6, 7}
    rows = wave(BoardSync(GEOMETRY), inputs, lambda clock: (clock + 3) % period < 9 and clock > 9
                and (clock + 3) // period not in away, 9 * period)
    assert not any(row["missing"] for row in rows)


@pytest.mark.parametrize("clock_hz", [5_000_000, 20_000_000, 100_000_000, 180_000_000])
def test_periods(clock_hz):
    for window in Window:
        clocks = window.clocks(clock_hz)
        assert PERIOD_CLOCKS <= clocks << period_bits(clocks) < 2 * PERIOD_CLOCKS


def test_each_rise_is_judged():
    """A rise at one phase of a period is right; at half of them ask for a longer window, half for a shorter one."""
    dut = BoardSync(GEOMETRY)
    period = 1 << period_bits(1)
    judged = []

    async def bench(ctx):
        for name in ("follow", "enable", "running"):
            ctx.set(getattr(dut, name), 1)
        ctx.set(dut.window, Window.CLOCK)
        for phase in range(period):
            for clock in range(-4, 8):
                ctx.set(dut.now, (phase + clock) % period)
                ctx.set(dut.sync_in, clock >= 0)
                await ctx.tick()
            judged.append((ctx.get(dut.longer), ctx.get(dut.shorter)))
            ctx.set(dut.sync_in, 0)
            ctx.set(dut.corrected, 1)
            await ctx.tick()
            ctx.set(dut.corrected, 0)
            assert not ctx.get(dut.longer) | ctx.get(dut.shorter)
        assert (ctx.get(dut.longer_count), ctx.get(dut.shorter_count)) == (period // 2 - 1, period // 2)

    stage.run(dut, bench)
    right = judged.index((0, 0))
    assert judged[right + 1:] + judged[:right] == [(1, 0)] * (period // 2 - 1) + [(0, 1)] * (period // 2)


@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("seed", range(2))
def test_a_board_with_its_own_clock_reports_rises_that_are_off(window, seed):
    """Those a clock off the period, not too many; it counts all of them, and never asks for another window."""
    rng = random.Random(f"{window} {seed}")
    geometry = dataclasses.replace(GEOMETRY, extras=(Extra.DRIFT,))
    clocks, spacing = geometry.window_clocks(window), (1, 3000)[seed]
    period = clocks << period_bits(clocks)
    choices = [period] * 3 + [period + 1, period - 1] * 3 + [period + 2, period - 2, 2 * period, 2 * period + 1, 40]
    gaps = [*(rng.choice(choices) for _ in range(60)), (1 << 12) + period + 1, period + 1, period]
    dut = BoardSync(geometry, spacing)
    rises, at = [], 20
    for gap in gaps:
        rises.append(at)
        at += gap
    seen = []

    async def bench(ctx):
        for name in ("follow", "enable", "running", "own"):
            ctx.set(getattr(dut, name), 1)
        ctx.set(dut.window, window)
        high = 0
        for clock in range(rises[-1] + 20):
            high = 12 if clock in set_of_rises else high - 1
            ctx.set(dut.sync_in, high > 0)
            ctx.set(dut.now, clock // clocks)
            if ctx.get(dut.off):
                seen.append((clock, ctx.get(dut.early)))
            assert not ctx.get(dut.longer) | ctx.get(dut.shorter)
            await ctx.tick()
        assert ctx.get(dut.longer_count) == sum(gap == period + 1 for gap in gaps[:-1])
        assert ctx.get(dut.shorter_count) == sum(gap == period - 1 for gap in gaps[:-1])

    set_of_rises = set(rises)
    stage.run(dut, bench, clocks=10**6)
    wanted, last = [], -spacing
    for rise, gap in zip(rises[1:], gaps, strict=False):
        if abs(gap - period) == 1 and rise - last >= spacing:
            # Two flip-flops, and its own.
            wanted.append((rise + 3, int(gap < period)))
            last = rise
    assert seen == wanted
    assert len(wanted) > 5


def test_without_its_own_clock_it_is_stepped_as_ever():
    """A board that could keep its own clock, and does not, reports nothing. One that follows none does not step."""
    period = 1 << period_bits(1)
    for own, follow, steps in ((0, 1, True), (1, 0, False), (0, 0, False)):
        dut = BoardSync(dataclasses.replace(GEOMETRY, extras=(Extra.DRIFT,)), 1)
        asked = []

        async def bench(ctx, dut=dut, own=own, follow=follow, asked=asked):
            for name, value in (("own", own), ("follow", follow), ("enable", 1), ("running", 1),
                                ("window", Window.CLOCK)):
                ctx.set(getattr(dut, name), value)
            for clock in range(4 * period):
                ctx.set(dut.sync_in, clock % (period + 1) < 9)
                ctx.set(dut.now, clock)
                assert not ctx.get(dut.off)
                asked.append(ctx.get(dut.longer) | ctx.get(dut.shorter))
                await ctx.tick()
            assert ctx.get(dut.longer_count) == ctx.get(dut.shorter_count) == 0

        stage.run(dut, bench, clocks=10**5)
        assert any(asked) == steps


def test_the_spacing_of_a_board():
    board_sync = BoardSync(dataclasses.replace(GEOMETRY, extras=(Extra.DRIFT,)))
    assert board_sync.spacing == DRIFT_CLOCKS
    Fragment.get(board_sync, None)  # the default spacing elaborates


@functools.cache
def boards() -> Path:
    """Two boards, side by side: ports of the first begin with ``a_``, of the second with ``b_``."""
    board = verilog_of(GEOMETRY)
    declared = re.search(r"^module hypermon\((.*?)\);(.*?)^  (?:wire|reg|assign)", board, re.S | re.M)
    ports = [name.strip() for name in declared[1].split(",")]
    kinds = dict(re.findall(r"^  (?:input|output) (?:\[\d+:0\] )?(\w+);", "", re.M))
    for direction, width, name in re.findall(r"^  (input|output) (\[\d+:0\] )?(\w+);$", board[declared.start():], re.M):
        if name in ports:
            kinds.setdefault(name, f"{direction} {width or ''}")
    lines = [f"{kinds[port]}{side}_{port}" for side in "ab" for port in ports]
    instances = "".join(f"  hypermon {side}({', '.join(f'.{p}({side}_{p})' for p in ports)});\n" for side in "ab")
    return build("boards", f"{board}\nmodule boards({', '.join(lines)});\n{instances}endmodule\n", "boards")


def play(case: str, seed: int, **parameters: object) -> None:
    given = {"ppm": 50, "line_ps": 2000, "drifts": False, "ready": 1.0} | parameters
    run(boards(), "boards", case, seed, geometry=dataclasses.asdict(GEOMETRY), **given)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize(("window", "ppm"), [
    pytest.param(Window.CLOCK, 50, marks=pytest.mark.slow), (Window.CLOCK, 200),
    pytest.param(Window.NS800, 200, marks=pytest.mark.slow)])
def test_aligned(window, ppm, seed):
    # Windows of more than a clock are corrected less often.
    play("aligned", seed, window=window, ppm=ppm, count=120 if window is Window.CLOCK else 500)


@pytest.mark.slow
def test_aligned_for_long():
    play("aligned", 1, window=Window.CLOCK, ppm=50, count=10_000, drifts=True)


@pytest.mark.parametrize("case", ["late", "unplugged"])
def test_line(case):
    play(case, 0)


@pytest.mark.parametrize("window", [pytest.param(Window.CLOCK, marks=pytest.mark.slow), Window.NS800],
                         ids=lambda w: w.name)
def test_follows_a_wave(window):
    run(board(GEOMETRY), "follower", "follows", 0, geometry=dataclasses.asdict(GEOMETRY), window=window, ready=1.0)


def test_reset():
    """A board that follows, or leads, on a line with a random wave."""
    switches = {name: lambda rng: rng.getrandbits(1) for name in ("follow", "own")}
    same_as_fresh(lambda: BoardSync(Geometry.extended(2, extras=(Extra.DRIFT,)), 64),
                  {"now": lambda rng: rng.getrandbits(12)}, settings=switches, after=300)
