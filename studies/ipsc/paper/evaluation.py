"""Sections 5 and 6 of the paper, run again: every run that its tables and figures need."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Window
from hypermon.host.errors import HypermonError
from hypermon.host.run import Run
from hypermon.sim.cache import cache_directory
from hypermon.sim.virtual.build import library
from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.machine.recorders import PORTS, WITH_EVENT
from hypermon.studies.ipsc.machine.traces import volume
from hypermon.studies.ipsc.programs import PROGRAMS, VARIANTS
from hypermon.studies.ipsc.runs import variations
from hypermon.studies.ipsc.runs.benchmark import EVENT_BYTES, NIBBLES, bandwidth, event_bandwidth, predicted
from hypermon.studies.ipsc.runs.emulated import SEEDS, bursts, emulated, ordered
from hypermon.studies.ipsc.runs.experiment import experiment, frame_rates, group_rates
from hypermon.studies.ipsc.runs.monitor import BOARDS, CLASSIC
from hypermon.studies.ipsc.runs.printed_values import NODES, TABLE_2
from hypermon.studies.ipsc.runs.tables import Evaluation, Row
from hypermon.studies.ipsc.runs.waves import waves
from hypermon.studies.ipsc.runs.windows import bench_frames
from hypermon.studies.ipsc.runs.work_fit import work_cycles
from hypermon.studies.page.runs import Said, in_parallel

__all__ = ["BENCH_BYTES", "BENCH_NODES", "BUS_RATES", "DELAYS", "EVENT_NODES", "HOWS", "VOLUME_NODES", "add",
           "evaluate", "share_of"]

#: Points of Figures 8 and 9.
DELAYS = (0, 10, 20, 40)
BENCH_NODES = (1, 2, 3, 4, 8)
#: The same test on boards that stamp events.
EVENT_NODES = (1, 2, 4, 8, 16)
#: The environments in which each program runs.
HOWS = ("raw", "software", *PORTS)
#: Frames of Place on 8 nodes, had there been no overrun: 2.3 times its software bytes.
_PLACE_8 = 18_350_000
#: Bytes of events that each node writes in the bandwidth test without a board: long enough for phases to drift.
BENCH_BYTES = 400_000
#: Bytes per second that a host reads: what the paper reached, its bus with overheads, its bus at its peak (5.1), and
#: more than the rebuilt bus carries.
BUS_RATES = (5_000_000, 8_000_000, 18_000_000, 40_000_000)
#: Of the runs on the board.
_SEED = 1990
_BUS_BYTES = 4000
#: Up to this rate, 8 nodes and windows of 800 ns overrun the board: they make 10.6 MB/s. Beyond it, 16 nodes and
#: windows of 400 ns do: 20.9 MB/s.
_BUS_FEW = 10_000_000
#: Share of programs whose messages are put in order by their nodes' clocks: 30 generations of Life, at least.
_ORDER_UNITS = 30
#: The smallest part of a program that behaves like the whole: four rounds of Place; much of MatMul, because its factors
#: are sent whole, however few rows are multiplied.
_LEAST = {"place": 4 / 700, "matmul": 1 / 8}
#: MatMul has few events, so it can be longer: at 20,000 frames it is the whole.
_MATMUL_TIMES = 7
#: Figure 14 needs no board, so it may be longer.
VOLUME_NODES, _VOLUME_TIMES = (4, 8, 16), 10

_Tables = dict[str, list[Row]]


def share_of(program: str, nodes: int, frames: int | None) -> float:
    """The share of a program that makes about the given number of frames; None: all of it."""
    if frames is None:
        return 1.0
    share = frames * (_MATMUL_TIMES if program == "matmul" else 1) / (TABLE_2[program, nodes].frames or _PLACE_8)
    return min(1.0, max(share, _LEAST.get(program, 0.0)))


def _bench(nodes: int, delay: int, frames: int | None) -> _Tables:
    size = 4_000_000 if frames is None else max(frames * EVENT_BYTES // NIBBLES // nodes, 400)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        done = bandwidth(nodes, delay, size, Path(folder) / "run", seed=_SEED).as_dict()
    rate, merged = predicted(nodes, delay)
    _, written, backlog = bench_frames(nodes, delay, size, _SEED)
    return {"bandwidth": [{**done, "expected_frames_per_second": rate, "expected_merged": merged, "bytes": size,
                           "written_merged": written, "expected_backlog": backlog}]}


def _events(nodes: int, how: str, frames: int | None) -> _Tables:
    with TemporaryDirectory(prefix="hypermon-") as folder:
        count = max((frames or 10_000_000) // NIBBLES // nodes, 20)
        return {"events": [event_bandwidth(nodes, how, count, Path(folder) / "run")]}


def _program(program: str, nodes: int, how: str, share: float) -> _Tables:
    with TemporaryDirectory(prefix="hypermon-") as folder:
        result = experiment(program, nodes, how, share, path=Path(folder) / "run")
        row = result.as_dict()
        if how == "hardware" and result.run is not None:
            row |= _groups(result.run)
    return {"programs": [row]}


def _with_event(program: str, share: float) -> _Tables:
    """Seconds on eight nodes if the kernel's cost per event comes on top of an adapter's stores; without a board."""
    workload = VARIANTS[program](NODES[-1], share, work_cycles(program, NODES[-1], share))
    course = run(Machine(NODES[-1], seed=_SEED), workload.program, WITH_EVENT, host=workload.host)
    return {"tried": [{"question": WITH_EVENT, "what": program, "value": course.seconds}]}


def _groups(run: Run) -> Row:
    """The rates from the groups that the host read (footnote 5) against the frames' own times. Differences are means of
    all intervals, as a share of the mean rate.

    ``groups_off`` is the difference between first frames of groups, ``group_intervals`` the number of these intervals.
    ``spread_off`` is the difference in 100 equal intervals, if the frames of a group count as evenly spread.
    """
    time = np.unique(run.events()["time_ps"].to_numpy())
    edges, rates = group_rates(run)
    spread, _ = frame_rates(run)
    mean = len(time) / ((time[-1] - time[0]) / 1e12)

    def off(rates: npt.NDArray[np.float64], edges: npt.NDArray[Any]) -> float:
        own = np.histogram(time, edges)[0] / (np.diff(edges) / 1e12)
        return float(np.abs(rates - own).mean() / mean)

    return {"groups_off": off(rates, edges), "group_intervals": len(rates),
            "spread_off": off(spread, np.linspace(time[0], time[-1], len(spread) + 1))}


def _whole(program: str, nodes: int) -> _Tables:
    tables: _Tables = {"seeds": [], "rates": []}
    for seed in SEEDS:
        row, rates = emulated(program, nodes, 1.0, seed)
        tables["seeds"].append(row)
        if seed == SEEDS[0] and program in PROGRAMS:
            tables["rates"] = rates
    return tables


def _bench_seeds(nodes: int, delay: int) -> _Tables:
    rows = []
    for seed in SEEDS:
        rate, merged, backlog = bench_frames(nodes, delay, BENCH_BYTES, seed)
        rows.append({"nodes": nodes, "delay": delay, "seed": seed, "bytes": BENCH_BYTES, "frames_per_second": rate,
                     "merged": merged, "backlog": backlog})
    return {"bench_seeds": rows}


def _order(program: str, nodes: int) -> _Tables:
    least = VARIANTS[program](nodes, 1.0, 0).units
    return {"order": [ordered(program, nodes, min(1.0, _ORDER_UNITS / least), seed) for seed in SEEDS]}


def _bursts(nodes: int) -> _Tables:
    return {"bursts": [bursts(nodes, 1.0, seed) for seed in SEEDS]}


def _waves() -> _Tables:
    return {"waves": waves()}


def _bus(rate: int) -> _Tables:
    nodes, window = (8, Window.NS800) if rate <= _BUS_FEW else (16, Window.NS400)
    monitor = replace(CLASSIC, rate=rate, stop_ms=0, window=window)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        done = bandwidth(nodes, 0, _BUS_BYTES, Path(folder) / "run", monitor=monitor)
    return {"bus": [{"rate": rate, "nodes": nodes, "window_ns": window.ns, "lost": done.lost, "drained": done.drained}]}


def _volume(nodes: int, share: float) -> _Tables:
    trace = experiment("place", nodes, "software", share).trace
    assert trace is not None
    count, events = volume(trace), volume(trace, events=True)
    return {"volumes": [{"nodes": nodes, "ms": int(at), "bytes": int(count[at]), "events": int(events[at])}
                        for at in np.flatnonzero(count)]}


def _tasks(frames: int | None) -> Iterator[tuple[str, Callable[..., _Tables], tuple[Any, ...]]]:
    """Name, function and arguments of each run, the longest kind first."""
    for nodes in NODES[::-1]:
        for program in ("place", "simplex", "life", "matmul"):
            yield f"all of {program}, {nodes} nodes, {len(SEEDS)} seeds", _whole, (program, nodes)
            if nodes > 1:
                yield f"{program}, {nodes} nodes, by the nodes' clocks", _order, (program, nodes)
    for nodes in VOLUME_NODES:
        yield f"bursts of place, {nodes} nodes, {len(SEEDS)} seeds", _bursts, (nodes,)
    for nodes in NODES[::-1]:
        for program in PROGRAMS:
            for how in HOWS[::-1]:
                yield (f"{program}, {nodes} nodes, {how}", _program,
                       (program, nodes, how, share_of(program, nodes, frames)))
        if nodes > 1:
            yield f"all of simplex without polling, {nodes} nodes", _whole, ("simplex-blocked", nodes)
    for nodes in BENCH_NODES:
        for delay in DELAYS:
            yield f"bandwidth, {nodes} nodes, delay {delay}", _bench, (nodes, delay, frames)
            yield f"bandwidth, {nodes} nodes, delay {delay}, {len(SEEDS)} seeds", _bench_seeds, (nodes, delay)
    for program in PROGRAMS:
        yield f"{program}, {WITH_EVENT}", _with_event, (program, share_of(program, NODES[-1], frames))
    yield "what a port and the board do", _waves, ()
    for rate in BUS_RATES:
        yield f"a host that reads {rate / 1e6:g} MB/s", _bus, (rate,)
    for nodes in EVENT_NODES:
        for how in ("extended", "wide"):
            yield f"bandwidth, {nodes} nodes, {how}", _events, (nodes, how, frames)
    for nodes in VOLUME_NODES:
        yield (f"volume of place, {nodes} nodes", _volume,
               (nodes, min(1.0, _VOLUME_TIMES * share_of("place", min(nodes, NODES[-1]), frames))))
    for name, function in variations.TRIES.items():
        yield f"tried: {name}", function, (frames,)


def evaluate(frames: int | None, jobs: int, said: Said) -> Evaluation:
    """Runs everything. After an interruption, completed runs are not repeated.

    Parameters
    ----------
    frames : approximate length, in frames, of each run of a program and of the bandwidth test, or the paper's length if
        that is less; None: all are as long as the paper's.
    jobs : processes.
    said : as of :func:`~.page.runs.in_parallel`.
    """
    done = Evaluation()
    kept = _kept(frames, [library(monitor.geometry) for monitor in BOARDS.values()])
    kept.mkdir(parents=True, exist_ok=True)
    tasks = {name: partial(_once, kept / f"{number}.json", function, arguments)
             for number, (name, function, arguments) in enumerate(_tasks(frames))}
    for _, tables in in_parallel(tasks, jobs, said):
        for table, rows in tables.items():
            done.tables[table] += rows
    rmtree(kept)
    done.sort()
    return done


def add(done: Evaluation, how: str, frames: int | None, jobs: int, said: Said) -> None:
    """Runs the programs with one recorder, and adds them to the tables of an earlier evaluation.

    Parameters
    ----------
    done : the earlier evaluation; its length was ``frames``.
    how, jobs, said : one of :data:`HOWS`; see :func:`evaluate`.

    Raises
    ------
    HypermonError
        if the runs without a board do not repeat those of the tables exactly: they are then of another version.
    """
    again = [("raw", "software", how), NODES, PROGRAMS]
    rows, tried = [], []
    tasks = {f"{program}, {nodes} nodes, {what}": partial(_program, program, nodes, what,
                                                          share_of(program, nodes, frames))
             for what, nodes, program in product(*again)}
    tasks |= {f"{program}, {WITH_EVENT}": partial(_with_event, program, share_of(program, NODES[-1], frames))
              for program in PROGRAMS}
    for _, tables in in_parallel(tasks, jobs, said):
        rows += tables.get("programs", [])
        tried += tables.get("tried", [])
    for row in rows:
        if row["how"] != how:
            kept = done.row(row["program"], row["nodes"], row["how"])
            if any(kept[name] != row[name] for name in ("seconds", "logged", "units")):
                raise HypermonError(f"{row['program']} on {row['nodes']} nodes, {row['how']}: the tables are of "
                                    "another version; make paper")
    done.tables["programs"] = [row for row in done.tables["programs"] if row["how"] != how] + [
        row for row in rows if row["how"] == how]
    done.tables["tried"] = [row for row in done.tables["tried"] if row["question"] != WITH_EVENT] + tried
    done.sort()


def _kept(frames: int | None, boards: list[Path]) -> Path:
    """Folder of the completed runs; it changes with any of their inputs."""
    digest = sha256(repr((frames, *boards)).encode())
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(source.read_bytes())
    return cache_directory() / f"paper-{digest.hexdigest()[:24]}"


def _once(path: Path, function: Callable[..., _Tables], arguments: tuple[Any, ...]) -> _Tables:
    """The function's result, computed or kept from an earlier call."""
    if path.is_file():
        kept: _Tables = json.loads(path.read_text("utf-8"))
        return kept
    tables = function(*arguments)
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(tables), "utf-8")
    aside.replace(path)
    return tables
