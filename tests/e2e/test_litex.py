"""The core in a LiteX SoC: what its DMA has written is what the virtual board records of the same stimulus."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypermon.host import cli, open_run

from tests.patience import patience

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "litex"
ENVIRONMENT = ROOT / ".build" / "litex-env"


@pytest.fixture(scope="module")
def litex() -> Path:
    """The Python of the environment that `make example OF=litex` makes; skips if its packages cannot be had."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        done = subprocess.run([ROOT / ".ci" / "install-locked", python, "requirements/locked-litex.txt"], cwd=ROOT,
                              capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"LiteX cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        (ENVIRONMENT / ".installed").touch()
    return python


def rows(run: Path) -> list[dict[str, int]]:
    return open_run(run).events().sort_by([("time_ps", "ascending"), ("node", "ascending")]).to_pylist()


def test_the_stream_in_memory_is_that_of_the_virtual_board(tools, litex: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE / "run.py", "--litex", litex, "--folder", tmp_path],
                          capture_output=True, text=True, timeout=patience(500))
    assert done.returncode == 0, done.stdout + done.stderr
    assert cli._run(["sim", str(tmp_path / "stimulus.csv"), "-o", str(tmp_path / "sim"), "--nodes", "4", "--window",
                     "1"]) == 0
    found = rows(tmp_path / "run")
    assert len(found) == 64
    assert found == rows(tmp_path / "sim")
    assert open_run(tmp_path / "run").stats()["lost"] == 0


def test_the_locked_file_has_the_versions_of_the_constraints() -> None:
    folder = ROOT / "requirements"
    pins = [line for line in (folder / "constraints-litex.txt").read_text().splitlines() if not line.startswith("#")]
    locked = re.findall(r"^(\S+==\S+) \\\n +--hash=sha256:[0-9a-f]{64}", (folder / "locked-litex.txt").read_text(),
                        re.MULTILINE)
    assert locked == sorted(pins)
