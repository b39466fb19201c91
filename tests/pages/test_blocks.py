"""Every block of shell and Python on every page runs, or `table.py` states why not."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.host.external.readers import needs
from tests.pages.reading import PAGES, ROOT, blocks, statements
from tests.pages.table import CTRL_C, FILES, INSTEAD, NOT_RUN, NOT_RUN_PYTHON, PROGRAMS, SETUP, TERMINAL
from tests.patience import patience, until

HERE = Path(__file__).parent
#: Seconds until a program that serves gets Ctrl-C; and all that a page may take.
_SERVES, _MOST = 6, 900
#: Without what the `make` that runs the tests hands down, ARGS among it.
_ENVIRONMENT = {name: value for name, value in os.environ.items()
                if name not in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS")}
#: What `make` would install is there: a test does not install.
_MAKE = 'make() { command make -o .venv/.installed-sim -o .venv/.installed-dev "$@"; }\n'


def said_of(table, page, text):
    """The entries of a table that fit a statement on a page."""
    return [entry for entry in table if entry[0] in ("", page) and re.match(entry[1], text)]


def shell(code, place):
    """Runs a shell script in a directory, with the environment's programs on the PATH; returns its output."""
    path = f'export PATH="{Path(sys.executable).parent}:$PATH"\n'
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(["bash", "-e", "-c", _MAKE + path + code], cwd=place, stdout=said, env=_ENVIRONMENT,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(patience(_MOST))
        finally:
            # What a page leaves in the background ends, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        text = said.read()
    assert process.returncode == 0, f"{code}\n{text[-3000:]}"
    return text


def as_run(page, statement):
    """What is run for a statement: names of a user's are replaced, and what serves gets Ctrl-C."""
    serves, draws = (bool(said_of(table, page, statement)) for table in (CTRL_C, TERMINAL))
    for where, written, instead in INSTEAD:
        if where in ("", page):
            statement = re.sub(written, instead, statement)
    if serves:
        return f"timeout --foreground --preserve-status -s INT {_SERVES} {statement}"
    return f"python {HERE}/terminal.py {_SERVES} {statement}" if draws else statement


def script(page):
    """The shell blocks of a page, as far as they run, as one session."""
    return "\n".join(as_run(page, each) for block in blocks(page) if block.kind == "sh"
                     for each in statements(block.code) if not said_of(NOT_RUN, page, each))


def program(page):
    """The Python blocks of a page, one after another, as far as they run."""
    return "\n".join(block.code for block in blocks(page) if block.kind == "python"
                     and not said_of(NOT_RUN_PYTHON, page, block.code))


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What `make demo` leaves."""
    place = checkout(tmp_path_factory.mktemp("demo"))
    shell("make demo", place)
    return place / "demo"


def checkout(place):
    """A directory like a checkout: its files are links, and what is built there is of its own."""
    listed = subprocess.run(["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                            check=True)
    for name in listed.stdout.split():
        (place / name).symlink_to(ROOT / name)
    (place / ".venv").symlink_to(sys.prefix)
    return place


@pytest.mark.parametrize("page", sorted(PAGES))
def test_page(page, demo, tmp_path):
    runs, code = script(page), program(page)
    if not runs and not code:
        pytest.skip("each statement has a reason in table.py")
    for name in (name for where, name in PROGRAMS if where == page):
        needs(name)
    place = checkout(tmp_path)
    shutil.copytree(demo, place / "demo")
    before = "".join(text for where, text in SETUP if re.search(where, page))
    for _, begin, name in (entry for entry in FILES if entry[0] == page):
        [text] = [block.code for block in blocks(page) if block.kind == "toml" and re.match(begin, block.code)]
        (place / name).write_text(text)
    server = None
    if "ttyUSB0" in runs:
        server = subprocess.Popen([sys.executable, "-m", "hypermon.sim.uart_server", "demo/life.csv", "--link",
                                   "./ttyUSB0"], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The first time, the board is compiled.
        until(lambda: (place / "ttyUSB0").exists() or server.poll() is not None, "the simulated board", _MOST)
        assert server.poll() is None, "the simulated board has ended"
    try:
        shell(before, place)
        shell(runs, place)
    finally:
        if server is not None:
            server.terminate()
            server.wait(patience(60))
    if code:
        done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True,
                              timeout=patience(_MOST), check=False)
        assert done.returncode == 0, done.stderr


def test_reasons_fit_something():
    """No entry of the tables is left over, and Python that is not run compiles."""
    stale = {("not run", *entry) for entry in NOT_RUN} | {("Ctrl-C", *entry) for entry in CTRL_C} | {
        ("terminal", *entry) for entry in TERMINAL} | {
        ("instead", *entry) for entry in INSTEAD} | {("Python", *entry) for entry in NOT_RUN_PYTHON}
    for page in PAGES:
        for block in blocks(page):
            if block.kind == "python":
                compile(block.code, page, "exec")
                stale -= {("Python", *entry) for entry in said_of(NOT_RUN_PYTHON, page, block.code)}
            for each in statements(block.code) if block.kind == "sh" else ():
                stale -= {("not run", *entry) for entry in said_of(NOT_RUN, page, each)}
                stale -= {("Ctrl-C", *entry) for entry in said_of(CTRL_C, page, each)}
                stale -= {("terminal", *entry) for entry in said_of(TERMINAL, page, each)}
                stale -= {("instead", *entry) for entry in INSTEAD
                          if entry[0] in ("", page) and re.search(entry[1], each)}
    assert not stale


def test_reasons_name_tests_that_exist():
    for *_, reason in (*NOT_RUN, *NOT_RUN_PYTHON):
        for name in re.findall(r"(?:tests|\.ci)/[\w/.-]+", reason):
            assert (ROOT / name.rstrip(".")).exists(), reason


def test_statements_are_found():
    assert statements("a \\\n  b\n# c\nd 'e\nf'\n\ng &\n") == ["a \\\n  b", "d 'e\nf'", "g &"]
    with pytest.raises(AssertionError):
        statements("a 'b\n")
