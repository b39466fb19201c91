"""What views show of a stream, against what the board that wrote it was told."""

import random

import numpy as np
import pytest
from fake_board import FakeBoard, random_run
from hypermon.hdl.layout import LATENCY, Sink
from hypermon.host.live.history import History
from hypermon.host.live.session import Session
from hypermon.host.live.tail import Tail
from hypermon.host.live.view import View
from hypermon.host.recording import RunInfo


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


@pytest.mark.parametrize("parts", [3, 77])
def test_history_adds_up_at_every_distance(parts):
    rng = np.random.default_rng(7)
    ends = np.cumsum(rng.integers(1, 5 * 10**10, 5_000)).astype(np.int64)     # two minutes in all
    items = rng.integers(0, 9, (len(ends), 3)).astype(float)
    history = History(3)
    for part in np.array_split(np.arange(len(ends)), parts):
        history.add(ends[part], items[part], items[part] * 2, items[part, 0])
    for span_s, bin_ms in ((1, 10), (10, 10), (30, 40), (100, 160), (1000, 160)):
        got = history.stretch(span_s * 10**12)
        assert got.bin_ps == bin_ms * 10**9
        assert got.begin_ps % got.bin_ps == 0
        bins = (ends - 1) // got.bin_ps - got.begin_ps // got.bin_ps
        assert bins[-1] == len(got.items) - 1
        for row in range(len(got.items)):
            assert got.items[row].tolist() == items[bins == row].sum(axis=0).tolist()
            assert got.level[row] == items[bins == row, 0].max(initial=0)
        assert np.array_equal(got.lost, 2 * got.items)
    assert history.stretch(1000 * 10**12).items.sum() == items.sum()


def test_a_silence_longer_than_the_history():
    history, one = History(1), np.ones((1, 1))
    history.add(np.array([10**9]), one, one, one[0])
    history.add(np.array([40 * 10**12]), one, one, one[0])
    assert history.stretch(10**13).items.sum() == 1
    assert history.stretch(10**14).items.sum() == 2


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
        (tmp_path / "ring.json").write_text('{"first": 5, "account": {}}')
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
