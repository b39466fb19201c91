"""Lines that show that a command works: on a terminal, and only there."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypermon.host.export.sinks import folder, sink, written

from tests.patience import patience

HYPERMON = Path(sys.executable).with_name("hypermon")


def on_a_terminal(*words: str | Path) -> tuple[bytes, str]:
    """Standard output, which is a file, and what a terminal gets as standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([HYPERMON, *words], stdout=subprocess.PIPE, stderr=theirs,
                          env=os.environ | {"TERM": "xterm", "COLUMNS": "200"}) as process:
        os.close(theirs)
        assert process.stdout is not None
        out, said = process.stdout.read(), b""
        try:
            while data := os.read(ours, 4096):
                said += data
        except OSError:  # the last program has closed it
            pass
        assert process.wait(timeout=patience(60)) == 0
    os.close(ours)
    return out, said.decode()


def test_an_export_shows_that_it_works(losing_run, tmp_path):
    """On a terminal, with the bytes so far; the result is not touched, and nothing is shown in a pipe."""
    out, said = on_a_terminal("export", losing_run.path, "--to", "csv", "-")
    assert f"exporting {losing_run.path} to csv  0:00  0 B" in said
    piped = subprocess.run([HYPERMON, "export", losing_run.path, "--to", "csv", "-"], capture_output=True, check=True)
    assert out == piped.stdout
    assert out.startswith(b"time_ps,node,nibble\n")
    assert b"exporting" not in piped.stderr


def test_the_bytes_so_far(tmp_path):
    """Of a file and of a directory, before they have their names."""
    with sink(str(tmp_path / "file")) as file:
        file.write(bytes(1000))
        file.flush()
        assert written(str(tmp_path / "file")) == 1000
    with folder(str(tmp_path / "folder")) as directory:
        (directory / "a").write_bytes(bytes(30))
        (directory / "b").write_bytes(bytes(12))
        assert written(str(tmp_path / "folder")) == 42
    assert written("-") == 0


def test_a_report_shows_that_it_works(losing_run):
    pytest.importorskip("matplotlib")
    _, said = on_a_terminal("report", losing_run.path)
    assert f"writing the report of {losing_run.path}  0:00" in said


def test_a_build_shows_its_step(tmp_path):
    building = pytest.importorskip("hypermon.boards.toolchain.bitstream")
    from hypermon.boards.registry import find

    board, begun = find("ulx3s-85f"), time.time() - 10

    def step(since=begun):
        return building.step(board, tmp_path, None, None, since)

    assert step() == ""
    work = building._work(board, tmp_path, board.stem(board.config(None), board.link(None)))
    work.mkdir()
    (work / f"{building._NAME}.rpt").write_text("1. Executing A.\n2. Executing B.\n")
    assert step() == "synthesis: 2. Executing B."
    (work / f"{building._NAME}.tim").write_text("x" * 1000 + "\nInfo: Routing.\n")
    assert step() == "place and route: Info: Routing."
    assert step(time.time() + 10) == ""
