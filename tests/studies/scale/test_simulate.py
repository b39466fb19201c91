"""A simulated machine of many boards: the model agrees with the gateware, and the run with what was simulated."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import Geometry, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.record.recorder import record
from hypermon.host.recording.parts import ACCOUNT
from hypermon.host.run import Run
from hypermon.host.text.json_file import anything, read_json
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink
from hypermon.studies.scale import workload
from hypermon.studies.scale.boards import Job, like, simulate_board
from hypermon.studies.scale.recording_model import record_model
from hypermon.studies.scale.simulate import gateware_boards, simulate
from hypermon.studies.scale.workload import Machine, barriers, board_of, writes_of

#: What depends on where blocks begin, on when the host stops the board, and on the files of the recording itself.
_OTHERWISE = ("stream_size", "last_time", "made_of", "check")


def _account(run: Path) -> dict[str, object]:
    return {name: value for name, value in read_json(run / ACCOUNT, anything()).items() if name not in _OTHERWISE}


def _bytes(run: Path) -> list[bytes]:
    return [path.read_bytes() for path in [*sorted((run / "events").glob("*.parquet")), run / "loss.parquet"]]


def _same(one: Path, other: Path) -> None:
    for run in (one, other):
        Run(run).decode()
    assert _account(one) == _account(other)
    assert _bytes(one) == _bytes(other)


def _idle(done: int, events: int) -> None:
    """No progress is shown."""


@pytest.fixture(scope="module", params=["bsp", "exchange"])
def simulated(request, tmp_path_factory):
    machine = Machine(10, 16, 40_000, request.param, 7)
    run = tmp_path_factory.mktemp("scale") / "run"
    return machine, run, simulate(machine, run, 1, _idle)[1]


def test_the_model_agrees_with_the_gateware_on_every_sampled_board(simulated, tmp_path):
    machine, run, sampled = simulated
    assert sampled == gateware_boards(machine)
    assert 4 <= len(sampled) <= 8
    begins, lost = barriers(machine), 0
    for number in sampled:
        job = Job(machine, number, False, tmp_path / f"model-{number}", 10**18, like(Geometry(machine.nodes)))
        simulate_board(job, begins)
        shutil.copytree(run / f"board-{number}", tmp_path / f"gateware-{number}")
        _same(tmp_path / f"gateware-{number}", job.path)
        lost += Run(job.path).stats()["lost"]
    assert lost, "no board lost anything: the gate was not compared"


@pytest.mark.parametrize("seed", range(3))
def test_the_model_agrees_with_the_gateware_when_buffers_overflow_all_the_time(tmp_path, seed, monkeypatch):
    """Bursts that meet each other's remains, at all phases of the window."""
    random = np.random.default_rng(seed)
    geometry, rows = Geometry(4), []
    for node in range(4):
        gaps = np.where(random.random(6000) < 0.004, random.integers(20_000, 80_000, 6000),
                        random.integers(60, 400, 6000) + 500 * (random.random(6000) < 0.3))
        times = np.cumsum(gaps) * 1000 + 10**9
        both = np.column_stack([times - 30_000, times]).ravel()
        values = random.integers(0, 16, 6000)
        rows.append((both, np.full(12_000, node, np.int16), np.column_stack([values, values | 16]).ravel()))
    time, node, port = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((node, time))
    writes = Stimulus(time[order], node[order], port[order].astype(np.uint16), [0] * 4)
    with Device(VirtualLink(writes, geometry)) as device:
        ledger = record(device, tmp_path / "gateware", Settings())
    assert ledger.lost > 1000
    machine = Machine(1, 4, 1, "bsp", 1)
    monkeypatch.setattr("hypermon.studies.scale.boards.stimulus_of", lambda *_: writes)
    simulate_board(Job(machine, 0, False, tmp_path / "model", 10**18, like(geometry)), np.zeros(2))
    _same(tmp_path / "gateware", tmp_path / "model")


def test_every_recording_says_how_it_was_made(simulated):
    machine, run, sampled = simulated
    for number in range(machine.boards):
        said = Run(run / f"board-{number}").info.configuration["simulated"]
        assert said == ("gateware" if number in sampled else "model")
    assert Run(run).info.configuration["simulated"].startswith("gateware: board ")


def test_every_event_that_was_written_has_come_or_is_counted_lost(simulated):
    machine, run, _ = simulated
    begins = barriers(machine)
    stats = Run(run).stats()
    for node in range(machine.boards * machine.nodes):
        written = len(writes_of(machine, node, begins)[0])
        assert stats["events_per_node"][node] + stats["lost_per_node"][node] == written
    assert stats["lost"] > 0


def test_times_of_all_boards_are_those_of_the_machine_within_the_uncertainty(simulated):
    """The first event of each node is at a known time of the machine; that of the run is the first board's."""
    machine, run, _ = simulated
    opened = Run(run)
    opened.decode()
    begins = barriers(machine)
    first = pq.read_table(run / "events", columns=["node", "time_ps"]).group_by("node").aggregate([("time_ps", "min")])
    came = dict(zip(*(column.to_pylist() for column in (first["node"], first["time_ps_min"])), strict=True))
    for number, own in enumerate(pq.read_table(run / "boards.parquet").to_pylist()):
        for node in range(number * machine.nodes, (number + 1) * machine.nodes):
            true = writes_of(machine, node, begins)[0][:1]
            expected = int(board_of(machine, 0).local(true, 0)[0])
            # The window, the cable, and the alignment.
            assert abs(came[node] - expected) <= 800_000 + 200_000 + own["uncertainty_ns"] * 1000, (number, node)


def test_an_interrupted_simulation_is_continued(simulated, tmp_path):
    machine, run, sampled = simulated
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "recording.json").unlink()
    gone = [sampled[0], next(n for n in range(machine.boards) if n not in sampled)]
    for number in gone:
        shutil.rmtree(copy / f"board-{number}")
    kept = {path: path.stat().st_mtime_ns for path in copy.glob("board-*/stream.bin")}
    (copy / ".board-3.77.new").mkdir()
    seen = []
    made, _ = simulate(machine, copy, 1, lambda done, events: seen.append(done))
    assert made == 2
    assert seen == [machine.boards - 1, machine.boards]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert not [*copy.glob(".board-*")]
    for number in gone:
        assert (copy / f"board-{number}" / "stream.bin").read_bytes() == \
            (run / f"board-{number}" / "stream.bin").read_bytes()


def test_another_machine_does_not_continue_a_simulation(simulated, tmp_path):
    machine, run, _ = simulated
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    with pytest.raises(HypermonError, match="exists already"):
        simulate(machine, copy, 1, _idle)
    (copy / "recording.json").unlink()
    with pytest.raises(HypermonError, match="another machine is being simulated here"):
        simulate(replace(machine, seed=8), copy, 1, _idle)


def test_the_model_refuses_what_it_does_not_hold_for():
    close = Stimulus(np.array([10**6, 10**6 + 10_000, 10**6 + 20_000, 10**6 + 30_000]), np.zeros(4, np.int16),
                     np.array([16, 0, 16, 0], np.uint16), [0])
    with pytest.raises(ValueError, match="less than four clocks apart"):
        record_model(close, Geometry(1), Window.NS800, 1)


def test_at_least_the_requested_events_are_written():
    for name in workload.WORKLOADS:
        machine = Machine(4, 4, 1000, name, 1)
        begins = barriers(machine)
        assert sum(len(writes_of(machine, node, begins)[0]) for node in range(16)) >= 1000
