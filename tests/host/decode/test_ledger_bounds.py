"""The last time of all, to the window."""

import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger

from tests.host.fake_board import FakeBoard


def events_of(board, scale):
    ledger, scanner = Ledger(board.nodes, scale, board.epoch), BlockScanner()
    found = []
    for rows in (*ledger.event_rows([*scanner.feed(board.data), *scanner.finish()]), *ledger.finish()):
        events = rows.events(scale)
        found += zip(events.time_ps.tolist(), events.node.tolist(), events.nibble.tolist(), strict=True)
    return found


@pytest.mark.parametrize("sink", Sink)
@pytest.mark.parametrize(("window", "clock_hz"), [(Window.CLOCK, 100_000_000), (Window.NS800, 35_000_000)])
def test_the_last_window_that_has_a_time(sink, window, clock_hz):
    """Its items are events; of a block after it, which no board can have sent, nothing is taken."""
    scale = TimeScale(clock_hz, window, LATENCY)
    for at, taken in ((scale.stamp_max - 1, True), (scale.stamp_max, True), (scale.stamp_max + 1, False)):
        board = FakeBoard(2, clock_hz, window, sink=sink).start()
        if sink is Sink.CLASSIC:
            board.frames([(5, {0: 3})]).frames([(at, {1: 4})])
        else:
            board.compact([(5, 0, 3)]).compact([(at, 1, 4)])
        wanted = [(scale.start_ps(5), 0, 3)] + [(scale.start_ps(at), 1, 4)] * taken
        assert events_of(board.stop(at), scale) == wanted, at - scale.stamp_max
