"""How long the first answer takes: `hypermon stats` on a fresh recording of so many megabytes, and `hypermon --help`.

Each run is a process of its own. Shown are processor seconds and elapsed seconds: least, median and most of several
runs. The recording is in the page cache, as it is right after it was made.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import LATENCY
from hypermon.host.blocks.item_modes import ALL_NIBBLES, ItemModes
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter

sys.path.insert(0, str(Path(__file__).parent))
from bench_decode import CLOCK_HZ, compact_stream, item_stream

NODES = 16
#: Bytes of a full COMPACT block, with its head.
BLOCK = 4128


def record(path: Path, data: bytes, modes: ItemModes) -> None:
    names = [modes[node].name.lower() for node in range(NODES)] if modes.longer else []
    with RunWriter(path, RunInfo("bench", NODES, CLOCK_HZ, "800", LATENCY, 1, modes=names)) as writer:
        writer.append(data)
        writer.close(how="made")


def timed(*arguments: str) -> tuple[float, float]:
    """Processor seconds and elapsed seconds of the command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", "from hypermon.host.cli import main; main()", *arguments], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, elapsed


def show(what: str, repeat: int, *arguments: str) -> None:
    found = [timed(*arguments) for _ in range(repeat)]
    cells = ["  ".join(f"{value:6.2f}" for value in (each[0], each[repeat // 2], each[-1]))
             for each in map(sorted, zip(*found, strict=True))]
    print(f"{what:44} processor {cells[0]}   elapsed {cells[1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of the recording (default 1000)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    blocks = options.megabytes * 1_000_000 // BLOCK
    rng = np.random.default_rng(options.seed)
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    show("hypermon --help", options.repeat, "--help")
    modes = ItemModes(events=(1 << NODES) - 1)
    for kind, own, made in (("nibbles, gap 100", ALL_NIBBLES, lambda: compact_stream(NODES, 100, False, blocks, rng)),
                            ("events", modes, lambda: item_stream(NODES, 100, modes, blocks, rng))):
        with tempfile.TemporaryDirectory() as directory:
            data, count = made()
            record(Path(directory, "run"), data, own)
            size = len(data)
            del data
            show(f"stats: {size / 1e6:.0f} MB, {count / 1e6:.0f} M {kind}", options.repeat, "stats", f"{directory}/run")


if __name__ == "__main__":
    main()
