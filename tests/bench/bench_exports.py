"""How fast a run is decoded, asked and exported on one core, beside babeltrace2 on the same data.

Millions of events a second of processor time, so that other work of the machine counts little; decoding is the best of
three. The runs: frames of one event, in blocks as long as they get; COMPACT blocks; and one so large that only its
tables are made, for a question about every node's rate. Random events take more room than real ones, in which much
repeats.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from bench_decode import CLOCK_HZ, compact_stream, stream
from hypermon.hdl.layout import LATENCY
from hypermon.host.blocks.blocks import PAYLOAD_MAX
from hypermon.host.decode.account import DECODE_FORMAT
from hypermon.host.export.formats import export
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run
from hypermon.host.tables.parquet import EVENT_SCHEMA, LOSS_SCHEMA, EventWriter, TableWriter

QUESTION = """select node, count(*) * 1e12 / (max(time_ps) - min(time_ps)) as rate
              from events group by node order by node"""
GOAL = 10


def cpu_s() -> float:
    """Of this process and the children it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (
        resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of processor time, and elapsed."""
    cpu, begin = cpu_s(), time.perf_counter()
    work()
    return cpu_s() - cpu, time.perf_counter() - begin


def made(path: Path, data: bytes) -> Run:
    with RunWriter(path, RunInfo("bench", 16, CLOCK_HZ, "800", LATENCY, 1)) as writer:
        writer.append(data)
        writer.close(how="made")
    return Run(path)


def large(path: Path, count: int, rng: np.random.Generator) -> Run:
    """A run whose tables alone are there: so many events at random times, of random nodes."""
    made(path, b"")
    begin = 0
    with EventWriter(path / "events") as writer:
        for at in range(0, count, 1 << 20):
            size = min(1 << 20, count - at)
            times = begin + np.cumsum(rng.integers(1, 100, size)) * 800_000
            begin = int(times[-1])
            columns = [pa.array(times), pa.array(rng.integers(0, 16, size, np.int16)),
                       pa.array(rng.integers(0, 16, size, np.uint8))]
            writer.add(pa.Table.from_arrays(columns, schema=EVENT_SCHEMA))
    TableWriter(path / "loss.parquet", LOSS_SCHEMA).close()
    write_json(path / "decode.json", {"format": DECODE_FORMAT, "stream_size": 0, "begins": 0})
    return Run(path)


def decoded(name: str, run: Run, count: int) -> None:
    best = 1e9
    for _ in range(3):
        (run.path / "decode.json").unlink(missing_ok=True)
        best = min(best, spent(run.decode)[0])
    size = sum(path.stat().st_size for path in (run.path / "events").iterdir())
    print(f"decode to Parquet, {name:18}{count / best / 1e6:7.1f}   {size / count:5.2f} bytes an event"
          f"   (goal >= {GOAL})", flush=True)


def exported(run: Run, count: int, folder: Path) -> None:
    """The formats, and the peer."""
    for form in ("ctf", "csv"):
        cpu, _ = spent(lambda form=form: export(run, form, str(folder / form)))
        goal = f"   (goal >= {GOAL})" if form == "ctf" else ""
        print(f"export --to {form:25}{count / cpu / 1e6:7.1f}{goal}", flush=True)
    if shutil.which("babeltrace2"):
        for name, arguments in (("no output", ["--output-format=dummy"]), ("text", [])):
            cpu, _ = spent(lambda arguments=arguments: subprocess.run(
                ["babeltrace2", *arguments, folder / "ctf"], check=True, stdout=subprocess.DEVNULL))
            print(f"babeltrace2 reads that, {name:13}{count / cpu / 1e6:7.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1 << 22)
    parser.add_argument("--large", type=int, default=100_000_000, help="events of the largest run")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    rng = np.random.default_rng(options.seed)
    print(f"{options.events:,} events of 16 nodes, seed {options.seed}: M events/s of processor time")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        run = made(folder / "frames", stream(16, 1, options.events, PAYLOAD_MAX // 16, rng))
        decoded("frames", run, options.events)
        short = stream(16, 1, options.events, 64, rng)
        decoded("frames, 64 a block", made(folder / "short", short), options.events)
        for gap in (10, 100):
            data, count = compact_stream(16, gap, False, 1 << 10, rng)
            decoded(f"COMPACT, gap {gap}", made(folder / f"compact{gap}", data), count)
        exported(run, options.events, folder)
        if options.large:
            run = large(folder / "large", options.large, rng)
            cpu, elapsed = spent(lambda: Run(run.path).sql(QUESTION).fetchall())
            print(f"rate of every node, of {options.large:,} events: {elapsed:.2f} s, {cpu:.2f} s of processor time"
                  f"   (goal < 2 s on {os.cpu_count()} cores)", flush=True)


if __name__ == "__main__":
    main()
