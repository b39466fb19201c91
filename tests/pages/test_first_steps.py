"""What a newcomer is told to type first works, and prints what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patience

PAGE = (Path(__file__).parents[2] / "docs" / "first-steps.md").read_text()
HYPERMON = Path(sys.executable).with_name("hypermon")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")


def blocks(title: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks under a heading."""
    [section] = re.findall(rf"^##+ {title}\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a block of commands; all share a directory. Gives its standard output."""
    directory = tmp_path_factory.mktemp("first")

    def run(text: str) -> str:
        path = f"{HYPERMON.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e", "-c", text], cwd=directory, env={**os.environ, "PATH": path},
                              capture_output=True, text=True, timeout=patience(600), check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.directory = directory
    return run


@pytest.fixture(scope="module")
def played(shell):
    """Output of the first block, which makes the run that everything else looks at."""
    kind, commands = blocks("Play and record")[0]
    assert kind == "sh"
    return shell(commands)


def test_first_steps_print_what_is_shown(played):
    kind, shown = blocks("Play and record")[1]
    assert kind == "text"
    assert played.endswith(shown)


def test_other_commands_work(played, shell):
    for kind, commands in blocks("Play and record")[2:]:
        assert kind == "sh"
        said = shell(commands)
        if "selftest" in commands:
            assert said.count("passed") == len(said.splitlines()) > 5
        else:
            assert '"events": 1,' in said


def test_python_works(played, shell):
    code = "\n".join(text for kind, text in blocks("From Python") if kind == "python")
    checks = "\nassert run.events().to_pylist() == [{'time_ps': 1540000, 'node': 0, 'nibble': 5}]\n" \
             "assert run.loss().num_rows == 0 and run.stats()['events'] == 1\n"
    done = subprocess.run([sys.executable, "-c", code + checks], cwd=shell.directory, capture_output=True, text=True,
                          timeout=patience(120), check=False)
    assert done.returncode == 0, done.stderr
