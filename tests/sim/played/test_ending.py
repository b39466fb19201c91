"""The end of a capture on the virtual board: it comes at once, whatever waits, and leaves out nothing on its way."""

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, Control, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import LIMIT, decode, read, start, write
from tests.sim.played.test_items import EVENT, FAST, NIBBLE, Node, board, modes, plays
from tests.sim.played.triggers.test_trigger_played import expected, match
from tests.sim.virtual.test_link import MS, sparse, stimulus

#: Clocks in which a board without anything to wait for has ended: what is queued leaves, and a census.
PROMPT = 5000


def until(link, edge):
    """Board time goes on to this clock, and some more."""
    while link.edge < edge:
        read(link, "STATUS")


def ends(link, window, before=b"", latency=LATENCY):
    """Disables; the whole run, and the clocks until the census of the stop."""
    begin = link.edge
    write(link, "CONTROL", Control.STREAM | window << 2)
    stream = bytearray(before)
    while True:
        piece = link.stream(LIMIT)
        stream += piece
        run = decode(bytes(stream), link.geometry, latency)
        if run.stopped:
            break
        assert piece or not link.ended, "the board does not end"
    run.clocks = link.geometry.window_clocks(window)
    return run, run.blocks[-1][1] * run.clocks - begin


@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("flush", [0xffff_ffff, 100_000, 100])
@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS800])
def test_a_stop_does_not_wait(extended, sink, flush, window):
    """What waits in an open block, or in the frame FIFO, leaves at once; and the run is the same."""
    played = stimulus(sparse(np.random.default_rng(2), extended, 20, MS // 1000))
    with VirtualLink(played, extended) as link:
        write(link, "FLUSH", flush)
        start(link, played, window, sink)
        before = b""
        while not link.ended:
            before += link.stream(LIMIT)
        run, clocks = ends(link, window, before)
    assert len(run.events) == 20
    assert clocks < PROMPT


@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("mode", [NIBBLE, EVENT])
def test_nodes_that_write_on(extended, sink, mode):
    """The board says that it has stopped although the nodes have not, be it in the middle of their items."""
    rng = np.random.default_rng(3)
    nodes = board(extended, [Node(mode, 100 + 7 * n) for n in range(8)])
    for node in nodes[:8]:
        while node.clock < 40_000:
            node.item(rng, gap=FAST, size=15)
    played = plays(nodes)
    with VirtualLink(played, extended) as link:
        write(link, "EVENT_NODES", modes(nodes, EVENT))
        start(link, played, Window.CLOCK, sink)
        until(link, 3000)
        run, clocks = ends(link, Window.CLOCK)
    assert clocks < PROMPT
    assert sum(node["accepted"] for node in run.census) == len(run.items or run.events) > 50


def disabled_at(link, played, edge, start_word, before, flush=None):
    """A run that is disabled then, its TRIGGER_STATE, the items thrown away."""
    write(link, "TRIGGER_START", start_word)
    write(link, "PRETRIGGER", before)
    start(link, played, Window.NS200, Sink.EXTENDED)
    until(link, edge)
    run, clocks = ends(link, Window.NS200)
    assert clocks < PROMPT
    return run, read(link, "TRIGGER_STATE"), read(link, "DISCARDED_LOW")


@pytest.mark.parametrize("before", [0, 9])
def test_a_disable_while_a_start_is_awaited(extended, before):
    """What was accepted before it is on its way, at any place of it, and counts: it starts, or it is thrown away."""
    rng = np.random.default_rng(before)
    rows = [(t, n, v & 0x17) for t, n, v in sparse(rng, extended, 40, MS // 2000)]
    # One nibble matches, and comes with the disable, or a little before it or after it.
    clock = 10_000
    played = stimulus([*rows, *((edge * 10_000, 3, level) for edge, level in (
        (clock - 20, 8), (clock, 24), (clock + 10, 8)))])
    assert max(t for t, _, _ in rows) < clock * 10_000 - 10**6
    found = 0
    for delay in range(-64, 48, 8):
        edge = clock + delay
        with VirtualLink(played, extended) as link:
            every, state, discarded = disabled_at(link, played, edge, 0, 0)
        assert (state, discarded) == (0, 0)
        with VirtualLink(played, extended) as link:
            run, state, discarded = disabled_at(link, played, edge, match(8, 8), before)
        accepted = sum(node["accepted"] for node in run.census)
        assert accepted == len(every.events) == len(run.events) + discarded
        kept, _ = expected(every.events, match(8, 8), 0, before)
        assert run.events == kept
        assert state == (2 if kept else 1)
        found += bool(kept)
    assert 2 < found < 14
