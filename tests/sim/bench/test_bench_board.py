"""The package for users' cocotb benches, on whole boards; see ``on_board.py``."""

import dataclasses

import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host import open_run
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.link import VirtualLink

from tests.hdl.harness.runner import board, run, seeds
from tests.hdl.whole.test_board import BOARDS

CLASSIC = BOARDS["17"]
EXTENDED = Geometry(nodes=8, sinks=(Sink.EXTENDED,))
BENCH = "tests.sim.bench.on_board"


def play(geometry, case, seed, folder, **parameters):
    run(board(geometry), BENCH, case, seed, geometry=dataclasses.asdict(geometry), run=str(folder / "run"),
        nodes=geometry.nodes, **parameters)


@pytest.mark.parametrize("seed", seeds(4))
def test_a_bench_records_what_the_virtual_board_does(tmp_path, seed):
    stimulus = tmp_path / "ports.csv"
    play(CLASSIC, "nibbles", seed, tmp_path, stimulus=str(stimulus))
    with_edges = open_run(tmp_path / "run").info.configuration["edge"]
    edges = [f"{n}={edge}" for n, edge in enumerate(with_edges[:16])]
    samples = [f"{n}={'after' if edge == 'both' else 'before'}" for n, edge in enumerate(with_edges[:16])]
    geometry = Geometry()
    link = VirtualLink(load([str(stimulus)], nodes=geometry.nodes, edges=edges, samples=samples), geometry)
    with Device(link) as device:
        record(device, tmp_path / "again", Settings(window=Window.CLOCK))
    assert open_run(tmp_path / "again").events().equals(open_run(tmp_path / "run").events())


@pytest.mark.parametrize("case", ["differences_are_noticed", "a_loss_is_noticed", "two_runs_and_wrong_use"])
def test_scoreboard_and_use(tmp_path, case):
    play(CLASSIC, case, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(3, fast=3))
def test_words_and_events(tmp_path, seed):
    play(EXTENDED, "words_and_events", seed, tmp_path)
