"""Building the virtual board: where it is kept, once only, and what is said when a tool is missing."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest
from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError, to_install
from hypermon.sim.virtual import build

from tests.patience import patience, until
from tests.sim.plain_host import once
from tests.sim.virtual.test_link import stimulus, strobes

SMALL = Geometry(1, node_depth=4, vector_depth=16, frame_depth=4)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERMON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fake(monkeypatch):
    """A build that writes a file and counts itself."""
    class Tools:
        built = 0

        def __init__(self, shell):
            pass

        def build(self, geometry, shell, scratch):
            Tools.built += 1
            (scratch / "board.so").write_text(f"{geometry.nodes}")
            return scratch / "board.so"

    monkeypatch.setattr(build, "_Tools", Tools)
    return Tools


def test_built_once(cache, fake, capsys):
    first = build.library(Geometry(5))
    assert first.read_text() == "5"
    assert first.parent == cache
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "5 nodes" in said
    assert build.library(Geometry(5)) == first
    assert build.library(Geometry(6)) != first
    assert fake.built == 2
    capsys.readouterr()
    build.library(Geometry(5))
    assert capsys.readouterr().err == ""
    # Nothing but libraries and their locks is left.
    assert {path.suffix for path in cache.iterdir()} == {".so", ".lock"}


def test_kinds_of_builds_are_kept_apart(cache, fake, monkeypatch):
    monkeypatch.delenv("HYPERMON_BUILD", raising=False)
    normal = build.library(Geometry(5))
    monkeypatch.setenv("HYPERMON_BUILD", "quick")
    assert build.library(Geometry(5)) != normal
    monkeypatch.setenv("HYPERMON_BUILD", "")
    assert build.library(Geometry(5)) == normal
    assert fake.built == 2


@pytest.mark.parametrize("kind", ["slow", "fast"])
def test_an_unknown_kind_of_build(cache, fake, monkeypatch, kind):
    monkeypatch.setenv("HYPERMON_BUILD", kind)
    with pytest.raises(HypermonError, match=f"HYPERMON_BUILD must be quick or empty, not '{kind}'"):
        build.library(SMALL)


@pytest.mark.slow
def test_a_quick_build_changes_nothing_but_the_time(cache, monkeypatch, tools):
    played = stimulus(strobes(SMALL, range(100, 9000, 77)), SMALL.nodes)
    streams = []
    for level in ("quick", ""):
        monkeypatch.setenv("HYPERMON_BUILD", level)
        streams.append(once(played, SMALL).stream)
    assert streams[0] == streams[1]
    assert len(list(cache.glob("board-*.so"))) == 2


def test_another_name_for_other_sources(cache, fake, monkeypatch, tmp_path):
    before = build.library(SMALL)
    changed = tmp_path / "board.cpp"
    changed.write_text(build._HARNESS.read_text() + "\n")
    monkeypatch.setattr(build, "_HARNESS", changed)
    assert build.library(SMALL) != before
    monkeypatch.undo()
    monkeypatch.setenv("HYPERMON_CACHE", str(cache))
    gateware = tmp_path / "hdl"
    shutil.copytree(build._GATEWARE, gateware)
    monkeypatch.setattr(build, "_Tools", fake)
    monkeypatch.setattr(build, "_GATEWARE", gateware)
    assert build.library(SMALL) == before
    (gateware / "drop_gate.py").write_text("# another\n")
    assert build.library(SMALL) != before


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, fake):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HYPERMON_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(HypermonError, match=r"cannot be kept in .*/file/cache: Not a directory \(HYPERMON_CACHE"):
        build.library(SMALL)


@pytest.mark.parametrize("missing", ["amaranth", "verilator", "g++"])
def test_missing_tools(cache, monkeypatch, missing):
    """One line that names what to install."""
    find, which = importlib.util.find_spec, shutil.which
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == missing else find(name, *rest))
    monkeypatch.setattr(shutil, "which", lambda name, *rest, **options: None if name in (missing, "verilator_bin")
                        else which(name, *rest, **options))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(HypermonError) as error:
        build.library(SMALL)
    assert "\n" not in str(error.value)
    assert ("apt install g++" if missing == "g++" else to_install("sim")) in str(error.value)


def test_a_tool_that_fails(tools, cache, monkeypatch, tmp_path):
    """One line with what it said; nothing is left behind."""
    failing = tmp_path / "broken-g++"
    failing.write_text("#!/bin/sh\necho 'board.cpp:1: error: no' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("CXX", str(failing))
    with pytest.raises(HypermonError, match=r"^broken-g\+\+ failed on the virtual board: board\.cpp:1: error: no$"):
        build.library(SMALL)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_two_processes_build_once(tmp_path):
    """The second waits for the first, says so, and takes what it has built."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from hypermon.hdl.layout import Geometry\n"
        "from hypermon.sim.virtual import build\n"
        "class Tools:\n"
        "    def __init__(self, shell):\n"
        "        pass\n"
        "    def build(self, geometry, shell, scratch):\n"
        "        Path(sys.argv[1], f'building-{time.time_ns()}').touch()\n"
        "        while not Path(sys.argv[1], 'go').exists():\n"
        "            time.sleep(0.01)\n"
        "        (scratch / 'board.so').write_text('x')\n"
        "        return scratch / 'board.so'\n"
        "build._Tools = Tools\n"
        "print(build.library(Geometry()).read_text())\n")
    environment = {**os.environ, "HYPERMON_CACHE": str(tmp_path / "cache")}
    processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)]
    until(lambda: list(tmp_path.glob("building-*")), "the first process to build")
    processes.append(subprocess.Popen(processes[0].args, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    waiting = processes[1].stderr.readline()
    (tmp_path / "go").touch()
    outputs = [process.communicate(timeout=patience(60)) for process in processes]
    assert [out for out, _ in outputs] == ["x\n", "x\n"]
    assert "another process is building" in waiting
    assert "half a minute, once" in outputs[0][1]
    assert len(list(tmp_path.glob("building-*"))) == 1


@pytest.mark.slow
def test_without_the_shortcut(tools, cache, monkeypatch):
    """A board that evaluates both edges of its clock gives the same stream."""
    import numpy as np
    from hypermon.sim.virtual import link

    from tests.sim.plain_host import once
    from tests.sim.virtual.test_link import sparse, stimulus

    played = stimulus(sparse(np.random.default_rng(5), SMALL, 100, 10**8), 1)
    quick = once(played, SMALL, seed=1).stream
    monkeypatch.setattr(build, "_shortcut", lambda model: ())
    monkeypatch.setattr(build, "_key", lambda geometry, shell, level: "plain")
    assert link.library is build.library
    assert once(played, SMALL, seed=1).stream == quick
    assert (cache / "board-1-plain.so").exists()
