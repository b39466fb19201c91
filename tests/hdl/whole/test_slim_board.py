"""A board with beats of 4 bytes from packer to checksum: held against the scoreboard of the boards of `test_exact`.

What such a board tells must be just as exact, so the tests are those; here stand the boards. Where nothing presses, its
stream is that of the board with wide beats, byte for byte.
"""

import random
from dataclasses import replace

import pytest
from hypermon.hdl.layout import Geometry, Sink, Window

from . import exact, test_exact

#: By name; soon full, with rows of two frames to three beats; and with a store, as a board of 16 nodes has.
SLIM = {
    "slim": replace(exact.SMALL, beat_bytes=4),
    "slim-deep": replace(Geometry.extended(16), beat_bytes=4),
}
exact.BOARDS.update({(name, sink): geometry for name, geometry in SLIM.items() for sink in Sink})
WINDOWS = pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200], ids=lambda w: w.name)
SINKS = pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
BOTH = pytest.mark.parametrize("name", SLIM)


@WINDOWS
@SINKS
@BOTH
def test_traffic(name, sink, window):
    test_exact.test_traffic(name, sink, window, 0)


@pytest.mark.parametrize("host", ["slow", "stalled", "crawling"])
@WINDOWS
@SINKS
def test_overrun(sink, window, host):
    test_exact.test_overrun("slim", sink, window, host)


@SINKS
def test_fast_nodes(sink):
    test_exact.test_fast_nodes("slim", sink, Window.NS800)


@WINDOWS
@SINKS
def test_silence(sink, window):
    test_exact.test_silence("slim", sink, window)


@SINKS
@BOTH
def test_resets(name, sink):
    test_exact.test_resets(name, sink)


def test_registers():
    test_exact.test_registers("slim")


@SINKS
def test_heartbeat(sink):
    test_exact.test_heartbeat("slim", sink, Window.NS800, 0)


@SINKS
def test_far(sink):
    test_exact.test_far("slim", sink)


@pytest.mark.parametrize(("sink", "loads"), [
    (Sink.CLASSIC, [0.01]), (Sink.EXTENDED, [0.01]), (Sink.EXTENDED, [0.02, 0.3, 1.2])])
def test_the_stream_is_the_same(sink, loads):
    """Of a board with beats of 16 bytes: every byte, times of blocks included, while the link keeps pace. (A busy
    classic sink has other blocks, because a block of frames is as long as the FIFO's level when it begins.)"""
    streams = []
    for beat_bytes in (16, 4):
        geometry = replace(Geometry.extended(16), beat_bytes=beat_bytes)
        played = exact.traffic(random.Random(7), geometry, Window.NS800, loads, 4000)
        board = exact.Board(played, sink, Window.NS800)
        board.configure(played, flush=50)
        board.enable()
        while not board.ended:
            board.listen(1 << 16)
        board.finish()
        streams.append(board.data)
    assert len(streams[0]) > 4000
    assert streams[0] == streams[1]
