"""The plugin for pytest, in a pytest of its own."""

import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypermon.host.errors import HypermonError
from hypermon.sim import recording

from tests.patience import patience

EXAMPLE = Path(__file__).parents[2] / "examples" / "pytest"
#: One test that passes, and one in which the lock is held for too long.
TESTS = """
import sys
sys.path.insert(0, {example!r})
from test_locks import RULES, locks

def test_short(recording):
    with recording(locks(300_000), options=["--window", "1"]) as run:
        pass
    assert run.check(RULES)["verdict"] == "pass"
    assert run.run.stats()["events"] == 20

def test_long(recording):
    with recording(locks(450_000), options=["--window", "1"]) as run:
        pass
    run.check(RULES)

def test_no_stimulus(recording):
    with recording() as run:
        pass

def test_wrong_option(recording):
    with recording(locks(300_000), options=["--window", "3"]) as run:
        pass
"""


def pytest_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "hypermon.sim.pytest_plugin", "-q",
         "--rootdir", str(folder), "--basetemp", str(folder / "runs"), *arguments], cwd=folder, capture_output=True,
        text=True, timeout=patience(600), check=False)


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_in_tests(tmp_path, more):
    (tmp_path / "test_it.py").write_text(TESTS.format(example=str(EXAMPLE)))
    done = pytest_run(tmp_path, *more, "test_it.py")
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "1 of 2 rules do not pass" in done.stdout
    assert "for a short time (duration): fail; 10 violated and 0 undecided places, 10 instances" in done.stdout
    assert "sim: needs a stimulus" in done.stdout
    assert "--window" in done.stdout
    # The RUN of the test that failed is kept, and named; that of the test that passed is gone.
    [kept] = set(re.findall(r"kept: (\S+)", done.stdout))
    assert (Path(kept) / "recording.json").is_file()
    assert [path.parent for path in (tmp_path / "runs").rglob("recording.json")] == [Path(kept)]


def test_example():
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
                           "hypermon.sim.pytest_plugin", "--rootdir", str(EXAMPLE), str(EXAMPLE)],
                          capture_output=True, text=True, timeout=patience(600), check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_board_that_is_not_there(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(recording):\n    with recording() as run:\n        pass\n")
    done = pytest_run(tmp_path, "--hypermon-board", "tcp:127.0.0.1:9", "test_it.py")
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "tcp:127.0.0.1:9: " in done.stdout


def test_users_share_a_board(tmp_path, monkeypatch):
    """The lock is another user's, too, whatever the umask of the first one was. One that cannot be had is one line."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    umask = os.umask(0o077)
    try:
        place = recording._place_of("usb:")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(place.stat().st_mode) == 0o755
    assert recording._place_of("usb:") == place
    place.rmdir()
    place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(HypermonError, match=f"^usb:: {place} cannot be locked: No such file or directory; its owner"):
        recording.Recording("usb:", tmp_path / "run", None, [], None, False).__enter__()
