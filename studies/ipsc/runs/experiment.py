"""One run of a program (not recorded, recorded by software, or recorded by the board), and its figures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.hdl.layout import Sink
from hypermon.host.record.recorder import Moment
from hypermon.host.run import Run
from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.machine.recorders import PORTS
from hypermon.studies.ipsc.machine.traces import Causality, causality, software_trace, trace_bytes
from hypermon.studies.ipsc.programs import VARIANTS
from hypermon.studies.ipsc.runs.monitor import BOARDS, Monitor, play, stimulus
from hypermon.studies.ipsc.runs.windows import course_frames
from hypermon.studies.ipsc.runs.work_fit import work_cycles

__all__ = ["Result", "board_events", "experiment", "frame_rates", "group_rates"]

_FRAME_BYTES = 16


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Members
    -------
    seconds : raw and software: by the emulator's clock. With a board: from the first time that it stamped to the last.
    logged : bytes in node memory, or across the board's link: 16 per frame, or the event-carrying payload.
    frames : on the classic board. ``writes``: nibbles that the nodes wrote; bytes, on wide ports. ``lost``: items that
        the board refused.
    merged : share of nibbles that share their frame.
    expected_frames, expected_backlog : on the classic board, what arithmetic makes of the nodes' writes: frames of a
        board that loses nothing, and how many would wait for the host.
    units : pivots, generations, rows or rounds.
    checked : what was compared with a sequential run.
    order : messages received before they were sent, in this trace; None for a raw run.
    run : the RUN, with a board. ``trace``: the software's.
    """

    program: str
    nodes: int
    how: str
    share: float
    seconds: float
    logged: int
    frames: int
    writes: int
    lost: int
    merged: float
    checked: str
    units: int
    order: Causality | None = None
    expected_frames: int = 0
    expected_backlog: int = 0
    run: Run | None = None
    trace: pa.Table | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a table."""
        values = {name: getattr(self, name) for name in (
            "program", "nodes", "how", "share", "seconds", "logged", "frames", "writes", "lost", "merged", "units",
            "checked")}
        if self.expected_frames:
            values |= {"expected_frames": self.expected_frames, "expected_backlog": self.expected_backlog}
        early = {} if self.order is None else {"messages": self.order.messages, "early": self.order.early}
        return {**values, **early}


def experiment(program: str, nodes: int, how: str, share: float, *, path: Path | None = None,
               delay: int | None = None, monitor: Monitor | None = None, seed: int = 1990,
               progress: Callable[[Moment], None] | None = None) -> Result:
    """Runs a program, checks its result, and measures.

    Parameters
    ----------
    program : of Table 1, or a variant of one.
    how : ``raw``, ``software``, or a key of :data:`~hypermon.studies.ipsc.machine.recorders.PORTS`: ``hardware`` is the
        board of 1990.
    share : of the whole program. ``delay``: iterations between two nibbles; None: the port's.
    path : of the RUN, with a board. ``monitor``: another board setting.

    Raises
    ------
    ValueError
        if the result is not the sequential one.
    """
    machine = Machine(nodes, seed=seed)
    workload = VARIANTS[program](nodes, share, work_cycles(program, nodes, share))
    course = run(machine, workload.program, how, delay=delay, host=workload.host)
    checked = workload.check(course.results)
    share = workload.share
    if how == "raw":
        return Result(program, nodes, how, share, course.seconds, 0, 0, 0, 0, 0.0, checked, workload.units)
    if how == "software":
        trace = software_trace(course)
        return Result(program, nodes, how, share, course.seconds, trace_bytes(course), 0, 0, 0, 0.0, checked,
                      workload.units, causality(trace, "time_us"), trace=trace)
    port, writes = PORTS[how], stimulus(course, machine)
    assert path is not None
    monitor = monitor or BOARDS[how]
    recorded = play(writes, path, monitor, progress=progress)
    stats, time = recorded.stats(), recorded.events()["time_ps"].to_numpy()
    written = None if port.stamped else course_frames(course, machine, monitor.window_s)
    return Result(program, nodes, how, share, float(time[-1] - time[0]) / 1e12,
                  stats["payload_bytes"] if port.stamped else stats["frames"] * _FRAME_BYTES, stats["frames"],
                  len(writes) // port.writes, stats["lost"], stats["merged_percent"] / 100, checked,
                  workload.units, causality(board_events(recorded), "time_ps"),
                  written.count if written else 0, written.backlog(monitor) if written else 0, recorded)


def board_events(run: Run) -> pa.Table:
    """Whole events of a RUN, with ``peer`` and ``sequence`` of messages."""
    classic = run.info.sink == Sink.CLASSIC.name.lower()
    table = pq.read_table(run.path / "framed.parquet") if classic else run.events()
    return table.filter(pc.invert(table["aborted"]))


def frame_rates(run: Run, intervals: int = 100) -> tuple[npt.NDArray[np.float64], float]:
    """Frames per second in N equal intervals, from the groups that the host read (footnote 5 of the paper), and the
    seconds from the first frame to the last. A group's frames count as evenly spread over its time.
    """
    groups = pq.read_table(run.path / "groups.parquet")
    frames, first, last = (groups[name].to_numpy().astype(float) for name in ("frames", "first_ps", "last_ps"))
    begin, end = first[0], last[-1]
    edges = np.linspace(begin, end, intervals + 1)
    # Frames up to each edge: those of completed groups, and a part of the group in progress.
    done = np.array([np.sum(frames * np.clip((edge - first + 1) / (last - first + 1), 0, 1)) for edge in edges])
    return np.diff(done) / (np.diff(edges) / 1e12), (end - begin) / 1e12


def group_rates(run: Run, intervals: int = 100) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """What the groups that the host read (footnote 5 of the paper) state exactly: rates between first frames of groups.

    A group has a count, and the times of its first and its last frame. Where its other frames are is not known. The
    edges of N equal intervals are therefore moved to the nearest first frame of a group; the last edge is the last
    frame. Edges that fall together are one, so that coarse groups give fewer intervals.

    Returns
    -------
    The edges in ps, one more than there are intervals, and the frames per second of each interval. A frame at an edge
    belongs to the interval that begins there; the last frame, to the last interval.
    """
    groups = pq.read_table(run.path / "groups.parquet")
    frames, first, last = (groups[name].to_numpy() for name in ("frames", "first_ps", "last_ps"))
    wanted = np.linspace(float(first[0]), float(last[-1]), intervals + 1)[:-1]
    later = np.clip(np.searchsorted(first, wanted), 0, len(first) - 1)
    before = np.clip(later - 1, 0, None)
    begins = np.unique(np.where(wanted - first[before] < first[later] - wanted, before, later))
    edges = np.append(first[begins], last[-1]).astype(np.int64)
    return edges, np.add.reduceat(frames, begins) / (np.diff(edges) / 1e12)
