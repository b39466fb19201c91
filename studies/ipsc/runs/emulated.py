"""Whole programs of Table 2 without a board, for several seeds: times, bytes and frames.

A board does not hold up its nodes, so the emulator alone gives their times and all that they write. A run on the
virtual board gives the same frames (:func:`~hypermon.studies.ipsc.runs.windows.course_frames`) at a hundred times the
cost.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.machine import Course, Machine, run
from hypermon.studies.ipsc.machine.nx2 import KINDS
from hypermon.studies.ipsc.machine.recorders import Hardware, Software
from hypermon.studies.ipsc.machine.traces import causality, software_trace, trace_bytes
from hypermon.studies.ipsc.programs import VARIANTS
from hypermon.studies.ipsc.runs.monitor import CLASSIC
from hypermon.studies.ipsc.runs.tables import Row
from hypermon.studies.ipsc.runs.windows import course_frames
from hypermon.studies.ipsc.runs.work_fit import work_cycles

__all__ = ["SEEDS", "STOPS_MS", "bursts", "emulated", "ordered"]

#: Of everything random: phases, clocks, jitter. The data that the programs work on do not depend on them.
SEEDS = (1, 2, 3, 4, 5)
#: Lengths of the host's pauses, of which one was chosen.
STOPS_MS = (0.0, 0.65, 1.3, 1.95, 2.6)
_SIZES = {kind.id: kind for kind in KINDS.values()}
_BURST_MS = 20


def _course(program: str, nodes: int, share: float, how: str, seed: int) -> tuple[Course, Any]:
    workload = VARIANTS[program](nodes, share, work_cycles(program, nodes, share))
    return run(Machine(nodes, seed=seed), workload.program, how, host=workload.host), workload


def emulated(program: str, nodes: int, share: float, seed: int) -> tuple[Row, list[Row]]:
    """A program raw, recorded by software, and through the ports.

    Returns
    -------
    ``raw``, ``soft``, ``hard``: seconds. ``soft_bytes``: in node memory. ``nibbles``, ``frames``, ``merged``: what the
    board gets. ``backlog_S``: frames that wait at most for a host whose pauses are of S ms. ``units``: pivots,
    generations, rows or rounds. ``checked``: what was compared with a sequential run. And frames per second in 100
    intervals, *MatMul*'s after the factors have come, as in Figure 12.

    Raises
    ------
    ValueError
        if a result is not the sequential one.
    """
    times: Row = {}
    rates: list[Row] = []
    row: Row = {"program": program, "nodes": nodes, "seed": seed}
    for how, column in (("raw", "raw"), ("software", "soft"), ("hardware", "hard")):
        course, workload = _course(program, nodes, share, how, seed)
        times[column] = course.seconds
        if how == "raw":
            row |= {"share": workload.share, "units": workload.units, "checked": workload.check(course.results)}
        elif how == "software":
            times["soft_bytes"] = trace_bytes(course)
        else:
            done = course_frames(course, Machine(nodes, seed=seed))
            times |= {"nibbles": done.nibbles, "frames": done.count, "merged": done.merged,
                      **{f"backlog_{stop:g}": done.backlog(replace(CLASSIC, stop_ms=stop)) for stop in STOPS_MS}}
            series, seconds = done.rates(begin_us=_distributed(course) if program == "matmul" else 0)
            rates = [{"program": program, "nodes": nodes, "interval": at, "seconds": seconds / len(series),
                      "frames_per_second": float(rate)} for at, rate in enumerate(series)]
    return {**row, **times}, rates


def _distributed(course: Course) -> float:
    """When the last message was received by a node."""
    return max((at for node in course.nodes if isinstance(node.recorder, Hardware)
                for at, record in zip(node.recorder.times, node.recorder.records, strict=True)
                if record[0] == KINDS["receive"].id), default=0.0)


def ordered(program: str, nodes: int, share: float, seed: int) -> Row:
    """How many messages of a software recording seem to be received before they were sent."""
    course, workload = _course(program, nodes, share, "software", seed)
    order = causality(software_trace(course), "time_us")
    return {"program": program, "nodes": nodes, "seed": seed, "units": workload.units, "messages": order.messages,
            "early": order.early}


def bursts(nodes: int, share: float, seed: int) -> Row:
    """Place, recorded by software (Figure 14): ``ms``, bytes, events, milliseconds that are not silent; and ``burst``,
    the most bytes a millisecond in 20 ms.
    """
    course, workload = _course("place", nodes, share, "software", seed)
    time, size = (np.concatenate(column) for column in zip(*map(_records, course.nodes), strict=True))
    volume = np.bincount((time - time.min()) // 1000, size)
    most = np.convolve(volume, np.ones(_BURST_MS), "valid").max() / _BURST_MS
    return {"nodes": nodes, "seed": seed, "units": workload.units, "ms": len(volume), "bytes": int(volume.sum()),
            "events": len(time), "busy_ms": int((volume > 0).sum()), "burst": float(most)}


def _records(node: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The times of a node's records by its own clock, in microseconds, and their bytes."""
    recorder = node.recorder
    assert isinstance(recorder, Software)
    at, now, trace = 0, recorder.first or 0, recorder.trace
    times, sizes = [], []
    while at < len(trace):
        size = _SIZES[trace[at]].size
        at += size
        now += trace[at - 2] | trace[at - 1] << 8
        times.append(now)
        sizes.append(size)
    return np.array(times, np.int64), np.array(sizes, np.int64)
