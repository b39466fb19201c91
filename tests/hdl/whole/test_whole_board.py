"""The whole board in the situations that matter, see ``benches/`` of the same names."""

import dataclasses

import pytest
from hypermon.hdl.layout import Geometry, Window

from ..harness.runner import board, run, seeds

#: Depths that are soon full, and frames of four words and of six; a full row, and depths of the paper.
SMALL = {"node_depth": 8, "vector_depth": 32, "frame_depth": 16}
BOARDS = {
    "5": Geometry(nodes=5, **SMALL),
    "17": Geometry(nodes=17, **SMALL),
    "deep": Geometry(nodes=16),
}


def play(name: str, bench: str, case: str, seed: int, **parameters: object) -> None:
    geometry = BOARDS[name]
    run(board(geometry), bench, case, seed, geometry=dataclasses.asdict(geometry), **parameters)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("name", ["5", pytest.param("17", marks=pytest.mark.slow)])
def test_node_fifo_overrun(name, seed):
    play(name, "overruns", "node_fifo", seed)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("window", [Window.NS200, Window.CLOCK], ids=lambda w: w.name)
@pytest.mark.parametrize("name", ["5", "17"])
def test_frame_fifo_overrun(name, window, seed):
    play(name, "overruns", "frame_fifo", seed, window=window)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("name", ["5", "17"])
def test_vector_fifo_overrun(name, seed):
    play(name, "overruns", "vector_fifo", seed)


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("name", ["5", "17"])
def test_resets(name, seed):
    play(name, "resets", "resets", seed, count=1000)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("case", ["registers", "switching"])
@pytest.mark.parametrize("name", ["deep", "17"])
def test_drain(name, case, seed):
    play(name, "drains", case, seed, window=Window.NS800 if seed % 2 else Window.NS200, count=80)


@pytest.mark.parametrize("seed", seeds(2))
def test_tight_timing(seed):
    play("deep", "limits", "tight", seed, count=800)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "broken"])
@pytest.mark.parametrize("case", ["ways", "stores"])
def test_limits(case, kept, seed):
    play("deep", "limits", case, seed, kept=kept, count=200, ready=1.0)


@pytest.mark.parametrize("seed", seeds(2))
def test_lpc_bus(seed):
    play("deep", "limits", "lpc", seed, count=80)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("window", [Window.NS800, Window.CLOCK], ids=lambda w: w.name)
def test_silence(window, seed):
    play("5", "skips", "silence", seed, window=window, parts=60)


@pytest.mark.parametrize("name", ["deep", "17"])
def test_identity(name):
    play(name, "registers", "identity", 0)


@pytest.mark.parametrize("case", ["latched", "paused"])
@pytest.mark.parametrize("name", ["deep", "17"])
def test_counters(name, case):
    play(name, "registers", case, 0, count=600)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("name", ["5", "17"])
def test_node_mask(name, seed):
    play(name, "settings", "masked", seed, count=1000)


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("window", list(Window), ids=lambda w: w.name)
def test_flush(window, seed):
    play("5", "settings", "flushed", seed, window=window, ready=1.0)


#: The hundred seeds of the slow set: bench, case and its parameters.
MANY = {
    "resets": ("resets", "resets", {"count": 1000}),
    "registers": ("drains", "registers", {"window": Window.NS200, "count": 300}),
    "switching": ("drains", "switching", {"window": Window.NS200, "count": 300}),
    "silence": ("skips", "silence", {"window": Window.CLOCK, "parts": 20}),
    "node mask": ("settings", "masked", {"count": 1000}),
    "node fifo": ("overruns", "node_fifo", {}),
    "vector fifo": ("overruns", "vector_fifo", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(100, 1000))
@pytest.mark.parametrize("case", MANY)
def test_many_seeds(case, seed):
    bench, test, parameters = MANY[case]
    play(("5", "17")[seed % 2], bench, test, seed, **parameters)
