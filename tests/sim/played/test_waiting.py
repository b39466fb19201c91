"""The store on the virtual board: a stall within its size costs nothing, what is in it survives a reset, and
what waits in silence leaves in time."""

import numpy as np
import pytest
from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_TRAILER,
    BlockType,
    Control,
    Sink,
    Window,
    padded,
)
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.accounts import balanced
from tests.sim.plain_host import LIMIT, decode, once, play, read, start, write
from tests.sim.traffic import random_gaps, traffic
from tests.sim.virtual.test_link import MS, sparse, stimulus


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_25_ms_at_a_million_a_second(stored, seed):
    """The stall that an ECP5-25F's board is to survive; and it keeps on surviving."""
    rng = np.random.default_rng(seed)
    written = traffic(stored, *random_gaps(stored, 1e6, 0, 60, rng), rng)
    run = once(written.stimulus, stored, Window.CLOCK, Sink.EXTENDED, drain_rate=50_000_000,
               stalls=[(3.3, 25), (31.3, 25)])
    balanced(run, written)
    assert not run.losses


def test_level(stored):
    """The level and its highest mark are what waits; a reset lowers the mark and leaves the level."""
    rng = np.random.default_rng(3)
    written = traffic(stored, *random_gaps(stored, 1e6, 0, 10, rng), rng)
    with VirtualLink(written.stimulus, stored, stalls=[(0, 10)]) as link:
        assert read(link, "STORE_DEPTH") == stored.store_depth
        assert read(link, "STORE_LEVEL") == 0
        start(link, written.stimulus, Window.CLOCK, Sink.EXTENDED)
        link.stream(LIMIT)
        write(link, "CONTROL", Control.STREAM | Window.CLOCK << 2)
        for _ in range(10):
            link.stream(LIMIT)
        mark = read(link, "STORE_LEVEL")
        level = mark & 0xFFFF
        assert level == mark >> 16 > 10
        write(link, "CONTROL", Control.RESET | Window.CLOCK << 2)
        assert read(link, "STORE_LEVEL") == level << 16 | level
        stream = bytearray()
        while link.edge < 1_100_000:
            stream += link.stream(LIMIT)
        assert read(link, "STORE_LEVEL") == level << 16
        # With what stands between store and link.
        assert level * BEAT_BYTES <= len(stream) <= (level + 16) * BEAT_BYTES
        write(link, "CONTROL", Control.RESET | Window.CLOCK << 2)
        assert read(link, "STORE_LEVEL") == 0
    assert decode(bytes(stream), stored).stopped


@pytest.mark.parametrize("after", [300, 3000, 300_000])
def test_reset_while_the_host_is_away(stored, after):
    """The blocks that wait are whole, and of their own epoch; the next run is whole."""
    rng = np.random.default_rng(after)
    written = traffic(stored, *random_gaps(stored, 8e6, 0, 5, rng), rng)
    with VirtualLink(written.stimulus, stored, stalls=[(0, 3.2)]) as link:
        start(link, written.stimulus, Window.CLOCK, Sink.EXTENDED)
        while link.edge < after:
            link.stream(16)
        run = play(link, written.stimulus, Window.CLOCK, sink=Sink.EXTENDED)
    epochs = [run.stream[at + 6] for at in range(0, len(run.stream), BEAT_BYTES) if run.stream[at:at + 4] == b"HMON"]
    assert set(epochs) == {1, 2}
    assert epochs == sorted(epochs)
    accepted = sum(node["accepted"] for node in run.census)
    assert sum(node["delivered"] for node in run.census) == accepted > 0


@pytest.mark.slow
def test_external_memory(external):
    """Behind it a stall that is far longer costs nothing, and most of it has gone through the SDRAM."""
    rng = np.random.default_rng(4)
    written = traffic(external, *random_gaps(external, 1e6, 0, 70, rng), rng)
    with VirtualLink(written.stimulus, external, drain_rate=50_000_000, stalls=[(2, 60)]) as link:
        assert read(link, "STORE_DEPTH") == 14 << 16
        run = play(link, written.stimulus, Window.CLOCK, sink=Sink.EXTENDED)
        assert read(link, "EXTERNAL_LEVEL") < 100
        assert 120_000 < BEAT_BYTES * read(link, "EXTERNAL_HIGH") < 200_000
    balanced(run, written)
    assert not run.losses


@pytest.mark.parametrize(("board", "way", "sink"), [
    pytest.param(board, way, sink, marks=() if (way, sink) in quick else pytest.mark.slow)
    for board, quick in (("stored", {("plain", Sink.CLASSIC), ("stalls", Sink.EXTENDED)}),
                         ("external", {("slow host", Sink.EXTENDED), ("stalls", Sink.CLASSIC)}))
    for way in ("plain", "slow host", "stalls") for sink in Sink])
def test_skipping_changes_nothing(request, board, way, sink):
    stored = request.getfixturevalue(board)
    options = {"plain": {}, "slow host": {"drain_rate": 300_000}, "stalls": {"stalls": [(1, 3), (5.5, 2.25)]}}[way]
    played = stimulus(sparse(np.random.default_rng(7), stored, 40, 4 * MS))
    kept = [once(played, stored, Window.CLOCK, sink, skip=skip, **options).stream for skip in (True, False)]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("flush", [None, 20_000])
@pytest.mark.parametrize("board", ["stored", "external"])
def test_flush(request, board, sink, flush):
    """Lone nibbles reach the host within the time that is set (a millisecond if none is), and a little."""
    stored = request.getfixturevalue(board)
    edges = 50_000 + np.cumsum(np.random.default_rng(8).integers(150_000, 700_000, 12))
    written = traffic(stored, edges, np.arange(12) % 16, np.random.default_rng(9))
    limit = 100_000 if flush is None else flush
    with VirtualLink(written.stimulus, stored, drain_rate=50_000_000) as link:
        if flush is not None:
            write(link, "FLUSH", flush)
        start(link, written.stimulus, Window.CLOCK, sink)
        stream, when = bytearray(), []
        while not link.ended or link.edge < written.edge[-1] + limit + 10_000:
            if beat := link.stream(BEAT_BYTES):
                stream += beat
                when.append(link.edge)
    end, late = 0, []
    for kind, _, payload in decode(bytes(stream), stored).blocks:
        end += padded(len(payload)) + BLOCK_HEADER.bytes + BLOCK_TRAILER.bytes
        if kind in (BlockType.FRAMES, BlockType.COMPACT):
            events = decode(bytes(stream[:end]), stored).events
            late += [when[end // BEAT_BYTES - 1] - window for window, _, _ in events[len(late):]]
    assert len(late) == len(written)
    # The block itself takes a few hundred clocks at that rate, more if it has to let a census pass.
    assert limit - 100 <= max(late) <= limit + 3000, late
    assert all(delay >= 100 for delay in late)
