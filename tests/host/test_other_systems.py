"""The host on systems other than Linux: nothing that only POSIX has is needed to record, decode and export.

This is no Windows: modules and functions that Windows lacks are taken away. What cannot be shown so is in
docs/links.md.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import patience

ROOT = Path(__file__).parents[2]

#: Packages of others choose their own code by the system's name, so they are imported before.
_OTHERS = "import click, duckdb, numpy, pyarrow, pyarrow.parquet, rich, rich.progress, rich.table"
_MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
_FUNCTIONS = ("O_CLOEXEC", "O_NONBLOCK", "pread", "fork", "forkpty", "geteuid", "getegid", "getgid",
              "getuid", "killpg", "mkfifo", "posix_fallocate", "sched_getaffinity", "setsid", "statvfs", "sysconf")

_TAKEN_AWAY = f"""
import asyncio, os, signal, sys
{_OTHERS}
for name in {_MODULES}:
    sys.modules[name] = None
for name in {_FUNCTIONS}:
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGUSR1", "SIGWINCH"):
    delattr(signal, name)
"""

_READ = """
import importlib
from pathlib import Path
for module in {modules!r}:
    importlib.import_module(module)
from hypermon.host.cli import main
for words in (["stats", {run!r}], ["query", {run!r}, "select count(*) as n from events"],
              ["export", {run!r}, "--to", "csv", {csv!r}], ["devices"]):
    sys.argv = ["hypermon", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""


_RECORD = """
from pathlib import Path
from hypermon.host.device.device import Device, Settings
from hypermon.host.link import open_link
from hypermon.host.record.recorder import record
with Device(open_link({uri!r})) as device:
    record(device, Path({run!r}), Settings())
"""


def modules() -> list[str]:
    """All of the host but what other programs import, what needs an extra, and VFIO, which Linux alone has."""
    parts = [path.relative_to(ROOT).with_suffix("").parts for path in (ROOT / "host").rglob("*.py")]
    return [".".join(("hypermon", *part)).removesuffix(".__init__") for part in parts
            if part[1] not in ("live", "view", "sigrok", "report") and part[-1] != "vfio"]


def without_posix(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _TAKEN_AWAY + code], capture_output=True, text=True,
                          timeout=patience(120), env={**os.environ, "COLUMNS": "100"})


@pytest.mark.parametrize("code", ["import fcntl", "os.fork", "signal.SIGKILL", "os.pread"])
def test_they_are_gone(code):
    assert without_posix(code).returncode == 1


def test_a_recording_is_made_and_read(relayed, tmp_path):
    board = random_run(FakeBoard(), random.Random(5), 40, losses=0.2)
    run, csv = tmp_path / "run", tmp_path / "events.csv"
    done = without_posix(_RECORD.format(uri=relayed(FakeLink(board, trickle=5)), run=str(run))
                         + _READ.format(modules=modules(), run=str(run), csv=str(csv)))
    assert done.returncode == 0, done.stderr
    assert csv.read_text().splitlines()[1:] == [",".join(map(str, row)) for row in board.events()]


def test_pages_are_served(tmp_path):
    """The event loop of Windows takes no signal handlers."""
    pytest.importorskip("aiohttp")
    done = without_posix(f"""
import asyncio, signal, threading
import hypermon.host.web.program as program
from hypermon.host.web.shown import Shown
from hypermon.host.live.session import Session
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)    # a job in the background inherits that it is ignored

def refused(*of):
    raise NotImplementedError

def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)    # also wakes a loop that sleeps

asyncio.SelectorEventLoop.add_signal_handler = refused
try:
    program.serve(lambda: Shown(Session(None, None, Path({str(tmp_path)!r}))), "live", "127.0.0.1", 0, None,
                 lambda address: (print(address), threading.Timer(0.5, interrupt).start()))
except KeyboardInterrupt:
    print("ended")
""")
    assert done.stdout.startswith("http://127.0.0.1:"), done.stderr
    assert done.stdout.endswith("ended\n"), done.stderr
