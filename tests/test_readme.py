"""What the README tells a newcomer to type works, and prints what it says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patience

README = (Path(__file__).parent.parent / "README.md").read_text()
HYPERMON = Path(sys.executable).with_name("hypermon")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")


def blocks(title: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks under a heading."""
    [section] = re.findall(rf"^##+ {title}\n(.*?)(?=^##+ |\Z)", README, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a block of commands; all share a directory. Gives its standard output."""
    directory = tmp_path_factory.mktemp("readme")

    def run(text: str) -> str:
        done = subprocess.run(["bash", "-e", "-c", text.replace(".venv/bin/hypermon", str(HYPERMON))], cwd=directory,
                              capture_output=True, text=True, timeout=patience(600), check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.directory = directory
    return run


@pytest.fixture(scope="module")
def played(shell):
    """Output of the first block, which makes the run that everything else looks at."""
    kind, commands = blocks("Without hardware")[0]
    assert kind == "sh"
    return shell(commands)


def test_first_steps_print_what_is_shown(played):
    kind, shown = blocks("Without hardware")[1]
    assert kind == "text"
    assert played.endswith(shown)


def test_other_commands_work(played, shell):
    for kind, commands in blocks("Without hardware")[2:]:
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


def test_the_set_up_is_as_large_as_it_says():
    """Of the environment that `make setup` makes; tests in another one know nothing about it."""
    root = Path(__file__).parent.parent
    if not (Path(sys.prefix) / ".installed-dev").exists():
        pytest.skip("not the environment of make setup")
    size = sum(entry.stat(follow_symlinks=False).st_size for entry in Path(sys.prefix).rglob("*")) / 1e9
    said = {float(number) for name in ("Makefile", "CONTRIBUTING.md")
            for number in re.findall(r"setup.*?1 minute, ([\d.]+) GB", (root / name).read_text())}
    assert len(said) == 1
    assert said.pop() == pytest.approx(size, rel=0.15)
