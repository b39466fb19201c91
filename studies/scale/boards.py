"""Simulates one board of a machine: its recording, by the gateware or by the model, and its clock.

The two kinds of recording differ in where the blocks begin and in their number. Events, losses and accounts are equal.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Geometry, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.recording.clock import CLOCK, Answer, ClockTie, WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import checksum
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import RunWriter
from hypermon.sim.virtual.link import VirtualLink
from hypermon.studies.scale.recording_model import record_model
from hypermon.studies.scale.workload import Board, Machine, board_of, stimulus_of

__all__ = ["Job", "geometry_of", "like", "simulate_board"]

#: What ``configuration.simulated`` of a recording says.
_GATEWARE, _MODEL = "gateware", "model"
#: The host asks each board once a second; the answer takes this long, in us, and comes at any moment between.
_ASK_S, _ANSWER_US = 1, (2.0, 10.0)


def geometry_of(nodes: int) -> Geometry:
    """The classic board that all boards of a machine are."""
    return Geometry(nodes)


@dataclass(frozen=True)
class Job:
    """A board to simulate.

    Parameters
    ----------
    machine, number : of the board.
    by_gateware : or by the model.
    path : of the new RUN of the board.
    utc_ns : UTC of the machine's time 0.
    like : ``recording.json`` of an idle board of the gateware, which says how each of them is set.
    """

    machine: Machine
    number: int
    by_gateware: bool
    path: Path
    utc_ns: int
    like: dict[str, Any]


def simulate_board(job: Job, begins_us: npt.NDArray[np.float64]) -> int:
    """Records a board. The RUN appears when it is whole. Returns the number of events that its nodes wrote."""
    writes = stimulus_of(job.machine, job.number, begins_us)
    geometry = geometry_of(job.machine.nodes)
    info = RunInfo(**job.like)
    info.board = f"sim:{_GATEWARE if job.by_gateware else _MODEL}/{job.number}"
    info.configuration = {**info.configuration, "simulated": _GATEWARE if job.by_gateware else _MODEL}
    if job.by_gateware:
        aside = job.path.with_name(f".{job.path.name}.gateware")
        with Device(VirtualLink(writes, geometry, name=info.board.removeprefix("sim:"))) as device:
            record(device, aside, Settings(), aside=True)
        own = RunInfo.load(aside / "recording.json")
        own.configuration = info.configuration
        duration_ps = (own.end or {}).get("duration_ps") or 0
        _keep_clock(job, aside, duration_ps)
        own.end = {**(own.end or {}), "clock": checksum(aside / CLOCK)}
        write_json(aside / "recording.json", asdict(own))
        aside.rename(job.path)
        return len(writes) // 2
    recorded = record_model(writes, geometry, Window.NS800, info.epoch)
    with RunWriter(job.path, info, aside=True) as writer:
        for block in recorded.blocks:
            writer.append(block)
        _keep_clock(job, writer.directory, recorded.duration_ps)
        writer.close(how="the stimulus ended", proper=True, duration_ps=recorded.duration_ps, all_written=True,
                     outages=[])
    return len(writes) // 2


def like(geometry: Geometry) -> dict[str, Any]:
    """``recording.json`` of a board of the gateware, before its recording."""
    with Device(VirtualLink(None, geometry)) as device:
        configuration = device.prepare(Settings())
        identity = device.identity
        info = RunInfo(board="sim:", nodes=identity.nodes, clock_hz=identity.clock_hz, window="800",
                       latency=device.scale.latency, epoch=device.epoch, identity=identity.as_dict(),
                       configuration=configuration, modes=configuration["mode"],
                       item_timeout_clocks=configuration["item_timeout_clocks"])
    return asdict(info)


def _keep_clock(job: Job, directory: Path, duration_ps: int) -> None:
    """Writes the estimate that a host makes of a board's clock when it asks it once a second."""
    board = board_of(job.machine, job.number)
    save_clock(directory, _estimate(job, board, duration_ps))


def _estimate(job: Job, board: Board, duration_ps: int) -> WallClock:
    random = job.machine.random(4, job.number)
    tie = ClockTie(job.utc_ns)
    end_s = board.machine_ps(np.array([duration_ps]))[0] / 1e12
    asked = np.append(np.arange(board.start_ps / 1e12 + 1e-3, end_s, _ASK_S), end_s)
    for second in asked:
        took_ns = random.uniform(*_ANSWER_US) * 1000
        before_ns = job.utc_ns + round(second * 1e9)
        latched_ps = np.array([round(second * 1e12 + random.uniform(0, took_ns) * 1000)])
        # A clock has no cable.
        board_ps = int(replace(board, cables_ps=[0]).local(latched_ps, 0)[0])
        tie.add(Answer(board_ps // 1000, before_ns, before_ns + round(took_ns)))
    return tie.estimate()


