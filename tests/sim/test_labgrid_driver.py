"""The driver for labgrid, in an environment of its own with labgrid."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.patience import patience

ROOT = Path(__file__).parents[2]
ENVIRONMENT = """
imports: [hypermon.sim.labgrid_driver]
targets:
  main:
    resources: {{HypermonBoard: {board}}}
    drivers: {{HypermonDriver: {driver}}}
"""
#: One test that passes, one in which the lock is held for too long, and what cannot be recorded.
TESTS = f"""
import sys
sys.path.insert(0, {str(ROOT / "examples" / "pytest")!r})
from test_locks import RULES, locks

def test_short(target):
    with target.get_driver("HypermonDriver").recording(locks(300_000), options=["--window", "1"]) as run:
        pass
    assert run.check(RULES)["verdict"] == "pass"
    assert run.run.stats()["events"] == 20

def test_long(target):
    with target.get_driver("HypermonDriver").recording(locks(450_000), options=["--window", "1"]) as run:
        pass
    run.check(RULES)

def test_no_stimulus(target):
    with target.get_driver("HypermonDriver").recording() as run:
        pass
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of the environment that `make example OF=labgrid` makes; skips if its packages cannot be had."""
    done = subprocess.run(["make", ".build/labgrid-env/.installed"], cwd=ROOT, capture_output=True, text=True)
    if "a package cannot be installed" in done.stderr:
        pytest.skip(f"labgrid cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return ROOT / ".build" / "labgrid-env" / "bin" / "python"


@pytest.fixture
def labgrid(python, tmp_path):
    """Runs tests with the plugin of labgrid: labgrid(board, driver, tests) -> what pytest prints."""
    def run(board: str, driver: str, tests: str) -> str:
        (tmp_path / "env.yaml").write_text(ENVIRONMENT.format(board=board, driver=driver))
        (tmp_path / "test_it.py").write_text(tests)
        done = subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", tmp_path,
                               "--lg-env", "env.yaml", "test_it.py"], cwd=tmp_path, capture_output=True, text=True,
                              timeout=patience(600), check=False)
        return done.stdout + done.stderr

    return run


def test_in_tests(tools, labgrid, tmp_path):
    said = labgrid("{}", "{folder: runs}", TESTS)
    assert "2 failed, 1 passed" in said
    assert "1 of 2 rules do not pass" in said
    assert "for a short time (duration): fail; 10 violated and 0 undecided places, 10 instances" in said
    assert "sim: needs a stimulus" in said
    # Every RUN is kept, whatever its test said. Where `CI` is set, pytest repeats the message in its summary.
    assert set(re.findall(r"RUN: (/\S+)", said)) == {str(tmp_path / "runs" / "0002")}
    assert sorted(path.parent.name for path in (tmp_path / "runs").rglob("recording.json")) == ["0001", "0002"]


def test_a_board_is_recorded_while_the_block_runs(tools, labgrid, tmp_path):
    """By the recorder, as a board at a link is."""
    (tmp_path / "writes.csv").write_text("time_ns,node,port\n1000,0,1\n2000,0,17\n")
    said = labgrid(f'{{board: "sim:{tmp_path}/writes.csv"}}', "{}", """
import time

def test_it(target):
    with target.get_driver("HypermonDriver").recording(options=["--window", "1"]) as run:
        time.sleep(1)
    assert run.path.parent.name == "hypermon-runs"
    assert run.run.stats()["events"] == 1
""")
    assert "1 passed" in said, said


def test_what_is_not_there(labgrid):
    said = labgrid('{board: "tcp:127.0.0.1:9"}', "{}",
                   'def test_it(target):\n    with target.get_driver("HypermonDriver").recording():\n        pass\n')
    assert "1 failed" in said
    assert "HypermonError: tcp:127.0.0.1:9: " in said


def test_a_board_that_is_no_text_is_refused(labgrid):
    said = labgrid("{board: 3}", "{}", "def test_it(target):\n    pass\n")
    assert "'board' must be <class 'str'>" in said
