"""A board with narrow beats: the same bytes, held against the same scoreboard as the boards of `test_exact`.

What such a board tells must be just as exact, so the tests are those; here stand the boards.
"""

import pytest
from hypermon.hdl.layout import Geometry, Sink, Window

from . import exact, test_exact

CLASSIC = Sink.CLASSIC
#: By name; soon full, and as one of 16 nodes.
NARROW = {
    "narrow": Geometry(4, 30_000_000, node_depth=8, vector_depth=32, frame_depth=64, beat_bytes=2),
    "narrow-16": Geometry(16, 60_000_000, node_depth=16, vector_depth=64, frame_depth=64, beat_bytes=2),
}
exact.BOARDS.update({(name, CLASSIC): geometry for name, geometry in NARROW.items()})
WINDOWS = pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200], ids=lambda w: w.name)
BOTH = pytest.mark.parametrize("name", NARROW)


@WINDOWS
@BOTH
def test_traffic(name, window):
    test_exact.test_traffic(name, CLASSIC, window, 0)


@pytest.mark.parametrize("host", ["slow", "stalled", "crawling"])
@WINDOWS
@BOTH
def test_overrun(name, window, host):
    test_exact.test_overrun(name, CLASSIC, window, host)


@BOTH
def test_fast_nodes(name):
    # A frame leaves in eight clocks, so with shorter windows it is the frame FIFO that is full.
    test_exact.test_fast_nodes(name, CLASSIC, Window.NS800)


@WINDOWS
def test_silence(window):
    test_exact.test_silence("narrow", CLASSIC, window)


@BOTH
def test_resets(name):
    test_exact.test_resets(name, CLASSIC)


def test_registers():
    test_exact.test_registers("narrow")


def test_heartbeat():
    test_exact.test_heartbeat("narrow", CLASSIC, Window.NS800, 0)


@BOTH
def test_vectors(name):
    test_exact.test_vectors(name)


def test_stop_behind_a_strobe():
    test_exact.test_stop_behind_a_strobe("narrow", CLASSIC)


def test_far():
    test_exact.test_far("narrow", CLASSIC)
