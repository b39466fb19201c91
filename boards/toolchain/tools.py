"""Yosys, nextpnr and the packers: their locations, how they are run, and nextpnr's effort."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["EFFORT", "run", "tool"]

#: nextpnr's placer weighs late paths four times as much as by default: the slowest seed of the classic core
#: improves from 151 to 163 MHz, a ButterStick's extended board from 147 to 161. Its default router
#: rips up nets that miss their time. Its other router does not always find a route to a global net.
EFFORT = ("--placer-heap-timingweight", "40", "--tmg-ripup")


def tool(variable: str, name: str) -> str:
    """The program that an environment variable names, or the one installed with this Python, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    return os.environ.get(variable) or (str(beside) if beside.exists() else name)


def run(command: list[str], log: Path) -> None:
    """Runs a tool; its output goes to ``log``, whose end is shown if it fails."""
    with log.open("w") as out:
        status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    if status:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        sys.exit(f"{command[0]} failed with status {status}; {log} ends:\n{tail}")
