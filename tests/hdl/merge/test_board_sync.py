"""Two boards share one time, see ``benches/boards.py``."""

import dataclasses
import functools
import re
from pathlib import Path

import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.hdl.merge.board_sync import PERIOD_CLOCKS, BoardSync, period_bits

from ..harness import stage
from ..harness.runner import board, build, run, seeds, verilog_of

GEOMETRY = Geometry(1, 20_000_000, node_depth=8, vector_depth=32, frame_depth=16, sinks=tuple(Sink))


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
