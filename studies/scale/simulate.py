"""Simulates a machine of many boards: one process per core, one task per board; an interrupted simulation is continued.

RUN/simulate.json says what is simulated and which boards are recorded by the gateware. ``recording.json`` is written
last; until then RUN is no recording, and the same command continues it.
"""

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.record.several_boards import run_info
from hypermon.host.recording.info import RunInfo, utc_now
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.text.json_file import anything, integer, listed, read_json, table
from hypermon.studies.scale.boards import Job, geometry_of, like, simulate_board
from hypermon.studies.scale.workload import Machine, barriers, board_of

__all__ = ["PLAN", "cores", "gateware_boards", "simulate"]

PLAN, _BEGINS = "simulate.json", ".barriers.npy"
#: The most boards that are recorded by the gateware, and the least, of a machine of that many.
_MOST, _LEAST = 8, 4
_SHAPE = table({"machine": table({}, {}, more=True), "gateware": listed(integer(0, 1 << 16)),
                "utc_ns": integer(0, 1 << 62)}, {"boards": anything()}, more=True)


@dataclass(frozen=True)
class _Plan:
    machine: Machine
    gateware: list[int]
    utc_ns: int


def gateware_boards(machine: Machine) -> list[int]:
    """The boards that the gateware records: a random choice of four to eight, or all of fewer than four."""
    random = machine.random(5)
    count = min(int(random.integers(_LEAST, _MOST + 1)), machine.boards)
    return sorted(random.permutation(machine.boards)[:count].tolist())


def simulate(machine: Machine, run: Path, jobs: int, progress: Callable[[int, int], None]) -> tuple[int, list[int]]:
    """Simulates the boards that RUN does not have yet.

    Parameters
    ----------
    jobs : processes.
    progress : called with the boards that are done, and the events that their nodes wrote in this process's lifetime.

    Returns
    -------
    boards that were simulated now, and those of the gateware.

    Raises
    ------
    HypermonError
        if RUN is a finished recording, or one of another machine.
    """
    if machine.boards * machine.nodes % 2:
        raise HypermonError(f"--boards {machine.boards} --nodes {machine.nodes}: nodes work in pairs; make one even")
    plan = _plan(machine, run)
    for rest in [*run.glob(".board-*")]:
        shutil.rmtree(rest, ignore_errors=True)
    names = [f"board-{number}" for number in range(machine.boards)]
    missing = [number for number, name in enumerate(names) if not (run / name / "recording.json").exists()]
    np.save(run / _BEGINS, barriers(machine))
    pattern = like(geometry_of(machine.nodes))
    # Boards of the gateware take longest, so they are first.
    order = sorted(missing, key=lambda number: number not in plan.gateware)
    work = [Job(machine, number, number in plan.gateware, run / names[number], plan.utc_ns, pattern)
            for number in order]
    done, events = machine.boards - len(missing), 0
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_one, job) for job in work]
        try:
            for future in as_completed(futures):
                done, events = done + 1, events + future.result()
                progress(done, events)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    (run / _BEGINS).unlink()
    _finish(run, names, plan.gateware)
    return len(missing), plan.gateware


def _one(job: Job) -> int:
    return simulate_board(job, np.load(job.path.parent / _BEGINS))


def _plan(machine: Machine, run: Path) -> _Plan:
    """Begins a RUN, or continues one."""
    if (run / PLAN).is_file() and not (run / "recording.json").exists():
        found = read_json(run / PLAN, _SHAPE)
        if found["machine"] != asdict(machine):
            raise InputError(run / PLAN, None, "another machine is being simulated here; name a new directory, or "
                                               "repeat the command with its options to continue")
        return _Plan(machine, found["gateware"], found["utc_ns"])
    refuse_existing(run)
    run.mkdir()
    plan = _Plan(machine, gateware_boards(machine), time.time_ns())
    write_json(run / PLAN, {**asdict(plan), "boards": [asdict(board_of(machine, n)) for n in range(machine.boards)]})
    return plan


def _finish(run: Path, names: list[str], gateware: list[int]) -> None:
    info = run_info(run, names)
    info.configuration = {**info.configuration, "simulated": "gateware: board " + ", ".join(map(str, gateware)) + (
        "; model: the others" if len(gateware) < len(names) else "")}
    ends: list[dict[str, Any]] = [RunInfo.load(run / name / "recording.json").end or {} for name in names]
    info.end = {"how": "the stimulus ended", "proper": True, "ended": utc_now(),
                "duration_ps": max(end["duration_ps"] for end in ends)}
    write_json(run / "recording.json", asdict(info))


def cores() -> int:
    """Processors of this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
