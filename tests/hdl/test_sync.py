"""Two boards share one time, see ``benches/boards.py``."""

import dataclasses
import functools
import re
from pathlib import Path

import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.hdl.sync import PERIOD_CLOCKS, period_bits
from hypermon.hdl.verilog import verilog

from .runner import board, build, run, seeds

GEOMETRY = Geometry(1, 20_000_000, node_depth=8, vector_depth=32, frame_depth=16, sinks=tuple(Sink))


@functools.cache
def boards() -> Path:
    """Two boards, side by side: ports of the first begin with ``a_``, of the second with ``b_``."""
    board = verilog(GEOMETRY)
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
    play("aligned", seed, window=window, ppm=ppm, count=300 if window is Window.CLOCK else 500)


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
