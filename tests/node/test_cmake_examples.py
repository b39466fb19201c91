"""The examples of the CMake package: built as their heads say, run, and read back through the virtual board."""

import subprocess
import sys
from pathlib import Path

import pytest
from emulators.freertos_kernel import kernel
from hypermon.host import cli
from hypermon.host.run import Run, open_run
from test_cmake import run_cmake

from tests.patience import patience
from tests.programs import MissingError

ROOT = Path(__file__).parents[2]
HYPERMON = Path(sys.executable).parent / "hypermon"


def build(example: str, folder: Path, *settings: str) -> Path:
    """The build folder of an example."""
    for arguments in (("-S", ROOT / "examples" / example, "-B", folder, *settings), ("--build", folder)):
        done = run_cmake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def recorded(program: Path, folder: Path, dictionary: Path, edge: str) -> Run:
    """What the virtual board records of the port writes that the program saves, decoded."""
    subprocess.run([program, folder / "saved.csv"], check=True, timeout=patience(60))
    run = folder / "run"
    assert cli._run(["sim", str(folder / "saved.csv"), "-o", str(run), "--config", "extended", "--mode", "event",
                     "--edge", edge, "--nodes", "4"]) == 0
    assert cli._run(["decode", str(run), "--dictionary", str(dictionary)]) == 0
    return open_run(run)


def test_log_lines(tools, tmp_path: Path) -> None:
    folder = build("log", tmp_path / "build", f"-DHYPERMON={HYPERMON}")
    run = recorded(folder / "sensor", tmp_path, folder / "app-log.toml", "rising")
    assert [text for text, in run.sql("select text from logs order by time_ps").fetchall()] == [
        "a text that is longer than one event", *(f"sensor {n}: {120 - 70 * n} mV" for n in range(5))]


def test_log_lines_without_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = run_cmake("-S", ROOT / "examples" / "log", "-B", tmp_path)
    assert done.returncode != 0
    assert "no command hypermon" in done.stderr


def test_tasks_of_freertos(tools, tmp_path: Path) -> None:
    """The kernel's own CMake project, with its port to POSIX systems."""
    try:
        at = kernel(tmp_path)
    except MissingError as error:
        pytest.skip(str(error))
    folder = build("freertos", tmp_path / "build", f"-DFREERTOS_KERNEL_PATH={at}")
    run = recorded(folder / "tasks", tmp_path, ROOT / "node" / "freertos.toml", "both")
    ask = run.sql
    assert ask("select task, task_name from events where name = 'task' order by task").fetchall() == [
        (1, "consumer"), (2, "producer"), (3, "IDLE")]
    assert ask("select name, count(*) from events where name in ('send', 'receive') group by name order by name"
               ).fetchall() == [("receive", 10), ("send", 10)]
    # The consumer waits for each number, so it runs after each send.
    [(count,)] = ask("select count(*) from states where name = 'running' and key = '1'").fetchall()
    assert count >= 10


def test_freertos_without_its_kernel(tmp_path: Path) -> None:
    done = run_cmake("-S", ROOT / "examples" / "freertos", "-B", tmp_path, "-DFREERTOS_KERNEL_PATH=/nowhere")
    assert done.returncode != 0
    assert "set FREERTOS_KERNEL_PATH" in done.stderr
