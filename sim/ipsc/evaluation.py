"""Sections 5 and 6 of the paper, run again: every run that its tables and figures need."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.sim.build import library
from hypermon.sim.ipsc.benchmark import EVENT_BYTES, NIBBLES, bandwidth, predicted
from hypermon.sim.ipsc.experiment import experiment, frame_rates
from hypermon.sim.ipsc.monitor import CLASSIC, EXTENDED
from hypermon.sim.ipsc.printed import NODES, TABLE_2
from hypermon.sim.ipsc.programs import PROGRAMS
from hypermon.sim.ipsc.traces import volume

__all__ = ["DELAYS", "Evaluation", "HOWS", "evaluate"]

#: Points of Figures 8 and 9.
DELAYS = (0, 10, 20, 40)
BENCH_NODES = (1, 2, 3, 4, 8)
#: The environments in which each program runs.
HOWS = ("raw", "software", "hardware", "extended")
#: Frames of Place on 8 nodes, had there been no overrun: 2.3 times its software bytes.
_PLACE_8 = 18_350_000
#: The least of a program that is like the whole: four rounds of Place; a sixteenth of MatMul's rows, because its
#: factors are sent whole.
_LEAST = {"place": 4 / 700, "matmul": 1 / 16}
#: Figure 14 needs no board, so it may be longer.
_VOLUME_NODES, _VOLUME_TIMES = (4, 8, 16), 3

_Series = npt.NDArray[np.float64]


@dataclass
class Evaluation:
    """What came of it.

    Members
    -------
    bench : a row a run of the bandwidth test. ``table`` : a row a run of a program.
    rates : by program and nodes, frames a second in 100 intervals, and the seconds they span.
    volumes : by nodes, bytes in each millisecond of Place.
    checked : what was compared with sequential runs, by program and nodes.
    """

    bench: list[dict[str, Any]] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    rates: dict[tuple[str, int], tuple[_Series, float]] = field(default_factory=dict)
    volumes: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    checked: dict[tuple[str, int], str] = field(default_factory=dict)

    def row(self, program: str, nodes: int, how: str) -> dict[str, Any]:
        """A row of :attr:`table`."""
        return next(row for row in self.table if (row["program"], row["nodes"], row["how"]) == (program, nodes, how))

    def bench_row(self, nodes: int, delay: int) -> dict[str, Any]:
        """A row of :attr:`bench`."""
        return next(row for row in self.bench if (row["nodes"], row["delay"]) == (nodes, delay))


def share_of(program: str, nodes: int, frames: int | None) -> float:
    """The share of a program that makes about so many frames; None: all of it."""
    if frames is None:
        return 1.0
    share = frames / (TABLE_2[program, nodes].frames or _PLACE_8)
    return min(1.0, max(share, _LEAST.get(program, 0.0)))


def _bench(nodes: int, delay: int, frames: int | None) -> dict[str, Any]:
    size = 4_000_000 if frames is None else max(frames * EVENT_BYTES // NIBBLES // nodes, 400)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        done = bandwidth(nodes, delay, size, Path(folder) / "run").as_dict()
    rate, merged = predicted(nodes, delay)
    return {**done, "expected_frames_per_second": rate, "expected_merged": merged}


def _program(program: str, nodes: int, how: str, share: float) -> tuple[dict[str, Any], str, Any]:
    with TemporaryDirectory(prefix="hypermon-") as folder:
        result = experiment(program, nodes, how, share, path=Path(folder) / "run")
        series = frame_rates(result.run) if how == "hardware" and result.run is not None else None
    return result.as_dict(), result.checked, series


def _volume(nodes: int, share: float) -> npt.NDArray[np.int64]:
    trace = experiment("place", nodes, "software", share).trace
    assert trace is not None
    return volume(trace)


def _tasks(frames: int | None) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Name, function and arguments of each run, the longest kind first."""
    for nodes in NODES[::-1]:
        for program in PROGRAMS:
            for how in HOWS[::-1]:
                yield (f"{program} {nodes} {how}", _program,
                       (program, nodes, how, share_of(program, nodes, frames)))
    for nodes in BENCH_NODES:
        for delay in DELAYS:
            yield f"bandwidth {nodes} delay {delay}", _bench, (nodes, delay, frames)
    for nodes in _VOLUME_NODES:
        yield (f"volume {nodes}", _volume,
               (nodes, min(1.0, _VOLUME_TIMES * share_of("place", min(nodes, NODES[-1]), frames))))


def evaluate(frames: int | None, jobs: int, said: Callable[[int, int, str], None]) -> Evaluation:
    """Runs everything.

    Parameters
    ----------
    frames : each run of a program, and of the bandwidth test, is as long as makes about so many frames, or as the
        paper's if that is less; None: all are as long as the paper's.
    jobs : processes.
    said : told how many runs are done, of how many, and which was the last.
    """
    done = Evaluation()
    for monitor in (CLASSIC, EXTENDED):
        library(monitor.geometry)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(function, *arguments): (name, arguments) for name, function, arguments in _tasks(frames)}
        for count, task in enumerate(as_completed(tasks), 1):
            name, arguments = tasks[task]
            _keep(done, name.split()[0], arguments, task.result())
            said(count, len(tasks), name)
    done.bench.sort(key=lambda row: (row["nodes"], row["delay"]))
    done.table.sort(key=lambda row: (list(PROGRAMS).index(row["program"]), row["nodes"], HOWS.index(row["how"])))
    return done


def _keep(done: Evaluation, kind: str, arguments: tuple[Any, ...], result: Any) -> None:
    if kind == "bandwidth":
        done.bench.append(result)
    elif kind == "volume":
        done.volumes[arguments[0]] = result
    else:
        row, checked, series = result
        done.table.append(row)
        done.checked[row["program"], row["nodes"]] = checked
        if series is not None:
            done.rates[row["program"], row["nodes"]] = series
