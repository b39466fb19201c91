"""Many boards: bytes of the store, the merge in one order, and analyses, for 16 and 256 boards.

    store    bytes of RUN/events against those of the same events as each board's own tables
    merge    events in one order, as exports read them: millions of events a second of processor time of one core
    turns    the same of all boards against the fewest, measured in turns
    order    DuckDB's `order by time_ps, node` of the first 4 million events: equal, ties included
    queries  rate, merging, noise, latency, 10 ms of all boards, one node: elapsed time on two cores
    dask     latency by one worker and by two, if Dask is installed
    ratio    processor time per event of all boards, against that of the fewest

The boards' events are random, with drifts of up to 50 ppm. Every measurement is a process of its own; its memory is the
most that it had. Whole machines, simulated and recorded, are measured by bench_machine.py.
"""

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from hypermon.host.analysis import by_board
from hypermon.host.decode.alignment import Alignment
from hypermon.host.tables.parquet import EVENT_SCHEMA, EventWriter
from hypermon.host.tables.selection import Selection
from hypermon.host.tables.windowed_merge import GROUP_EVENTS, merged_batches

NODES = 16
#: How often each long analysis is measured.
PASSES = 3
#: Clocks between the events of a node, and picoseconds of a clock.
GAP, CLOCK_PS = 1600, 10_000


def write(root: Path, boards: int, events: int) -> tuple[int, int]:
    """Writes boards in the layout of a RUN. Returns their bytes, and those of the same events as boards of one run."""
    rng, sizes = np.random.default_rng(1), []
    for board in range(boards):
        place = root / "events" / f"board={board:03d}"
        place.mkdir(parents=True)
        offset, drift = int(rng.integers(0, 10**9)), rng.uniform(-50, 50)
        aligned = Alignment("", 0, NODES, "host clock", offset, drift, ticks_hz=8 * 10**12 // CLOCK_PS)
        group = min(max(GROUP_EVENTS // boards, 1 << 12), 1 << 20)
        state = rng.bit_generator.state
        for way, size in (("own", 1 << 20), ("date=2026-11-23", group)):
            rng.bit_generator.state = state
            with EventWriter(place / way, EVENT_SCHEMA, group=size) as writer:
                for table in _tables(rng, board, events // boards, None if way == "own" else aligned):
                    writer.add(table)
            sizes.append((way, sum(path.stat().st_size for path in (place / way).iterdir())))
        shutil.rmtree(place / "own")
    return tuple(sum(size for way, size in sizes if (way == "own") == own) for own in (False, True))


def _tables(rng: np.random.Generator, board: int, count: int, aligned: Alignment | None):
    base = 0
    for at in range(0, count, 1 << 20):
        some = min(1 << 20, count - at)
        clocks = base + np.cumsum(rng.geometric(NODES / GAP, some))
        base = int(clocks[-1])
        times = clocks * CLOCK_PS
        times = times if aligned is None else aligned.times(times)
        nodes = rng.integers(0, NODES, some).astype(np.int16) + np.int16(NODES * board)
        yield pa.table([pa.array(times), pa.array(nodes), pa.array(rng.integers(0, 16, some).astype(np.uint8))],
                       schema=EVENT_SCHEMA)


def files(root: Path) -> list[list[Path]]:
    return [sorted(board.rglob("*.parquet")) for board in sorted((root / "events").iterdir())]


def merge(root: Path) -> dict[str, float]:
    """The first pass loads libraries and obtains memory; least, median and most of five more."""
    pa.set_cpu_count(1)
    rates = [_merged(root) for _ in range(6)]
    return {"first M events/s of CPU": rates[0], **spread("M events/s of CPU", rates[1:])}


def _merged(root: Path) -> float:
    """Millions of events a second of processor time."""
    began, count = time.process_time(), 0
    for batch in merged_batches(files(root), Selection()):
        count += len(batch)
    return count / (time.process_time() - began) / 1e6


def turns(root: Path, other: Path) -> dict[str, float]:
    """The merge of two stores in turns, because other programs slow down both: the second's rate by the first's."""
    pa.set_cpu_count(1)
    rates = [(_merged(root), _merged(other)) for _ in range(6)][1:]
    return spread("merge against the fewest boards", [second / first for first, second in rates])


def spread(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}, least": min(values), name: statistics.median(values), f"{name}, most": max(values)}


def order(root: Path) -> dict[str, float]:
    """Of the first events, so that DuckDB's sort needs little memory."""
    until = 0
    for k, batch in enumerate(merged_batches(files(root), Selection())):
        until = batch["time_ps"][-1].as_py()
        if k == 15:
            break
    ours = pa.Table.from_batches(merged_batches(files(root), Selection(to_ps=until)))
    names = [str(path) for own in files(root) for path in own]
    theirs = duckdb.sql("select time_ps, node, nibble "
                        f"from read_parquet({names}, filename = true, file_row_number = true) where time_ps < {until} "
                        "order by time_ps, node, filename, file_row_number").to_arrow_table()
    assert ours.combine_chunks().equals(theirs.cast(ours.schema).combine_chunks()), "another order"
    ties = np.diff(ours["time_ps"].to_numpy()) == 0
    return {"events compared": len(ours), "ties": int(np.count_nonzero(ties))}


def queries(root: Path) -> dict[str, float]:
    by_board.SETTINGS.update(threads=2, memory_limit="1500MB")
    own = by_board._Files(tuple(str(path) for one in files(root) for path in one), ())
    begin = 2 * 10**10
    found = {}
    asked = {**{name: functools.partial(by_board._asked, own, name) for name in ("rate", "merging", "noise")},
             "latency": lambda: by_board._latencies(own, by_board.Messages("nibble = 1", "nibble = 2", "node % 16"))}
    for name, where in (("10 ms", f"time_ps >= {begin} and time_ps < {begin + 10**10}"), ("one node", "node = 37")):
        def ask(where: str = where) -> int:
            with by_board._connect(own, ["events"]) as connection:
                return len(connection.sql(f"select * from events where {where}").to_arrow_table())
        asked[name] = ask
    for name, ask in asked.items():
        took, cpu = [], []
        for _ in range(5 if name.startswith(("10 ms", "one")) else PASSES):
            began, used = time.perf_counter(), time.process_time()
            ask()
            took.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
        found |= spread(f"{name} s", took) | spread(f"{name} CPU s", cpu)
    return found


def dask(root: Path, workers: int) -> dict[str, float]:
    """Latency, by a cluster of processes with a thread each."""
    from distributed import Client, LocalCluster

    messages = by_board.Messages("nibble = 1", "nibble = 2", "node % 16")
    own = files(root)
    size = -(-len(own) // (by_board._PARTS * workers))
    boards = [by_board._Files(tuple(map(str, chain.from_iterable(own[at:at + size]))), ())
              for at in range(0, len(own), size)]
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        found = []
        for _ in range(4):      # the first is of imports, too
            began = time.perf_counter()
            client.gather(by_board._shares(client, boards, messages, by_board._SHARES * workers))
            found.append(time.perf_counter() - began)
    return spread(f"{workers} workers, s", found[1:])


def apart(what: str, root: Path, *more: object) -> dict[str, float]:
    """Runs a measurement in a process of its own, prints it, and returns it."""
    done = subprocess.run([sys.executable, __file__, "--measure", what, str(root), *map(str, more)],
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        raise SystemExit(f"{what}: it ended with {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"    {what:8}", ", ".join(f"{name} {value:,.4g}" for name, value in found.items()), flush=True)
    return found


def ratios(first: dict[str, float], found: dict[str, float]) -> str:
    """Processor time of the analyses, and the merge's events a second, as multiples of those of another run."""
    names = [name for name in found if name.endswith("CPU s") or name == "M events/s of CPU"]
    parts = [f"{name.removesuffix(' CPU s')} {found[name] / first[name]:.2f}" for name in names]
    whole = [sum(one[f"{name} CPU s"] for name in ("rate", "merging", "noise", "latency")) for one in (first, found)]
    return ", ".join([*parts, f"all analyses {whole[1] / whole[0]:.2f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--boards", type=int, nargs="*", default=[16, 256])
    parser.add_argument("--folder", help="where the stores are written; default: that of temporary files")
    parser.add_argument("--measure", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        import resource

        what, root, *more = options.measure
        found = globals()[what](Path(root), *(int(one) if one.isdigit() else Path(one) for one in more))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(json.dumps({**found, "MB": peak}))
        return
    first: dict[str, float] = {}
    fewest = None
    with_dask = importlib.util.find_spec("distributed") is not None
    with contextlib.ExitStack() as stack:
        for boards in options.boards:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hypermon-", dir=options.folder))
            size, own = write(Path(folder), boards, options.events)
            print(f"{boards} boards, {options.events:,} events: {size / 1e6:,.1f} MB, "
                  f"{size / own:.4f} of the boards' own")
            found = {name: value for what in ("merge", "order", "queries")
                     for name, value in apart(what, Path(folder)).items()}
            took = [apart("dask", Path(folder), workers)[f"{workers} workers, s"]
                    for workers in ((1, 2) if with_dask else ())]
            if took:
                print(f"    two workers are {took[0] / took[1]:.2f} x as fast as one")
            if fewest is not None:
                apart("turns", fewest, folder)
                print(f"    ratio    {ratios(first, found)}")
            first, fewest = first or found, fewest or Path(folder)


if __name__ == "__main__":
    main()
