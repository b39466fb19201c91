"""The whole board at full speed, both sinks: every item, loss, count and time against the scoreboard.

The virtual board runs the gateware a hundred times as fast as a bench does, so that here are the
long runs: floods and silences, hosts of every kind, registers read all the while, resets.
"""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import (
    BURST_BASE,
    LATENCY,
    BlockType,
    Cause,
    Control,
    Sink,
    Status,
    Window,
    frame_words,
)

from ..harness.blocks import parse, parse_frame, runs
from ..harness.runner import seeds
from ..harness.verdict import verify
from .exact import BOARDS, MS, NAMES, Board, play, same_counts, strobes, traffic


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200, Window.NS800], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_traffic(name, sink, window, seed):
    """A quick host, each node at its own pace, some faster than a nibble a window."""
    board, _ = play(name, sink, window, "quick", seed, reads=True, count=400,
                    loads=[0.002, 0.02, 0.3] if window is Window.CLOCK else [0.05, 0.3, 0.8, 1.0, 1.5])
    board.close()


@pytest.mark.parametrize("host", ["slow", "stalled", "crawling"])
@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_overrun(name, sink, window, host):
    """More than the host takes: what is refused, why, how often, from when to when."""
    board, run = play(name, sink, window, host, 0, count=4000 if name == "deep" else 1500, loads=[0.1, 0.3],
                      reads=host == "crawling")
    if name == "small" and (sink is Sink.CLASSIC or window is Window.CLOCK):
        assert any(run.losses.values())
    board.close()


@pytest.mark.parametrize("window", [Window.NS200, Window.NS800], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_fast_nodes(name, sink, window):
    """Each node in turn writes every fourth clock: its FIFO overruns, no other loses anything, and when it has
    drained all goes on. Every outage has a record of its own."""
    geometry = BOARDS[name, sink]
    clocks, burst = geometry.window_clocks(window), max(96, 3 * geometry.node_depth)
    slot = burst * 4 + (geometry.node_depth + 40) * clocks
    edges = []
    for fast in range(geometry.nodes):
        at = 100 + fast * slot
        edges += [(at + 4 * k, fast, k % 16) for k in range(burst)]
        edges += [(at + 2 * clocks * k + 2 * n, n, (k + n) % 16)
                  for k in range(4) for n in range(geometry.nodes) if n != fast]
        edges += [(at + slot - 5 * clocks, fast, 5)]
    played = strobes(geometry, edges)
    with Board(played, sink, window) as board:
        board.configure(played)
        board.enable()
        while not board.ended:
            board.listen(1 << 16)
        assert board.get("STATUS") & ~Status.READY == Status.NODE_FULL
        run = board.finish()[-1]
        verify(run, played.offered(), clocks, grown=True)
        for n in range(geometry.nodes):
            # Between two outages half a FIFO drains. The last refusal of one may have a record of its own.
            records = sum(record.lost > 1 for record in run.losses[n])
            assert 1 <= records <= 2 + 4 * burst // (geometry.node_depth // 2 * clocks)
            assert set(run.causes[n]) == {Cause.NODE_FIFO}
        same_counts(board, run)
        board.control(Control.RESET | Control.STREAM)
        assert board.get("STATUS") == 0
        board.set("LATCH", 1)
        assert not any(value for row in board.counters() for value in row.values())


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
def test_stalled_host(sink, window):
    """The host stops while no node is faster than a nibble a window: it is the sink's memory that is full. Nodes lose
    one after the other, and the last ones open again like the first."""
    geometry = BOARDS["small", sink]
    clocks = geometry.window_clocks(window)
    step = 8 if sink is Sink.CLASSIC else 3
    count = 3000 if sink is Sink.CLASSIC else 12_000
    edges = [(100 + step * k, (k * 7) % geometry.nodes, k % 16) for k in range(count)]
    played = strobes(geometry, edges)
    end = geometry.ps(100 + step * count * 3 // 4) / MS
    with Board(played, sink, window, stalls=[(0, f"{end:.6f}")]) as board:
        board.configure(played)
        board.enable()
        while not board.ended:
            board.listen(1 << 16)
        assert board.get("STATUS") & ~Status.READY == Status.FRAME_FULL
        run = board.finish()[-1]
        verify(run, played.offered(), clocks, grown=True)
        for n in range(geometry.nodes):
            assert set(run.causes[n]) == {Cause.FRAME_FIFO}
            assert run.delivered(n)[-1][0] == (100 + step * max(k for k in range(count - 40, count)
                                                               if k * 7 % geometry.nodes == n) + LATENCY) // clocks
        same_counts(board, run)


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS800], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_silence(name, sink, window):
    """Bunches with silences between them: the same stream whether idle time is computed or skipped."""
    streams = []
    for skip in (True, False):
        board, _ = play(name, sink, window, "quick", 0, count=300, loads=[0.01, 0.1], silence=40_000, skip=skip)
        streams.append(board.data)
        board.close()
    assert streams[0] == streams[1]


@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_resets(name, sink):
    """Resets while everything is under way: what came before is of the old epoch, the new one is whole."""
    geometry, window = BOARDS[name, sink], Window.NS200
    clocks = geometry.window_clocks(window)
    choose = random.Random(name)
    played = traffic(choose, geometry, window, [0.2, 0.6], 3000)
    with Board(played, sink, window, drain_rate=200_000_000) as board:
        board.configure(played, flush=10)
        spans = []
        for number in range(1, 5):
            board.control(Control.RESET | Control.STREAM)
            assert board.get("STATUS") == board.get("FRAME_COUNT") == board.get("LEVEL") == 0
            assert board.get("FRAME_POS") == number << 16
            began = board.edge
            board.control(Control.ENABLE | Control.STREAM)
            spans.append((began, board.edge))
            until = board.edge + choose.randrange(played.end // 5)
            while not board.ended and (number == 4 or board.edge < until):
                board.listen(64)
        found = {run.epoch: run for run in board.finish()}
        for number, (low, high) in enumerate(spans, 1):
            if number not in found:
                assert number < 4
                continue
            stop = spans[number][0] if number < 4 else None
            failures = []
            for start in range(low, high + 1):
                try:
                    verify(found[number], played.offered(start, stop), clocks, cut=number < 4, grown=True)
                    break
                except AssertionError as error:
                    failures.append(error)
            else:
                raise failures[len(failures) // 2]
        same_counts(board, found[4])


@pytest.mark.parametrize("name", NAMES)
def test_registers(name):
    """Frames read by the host, groups of them as it finds them."""
    geometry, window = BOARDS[name, Sink.CLASSIC], Window.NS200
    choose = random.Random(name)
    words = frame_words(geometry.nodes)
    played = traffic(choose, geometry, window, [0.003, 0.01], 400)
    with Board(played, Sink.CLASSIC, window) as board:
        board.configure(played)
        board.enable(Control(0))
        frames = []
        while (ended := board.ended) is False or board.get("RUN"):
            count = board.get("RUN")
            assert bool(board.get("STATUS") & Status.READY) >= bool(count)
            if not count:
                board.listen(16)
                continue
            high = board.get("FRAME_HIGH")
            if choose.random() < 0.5:
                assert board.get("FRAME_POS") == 1 << 16
                data = board.read_burst(BURST_BASE + 4 * choose.randrange(16), words * count)
            else:
                data = b"".join(board.get("FRAME_FIFO").to_bytes(4, "little") for _ in range(words * count))
            rows = np.frombuffer(data, "<u4").reshape(count, words).tolist()
            frames += [parse_frame(tuple(row), geometry, high) for row in rows]
            if ended:
                board.control(Control(0))
        run = board.finish(Control(0))[-1]
        assert not run.frames
        for frame in frames:
            run.push(frame)
        verify(run, played.offered(), geometry.window_clocks(window), streamed=False, grown=True)
        same_counts(board, run)


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS800], ids=lambda w: w.name)
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_heartbeat(name, sink, window, slow):
    """A census every 100 ms, or second, while there is little to count, else every second; a lone frame
    waits for FLUSH."""
    geometry = BOARDS[name, sink]
    clocks, second = geometry.window_clocks(window), geometry.clock_hz
    every = second // (1 if slow else 10)
    edges = [(k * every // 40 + 50_000, k % geometry.nodes, k % 16) for k in range(100)]
    edges += [(every * 5 // 2 + second * 3 + 12_345, 1, 9)]
    played = strobes(geometry, edges)
    with Board(played, sink, window) as board:
        board.configure(played, flush=200)
        board.set("CENSUS", slow)
        board.enable()
        while not board.ended:
            board.listen(16)
        run = board.finish()[-1]
        blocks = [parse(data, geometry) for data in board.blocks()]
        verify(run, played.offered(), clocks)
        same_counts(board, run)
        times = [census.time * clocks for census in run.censuses]
        assert times[0] < 200 * clocks
        busy = [t for t in times if t < every * 5 // 2]
        # A few clocks late, and always as many.
        assert all(every <= b - a <= every + 12 for a, b in pairwise(busy)), busy
        assert len(busy) == 3
        # The last change is followed by a census that has it, and then by silence.
        quiet = [t for t in times if every * 7 // 2 < t < every * 5 // 2 + second * 3]
        assert len(quiet) == 2
        assert all(second <= b - a <= second + 12 for a, b in pairwise(quiet)), quiet
        offered = sorted((item for found in played.offered().values() for item in found), key=lambda i: i.edge)
        gone = [(k, b) for k, b in enumerate(blocks) if b.type in (BlockType.FRAMES, BlockType.COMPACT)]
        assert len(gone) == len(offered)
        for (number, block), item in zip(gone, offered, strict=True):
            assert block.header["time"] == item.window(clocks)
            waited = board.arrival(number) - (item.window(clocks) + 1) * clocks
            # The stop closes the block of the last one at once.
            assert (0 if item is offered[-1] else 199 * clocks) <= waited, waited
            assert waited <= 201 * clocks + (1200 if item is offered[-1] else 600), waited


@pytest.mark.parametrize(("sink", "gap", "span"), [
    (Sink.CLASSIC, 40, (10, 10.1)), (Sink.CLASSIC, 200, (14, 17)), (Sink.EXTENDED, 20, (11, 15))])
def test_census_is_a_small_share(sink, gap, span):
    """Of a busy stream less than 1 % is censuses; none comes within 10 ms, and the busier the stream is, the sooner."""
    geometry = BOARDS["deep", sink]
    millisecond = geometry.clock_hz // 1000
    edges = [(1000 + gap * k, k % geometry.nodes, k % 16) for k in range(34 * millisecond // gap)]
    played = strobes(geometry, edges)
    with Board(played, sink, Window.CLOCK) as board:
        board.configure(played)
        board.enable()
        while not board.ended:
            board.listen(1 << 16)
        verify(board.finish()[-1], played.offered(), 1)
        blocks = [(parse(data, geometry), len(data)) for data in board.blocks()]
        same_counts(board, runs(board.blocks(), geometry)[-1])
    sizes, other, times = [], 0, []
    for block, size in blocks:
        if block.type is BlockType.CENSUS:
            sizes.append(other / size)
            times.append(block.header["time"])
            other = 0
        else:
            other += size
    # The first one is of the start, the last one of the stop.
    gone = [b - a for a, b in pairwise(times[:-1])]
    assert len(gone) >= 2
    assert all(span[0] * millisecond <= time <= span[1] * millisecond for time in gone), gone
    assert min(sizes[1:-1]) > 110


def test_census_tells_what_waits():
    """Nobody takes the frames: their FIFO is full, and strobe vectors wait in theirs."""
    geometry, window = BOARDS["small", Sink.CLASSIC], Window.NS200
    edges = [(1000 + 40 * k, k % geometry.nodes, k % 16) for k in range(25)]
    played = strobes(geometry, [*edges, (geometry.clock_hz // 9, 1, 9)])
    with Board(played, Sink.CLASSIC, window) as board:
        board.configure(played)
        board.enable(Control(0))
        while not board.ended:
            board.listen(16)
        told = runs(board.blocks(), geometry)[-1].censuses[-1].board
        levels = geometry.frame_depth, 25 - geometry.frame_depth
        assert (told["frame_level"], told["vector_level"]) == levels
        # The last strobe came behind the census.
        assert board.get("LEVEL") == levels[0] | levels[1] + 1 << 16


@pytest.mark.parametrize("flush", [0x4a5a5a5a, 0x25a5a5a5, 0x00f0f0f0, 0x0f0f0f])
@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_long_flush(name, sink, flush):
    """A lone item waits for just as long as it is told to, be it seconds."""
    geometry = BOARDS[name, sink]
    after = flush + 100_000_000
    played = strobes(geometry, [(1000 + k * after, k, 9 - k) for k in range(3)])
    with Board(played, sink, Window.CLOCK) as board:
        board.configure(played, flush=flush)
        board.enable()
        assert board.get("FLUSH") == flush
        while board.edge < 3 * after:
            board.listen(16)
        run = board.finish()[-1]
        verify(run, played.offered(), 1)
        blocks = [parse(data, geometry) for data in board.blocks()]
        waited = [board.arrival(k) - b.header["time"] for k, b in enumerate(blocks)
                  if b.type in (BlockType.FRAMES, BlockType.COMPACT)]
        assert len(waited) == 3
        assert all(flush <= w <= flush + 1000 for w in waited), [w - flush for w in waited]


@pytest.mark.parametrize("name", NAMES)
def test_vectors(name):
    """Frames of a third upper half of the time stand before the frame FIFO until the first have been read: then it is
    the strobe-vector FIFO that is full, and every node's first loss is put down to it."""
    geometry = BOARDS[name, Sink.CLASSIC]
    nodes, words = geometry.nodes, frame_words(geometry.nodes)
    edges = [(100, 0, 1), ((1 << 32) + 100, 1, 2)]
    edges += [((1 << 33) + 100 + k, k % nodes, k % 16) for k in range(2 * geometry.vector_depth)]
    played = strobes(geometry, edges)
    with Board(played, Sink.CLASSIC, Window.CLOCK) as board:
        board.configure(played)
        board.enable(Control(0))
        while not board.ended:
            board.listen(1 << 16)
        assert board.get("STATUS") & ~Status.READY == Status.VECTOR_FULL
        board.control(Control(0))
        frames = []
        while count := min(board.get("RUN"), 100):
            high = board.get("FRAME_HIGH")
            rows = np.frombuffer(board.read_burst(BURST_BASE, words * count), "<u4").reshape(count, words).tolist()
            frames += [parse_frame(tuple(row), geometry, high) for row in rows]
        run = board.finish(Control(0))[-1]
        for frame in frames:
            run.push(frame)
        verify(run, played.offered(), 1, streamed=False, grown=True)
        same_counts(board, run)
        assert all(run.causes[n] == [Cause.VECTOR_FIFO] for n in range(nodes)), run.causes


@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_stop_behind_a_strobe(name, sink):
    """Capture is disabled while items are anywhere on their way: the census of the stop has them all."""
    geometry = BOARDS[name, sink]
    for window in (Window.CLOCK, Window.NS200):
        for late in range(0, 60, 2 if window is Window.CLOCK else 6):
            edges = [(60 + late + k // 4, k % geometry.nodes, k % 16) for k in range(6)]
            played = strobes(geometry, edges)
            with Board(played, sink, window) as board:
                board.configure(played, flush=10)
                board.enable()
                while board.edge < 100:
                    board.get("STATUS")
                run = board.finish()[-1]
                came = [len(run.delivered(n)) for n in range(geometry.nodes)]
                for count in ("accepted", "delivered"):
                    assert [row[count] for row in run.censuses[-1].nodes] == came


@pytest.mark.parametrize("sink", Sink, ids=lambda s: s.name.lower())
@pytest.mark.parametrize("name", NAMES)
def test_far(name, sink):
    """Items on both sides of every carry of the time, for eleven minutes."""
    geometry = BOARDS[name, sink]
    edges = [((1 << j) - LATENCY + d, (j + n) % geometry.nodes, j % 16)
             for j in range(9, 37) for n, d in enumerate((-7, -1, 0, 1, 9))]
    played = strobes(geometry, edges)
    with Board(played, sink, Window.CLOCK) as board:
        board.configure(played, flush=10)
        board.enable()
        while not board.ended:
            board.listen(1 << 16)
        run = board.finish()[-1]
        verify(run, played.offered(), 1)
        same_counts(board, run)
        assert board.get("TIME_HIGH") == 1 << 4
