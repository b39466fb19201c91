"""A machine of many boards: simulated, recorded, decoded, analysed and reported; every board's accounts are checked.

The steps are the commands that a user gives. Elapsed and processor time are those of the command and its children;
memory is the most of one process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypermon.host.run import Run
from hypermon.studies.scale.workload import Machine, barriers, writes_of

HYPERMON = Path(sys.executable).with_name("hypermon")


def step(name: str, *words: object) -> tuple[float, float]:
    """Gives a command. Prints and returns its elapsed and its processor time."""
    began = time.perf_counter()
    child = subprocess.Popen([HYPERMON, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{name}: it ended with {os.waitstatus_to_exitcode(status)}")
    took, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
    print(f"    {name:10} {took:8.1f} s elapsed {cpu:8.1f} s of CPU {used.ru_maxrss / 1e3:8,.0f} MB", flush=True)
    return took, cpu


def steps(run: Path, boards: int, events: int) -> tuple[int, list[tuple[float, float]]]:
    """Simulates a machine and analyses it. Returns the events recorded; and of each step what it took."""
    took = [step("simulate", "machine", "simulate", "exchange", "--boards", boards, "--nodes", 16, "--events", events,
                 "-o", run),
            step("decode", "decode", run)]
    nodes = boards * 16
    messages = ("--send", "nibble = 3", "--receive", "nibble = 4", "--key", f"node % {nodes // 2}")
    for question in ("rate", "loss", "merging", "noise", "latency"):
        out = run.with_name(f"{run.name}-{question}.parquet")
        took.append(step(question, "analyse", run, question, *(messages if question == "latency" else ()), "-o", out))
        out.unlink()
    took.append(step("report", "report", run, "-o", run.with_name(f"{run.name}.html")))
    return accounts(run), took


def accounts(run: Path) -> int:
    """Checks that each node's events that were recorded and lost are all that it wrote. Returns those recorded."""
    machine, stats = Machine(**json.loads((run / "simulate.json").read_text())["machine"]), Run(run).stats()
    begins = barriers(machine)
    counted = np.array(stats["events_per_node"]) + np.array(stats["lost_per_node"])
    wrote = [len(writes_of(machine, node, begins)[0]) for node in range(machine.boards * machine.nodes)]
    wrong = np.flatnonzero(counted != np.array(wrote))
    if len(wrong):
        raise SystemExit(f"the accounts of {len(wrong)} nodes are wrong, first of node {wrong[0]}")
    return int(stats["events"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--boards", type=int, nargs="*", default=[256])
    parser.add_argument("--folder", help="where the runs are written; default: that of temporary files")
    options = parser.parse_args()
    for boards in options.boards:
        print(f"{boards} boards, {16 * boards:,} nodes, at least {options.events:,} events")
        with tempfile.TemporaryDirectory(prefix="hypermon-", dir=options.folder) as folder:
            events, took = steps(Path(folder) / "machine", boards, options.events)
        elapsed, cpu = map(sum, zip(*took, strict=True))
        print(f"    {'whole':10} {elapsed:8.1f} s elapsed {cpu:8.1f} s of CPU; {events:,} events recorded, "
              "all accounts exact")


if __name__ == "__main__":
    main()
