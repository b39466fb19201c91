"""What views show of a stream, against what the board that wrote it was told."""

import json
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, Sink
from hypermon.host.errors import HypermonError
from hypermon.host.live.history import History
from hypermon.host.live.session import Session
from hypermon.host.live.tail import Tail
from hypermon.host.live.view import View
from hypermon.host.record import process
from hypermon.host.recording.info import RunInfo

from tests.host.fake_board import FakeBoard, random_run


def view_of(board, **info) -> View:
    return View(RunInfo("fake:", board.nodes, board.clock_hz, "800", LATENCY, board.epoch, sink=board.sink.name.lower(),
                        **info))


@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("piece", [100, 1 << 20])
def test_counts_are_the_boards(sink, piece):
    made = random_run(FakeBoard(sink=sink), random.Random(3), 40, losses=0.5)
    view = view_of(made)
    for at in range(0, len(made.data), piece):
        view.feed(made.data[at:at + piece])
    figures = view.figures()
    lost = [sum(n for (node, _), n in made.refused.items() if node == own) for own in range(16)]
    assert (figures["items"], figures["lost"]) == ([made.delivered[node] for node in range(16)], lost)
    assert figures["causes"]["vector_fifo"] == sum(n for (_, cause), n in made.refused.items() if cause == 4)
    assert (figures["stopped"], figures["missing_blocks"], figures["bytes"]) == (True, 0, len(made.data))
    assert sum(loss[1] for loss in view.losses) == sum(lost)
    whole = view.history.stretch(1 << 62)
    assert (whole.items.sum(axis=0).tolist(), whole.lost.sum(axis=0).tolist()) == (figures["items"], lost)


@pytest.mark.parametrize("sink", list(Sink))
def test_the_newest_events(sink):
    made = random_run(FakeBoard(sink=sink), random.Random(4), 40)
    view = view_of(made)
    view.feed(made.data)
    newest = [tuple(row.values()) for row in view.newest()]
    assert 0 < len(newest) <= 400
    assert newest == made.events()[-len(newest):]


def test_what_the_link_has_done():
    made = random_run(FakeBoard(), random.Random(3), 20)
    view = view_of(made)
    view.feed(b"".join(made.blocks[:5]) + b"noise" + b"".join(made.blocks[7:]))
    assert (view.missing_blocks, view.torn_bytes) == (2, 5)
    assert view.figures()["items"] == [made.delivered[node] for node in range(16)]


@pytest.mark.parametrize("sink", list(Sink))
def test_blocks_that_come_again_show_nothing_new(sink):
    made = random_run(FakeBoard(sink=sink), random.Random(3), 20, losses=0.5)
    once, twice = view_of(made), view_of(made)
    once.feed(made.data)
    blocks = made.blocks
    twice.feed(b"".join(blocks[:12] + blocks[:12] + blocks[10:12] + blocks[12:] + blocks[5:9]))
    assert twice.figures() | {"bytes": 0} == once.figures() | {"bytes": 0}
    assert list(twice.losses) == list(once.losses)
    assert twice.newest() == once.newest()


def test_a_ring_is_counted_from_where_it_begins():
    made = random_run(FakeBoard(), random.Random(3), 60)
    censuses = [number for number, (kind, _) in enumerate(made.kinds) if kind == 4]
    view = view_of(made)
    view.feed(b"".join(made.blocks[censuses[len(censuses) // 2]:]))
    assert view.figures()["items"] == [made.delivered[node] for node in range(16)]
    assert 0 < view.history.stretch(1 << 62).items.sum() < sum(made.delivered.values())


def test_of_another_run_nothing_is_shown():
    made, other = random_run(FakeBoard(), random.Random(3), 5), random_run(FakeBoard(epoch=9), random.Random(5), 5)
    view = view_of(made)
    view.feed(made.data)
    before = view.figures()
    view.feed(other.data)
    assert view.figures()["items"] == before["items"]


def spread(ends, items, bin_ps):
    """What is counted in each bin, interval by interval: plainly, in fractions and rounded once an edge."""
    counts, begin = {}, 0
    for end, count in zip(ends, items, strict=True):
        at, before = begin, 0
        for bin in range(max(begin - (begin == end), 0) // bin_ps, (max(end - 1, 0)) // bin_ps + 1):
            at = min((bin + 1) * bin_ps, end)
            until = round(Fraction(count * (at - begin), end - begin)) if end > begin else count
            counts[bin] = counts.get(bin, 0) + until - before
            before = until
        begin = end
    return counts


@pytest.mark.parametrize("parts", [3, 77])
def test_history_adds_up_at_every_distance(parts):
    rng = np.random.default_rng(7)
    ends = np.cumsum(rng.integers(0, 5 * 10**10, 5_000)).astype(np.int64)     # two minutes in all
    ends[100:103] = ends[100]     # intervals of no length
    items = rng.integers(0, 9, (len(ends), 3)).astype(float)
    history = History(3)
    for part in np.array_split(np.arange(len(ends)), parts):
        history.add(ends[part], items[part], items[part] * 2, items[part, 0])
    for span_s, bin_ms in ((1, 10), (10, 10), (30, 40), (100, 160), (1000, 160)):
        got = history.stretch(span_s * 10**12)
        assert got.bin_ps == bin_ms * 10**9
        assert got.begin_ps % got.bin_ps == 0
        assert got.end_ps == ends[-1]
        bins = (ends - 1) // got.bin_ps - got.begin_ps // got.bin_ps
        assert bins[-1] == len(got.items) - 1
        for table, node, own in ((got.items, 1, items[:, 1]), (got.lost, 2, 2 * items[:, 2])):
            counts = spread(ends.tolist(), own.astype(int).tolist(), got.bin_ps)
            first = got.begin_ps // got.bin_ps
            assert table[:, node].tolist() == [counts.get(first + row, 0) for row in range(len(table))]
        for row in range(len(got.items)):
            assert got.level[row] == items[bins == row, 0].max(initial=0)
    assert history.stretch(1000 * 10**12).items.sum() == items.sum()


def test_a_silence_longer_than_the_history():
    history, one = History(1), np.ones((1, 1))
    history.add(np.array([10**9]), one, one, one[0])
    history.add(np.array([40 * 10**12]), one * 4000, one, one[0])
    assert history.stretch(10**13).items.tolist() == [[1]] * 1000
    assert history.stretch(10**14).items.sum() == 4001


def test_times_at_the_end_of_all_times():
    history, one = History(1), np.ones((1, 1))
    for end in (10**12, 2**62 - 1, 2**63 - 1, 2**63 - 1):
        history.add(np.array([end]), one, one, one[0])
    # The longest bins reach back 31 days; the second count is spread over 53.
    assert [history.stretch(span_ps).items.sum() for span_ps in (1 << 62, 1)] == [3, 2]


#: Milliseconds between two censuses: as on a fast link, on a slow one, and as traffic has it; none is a round clock.
_INTERVALS = {"10 ms": lambda rng: 10.0, "100 ms": lambda rng: 100.0, "a bit more than 10 ms": lambda rng: 10.0000131,
              "irregular": lambda rng: rng.uniform(10, 100), "late": lambda rng: rng.choice([3, 10, 250])}


@pytest.mark.parametrize("interval", _INTERVALS)
@pytest.mark.parametrize("rate", [100, 4321, 2_000_000])
def test_a_constant_rate_is_a_constant_history(interval, rate):
    """Whatever a census covers: every bin has what came in it, to an item."""
    rng, ms = random.Random(5), 0.0
    made = FakeBoard().start()
    scale = view_of(made).info.scale
    while ms < 3000:
        ms += _INTERVALS[interval](rng)
        window = round(ms * 1e9 / scale.window_ps)
        for node in range(16):
            made.delivered[node] = scale.start_ps(window) * rate * (node + 1) // 10**12
            made.refused[node, 2] = made.delivered[node] // 7
        made.census(time=window)
    view, data = view_of(made), made.data
    for at in range(0, len(data), 5000):
        view.feed(data[at:at + 5000])
    for span_s, least in ((3, 250), (1, 90)):
        got = view.history.stretch(span_s * 10**12)
        assert len(got.items) > least
        for node in range(16):
            wanted = got.bin_ps * rate * (node + 1) / 1e12
            # What is counted is a whole number at each census and at each edge.
            assert np.abs(got.items[:-1, node] - wanted).max() < (1.01 if wanted % 1 == 0 else 2)
            assert np.abs(got.lost[:-1, node] - wanted / 7).max() < 2
    whole = view.history.stretch(1 << 62)
    assert whole.items.sum(axis=0).tolist() == [made.delivered[node] for node in range(16)]
    assert whole.lost.sum(axis=0).tolist() == [made.refused[node, 2] for node in range(16)]


@pytest.mark.parametrize("count", [2**53 + 1, 2**63, 2**64 - 1])
def test_a_count_that_cannot_be(count):
    """It is left out, said, and what comes after it is shown."""
    made = FakeBoard().start()
    for delivered in (10, count, 9, 15):      # one beyond all counts, and one that falls
        made.delivered[3] = delivered
        made.census(time=made.time + 1000)
    view = view_of(made)
    shown = []
    for block in made.blocks:
        view.feed(block)
        shown.append((view.figures()["items"][3], view.faulty_blocks))
    assert shown == [(0, 0), (10, 0), (10, 1), (10, 2), (15, 2)]
    assert view.history.stretch(1 << 62).items.sum() == 15


def test_losses_that_cannot_be():
    made = FakeBoard().start()
    made.loss([(16, 1, 2, 3), (1, 7, 9, 3), (2, 5, 0, 2**64 - 1), (3, 4, 5, 6)])
    view = view_of(made)
    view.feed(made.data)
    assert ([loss[:2] for loss in view.losses], view.faulty_blocks) == ([(3, 4)], 3)


def test_a_tail_reads_what_is_appended(tmp_path):
    with Tail(tmp_path) as tail:
        assert (tail.read(), tail.behind) == (b"", 0)
        with open(tmp_path / "stream.bin", "wb", buffering=0) as file:
            file.write(b"abc")
            assert (tail.read(2), tail.behind, tail.read(), tail.read()) == (b"ab", 1, b"c", b"")
            file.write(b"def")
            assert tail.read() == b"def"
            file.write(b"end")
        (tmp_path / "stream-00001.bin").write_bytes(b"next")
        (tmp_path / "stream-00002.bin").write_bytes(b"last")
        assert (tail.behind, tail.read(), tail.read(), tail.read(), tail.read()) == (11, b"end", b"next", b"last", b"")
        # A ring: what it has dropped cannot be read.
        (tmp_path / "stream-00005.bin").write_bytes(b"later")
        account = {"came": [], "recorded": [], "agreed": [], "last": [-1, 0], "window": 0, "counters": None}
        (tmp_path / "ring.json").write_text(json.dumps({"first": 5, "account": account}))
        assert (tail.read(), tail.read()) == (b"later", b"")


def test_a_session_follows_a_recording(make_run):
    made = random_run(FakeBoard(), random.Random(3), 40, losses=0.5)
    run = make_run(made, data=made.data[:1000], end=False)
    session = Session(None, run.path, run.path.parent)
    session.step()
    assert session.snapshot()["state"] == "following"
    with open(run.path / "stream.bin", "ab") as file:
        file.write(made.data[1000:])
    session.step()
    snapshot = session.snapshot()
    assert (snapshot["state"], sum(snapshot["items"])) == ("ended", sum(made.delivered.values()))
    assert len(session.newest()) > 0
    session.close()


def test_without_blocks_the_recorder_is_believed(make_run, monkeypatch):
    made = FakeBoard()
    run = make_run(made, data=b"", end=False, keep="stats")
    session = Session(None, run.path, run.path.parent)
    monkeypatch.setattr(session, "_said", {
        "events_per_node": [7] * 16, "lost_per_node": [2] + [0] * 15, "lost_on_link": 1, "frame_level": 3,
        "vector_level": 4, "board_s": 1.5, "bytes": 99})
    session.step()
    shown = session.snapshot()
    assert (shown["items"], sum(shown["lost"]) + shown["lost_on_link"]) == ([7] * 16, 2)
    assert (shown["time_ps"], shown["bytes"], shown["frame_level"]) == (15 * 10**11, 99, 3)
    session.close()


def test_a_view_that_fails_says_so(make_run, monkeypatch):
    """It is not tried again on the same recording, and what it shows meanwhile is that it failed."""
    made = random_run(FakeBoard(), random.Random(3), 20)
    run = make_run(made, data=made.data[:1000], end=False)
    session = Session(None, run.path, run.path.parent)
    monkeypatch.setattr(View, "feed", lambda self, data: 1 // 0)
    for _ in range(2):
        session.step()
        snapshot = session.snapshot()
        assert (snapshot["state"], "ZeroDivisionError" in snapshot["failure"]) == ("failed", True)
    assert (session.newest(), session.stretch(1)) == ([], None)
    session.close()


class Recorder:
    """In place of the process."""

    def __init__(self, board, run, options):
        if options == ["no room"]:
            raise OSError(12, "Cannot allocate memory")
        self.running, self.failure, self.figures = True, None, {}

    def stop(self):
        self.running = False

    def close(self):
        self.running = False


@pytest.fixture
def recording(monkeypatch, tmp_path):
    monkeypatch.setattr("hypermon.host.live.session.identify", lambda board: {"nodes": 16})
    monkeypatch.setattr("hypermon.host.live.session.RecorderProcess", Recorder)
    session = Session("sim:", None, tmp_path)
    yield session
    session.close()


def test_after_a_recorder_that_ended_another_can_start(recording, monkeypatch):
    """Also if nobody has looked meanwhile, or the view of it failed; while it runs, none can."""
    recording.start([])
    with pytest.raises(HypermonError, match="is running"):
        recording.start([])
    recording._recorder.running = False
    recording.start([])
    assert recording.snapshot()["state"] == "recording"
    monkeypatch.setattr(recording, "_look", lambda run: 1 // 0)
    recording.run.mkdir()
    (recording.run / "recording.json").touch()
    recording.step()
    assert (recording.snapshot()["state"], "ZeroDivision" in recording.snapshot()["failure"]) == ("recording", True)
    recording._recorder.running = False
    recording.step()
    assert recording.snapshot()["state"] == "ended"
    recording.start([])
    assert recording.snapshot()["failure"] == ""


def test_a_recorder_that_cannot_be_started(recording):
    """What was shown before stays, and another one can be started."""
    with pytest.raises(HypermonError, match="cannot be started: Cannot allocate memory"):
        recording.start(["no room"])
    assert (recording.run, recording.snapshot()["state"]) == (None, "idle")
    recording.start([])


def test_what_a_recorder_says_is_taken_whatever_it_is(monkeypatch):
    """A pipe that nobody empties would hold it up."""
    noise = ("import os, sys\nos.write(1, b'{\"a\": 1}\\nnonsense \\xff\\n[1]\\n' * 30000)\n"
             "os.write(2, b'\\xff\\xfe\\n' * 100000 + b'the last\\n')\nsys.exit(3)")
    monkeypatch.setattr(process, "hypermon_command", lambda *of: [sys.executable, "-c", noise])
    recorder = process.RecorderProcess("sim:", Path("run"), [])
    recorder._process.wait(20)
    assert (recorder.failure, recorder.figures) == ("the last", {"a": 1})
    recorder.close()
