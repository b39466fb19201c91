"""Bytes an event takes in RUN/events: real captures, a real program's threads, an emulated iPSC/2, random events.

The captures are looked for in sr/ of the folder HYPERMON_DATA, or of ../shared/data beside the project;
their names, channels
and edges are those of tests/sim/played/test_captures.py. A file has some kilobytes around its columns (the schema, and
what is in which part of it), which is most of a run of a few events, and nothing in a long one: so both are shown, the
files as they are, and the columns alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pyarrow.parquet as pq
from bench_decode import compact_stream, stream
from bench_exports import made
from hypermon.host.blocks.blocks import PAYLOAD_MAX
from hypermon.host.run import Run

from tests.sim.played.test_captures import BUSES, DISPLAYS

ROOT = Path(__file__).parents[2]
HYPERMON = Path(sys.executable).with_name("hypermon")
GOAL = 3


def show(name: str, run: Run) -> None:
    files = run.event_files()
    whole = sum(path.stat().st_size for path in files)
    groups = [file.metadata.row_group(k) for file in map(pq.ParquetFile, files)
              for k in range(file.metadata.num_row_groups)]
    columns = sum(group.column(k).total_compressed_size for group in groups for k in range(group.num_columns))
    events = sum(group.num_rows for group in groups)
    print(f"{name:44} {events:10,} {whole / max(events, 1):10.2f} {columns / max(events, 1):14.2f}", flush=True)


def command(*words: object) -> None:
    subprocess.run([HYPERMON, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def captures(folder: Path) -> None:
    data = Path(os.environ.get("HYPERMON_DATA", ROOT.parent / "shared" / "data")) / "sr"
    if not data.is_dir():
        print(f"no captures in {data}; set HYPERMON_DATA")
        return
    displays = [(name, f"{channels},falling") for name, channels, _ in DISPLAYS]
    for name, channels in displays + BUSES:
        # A bus has several nibbles in 800 ns.
        command("sim", data / name, "--port", f"0={channels}", "--window", 1, "-o", folder / name)
        show(name, Run(folder / name))
    ports = [word for node, (name, channels) in enumerate(displays + BUSES)
             for word in ("--port", f"{data / name}#{node}={channels}")]
    command("sim", *(data / name for name, _ in displays + BUSES), *ports, "--window", 1, "-o", folder / "all")
    show("all of them, a node each", Run(folder / "all"))


def programs(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "hypermon.sim.demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    show("make demo: 16 threads of a real program", Run(folder / "demo" / "run"))
    for program in ("life", "simplex"):
        command("ipsc", "run", program, "--nodes", 8, "--config", "hardware", "-o", folder / program)
        show(f"ipsc run {program} --nodes 8", Run(folder / program))


def chance(folder: Path, rng: np.random.Generator) -> None:
    frames = 1 << 20
    show("random: frames of one event", made(folder / "frames", stream(16, 1, frames, PAYLOAD_MAX // 16, rng)))
    for gap in (10, 100, 1000):
        data, _ = compact_stream(16, gap, False, 64, rng)
        show(f"random: a mean gap of {gap} windows", made(folder / f"gap{gap}", data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"bytes an event in RUN/events (goal <= {GOAL} on real traces), seed {options.seed}")
    print(f"{'trace':44} {'events':>10} {'files':>10} {'columns alone':>14}")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        captures(folder)
        programs(folder)
        chance(folder, np.random.default_rng(options.seed))


if __name__ == "__main__":
    main()
