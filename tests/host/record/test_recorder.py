"""From a link into a RUN, by both drains, whatever ends it."""

import json
import os
import random
import signal
import time

import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import BlockType, Sink
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.record.drain import open_drain
from hypermon.host.record.recorder import CutShortError, Interrupt, Limits, record
from hypermon.host.run import open_run
from hypermon.host.text.printable import visible

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import in_time

from .recorded import board, cut_short, rows


@pytest.mark.parametrize("nodes", [4, 32])
def test_stream_drain(tmp_path, nodes):
    made = board(nodes)
    ledger = record(Device(FakeLink(made)), tmp_path / "run", Settings())
    run = open_run(tmp_path / "run")
    assert rows(run) == made.events()
    assert run.stream_path.read_bytes() == made.data
    assert (ledger.events, ledger.stopped) == (len(made.events()), True)
    assert run.info.end["how"] == "the stimulus ended"
    assert run.stats()["stream_bytes"] == len(made.data)
    assert run.stats()["duration_ps"] == made.time * 800_000


@pytest.mark.parametrize("nodes", [4, 32])
def test_the_extended_sink(tmp_path, nodes):
    made = random_run(FakeBoard(nodes, sink=Sink.EXTENDED), random.Random(3), 12, losses=0.5)
    ledger = record(Device(FakeLink(made)), tmp_path / "run", Settings(sink=Sink.EXTENDED))
    run = open_run(tmp_path / "run")
    assert (run.info.sink, rows(run)) == ("extended", made.events())
    assert ledger.events == run.stats()["events"] == len(made.events())
    assert run.stats()["accounted"]


def test_the_registers_have_no_items(tmp_path):
    made = FakeLink(random_run(FakeBoard(sink=Sink.EXTENDED), random.Random(3), 12))
    with pytest.raises(HypermonError, match="--drain registers: the extended"):
        record(Device(made), tmp_path / "run", Settings(sink=Sink.EXTENDED), drain="registers")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("nodes", [4, 32])
@pytest.mark.parametrize("gap", [1000, 2**31])
def test_register_drain(tmp_path, nodes, gap):
    """Groups as in footnote 5; every frame is in one, and none crosses 32 bits of time."""
    made = board(nodes, gap=gap)
    record(Device(FakeLink(made)), tmp_path / "run", Settings(), drain="registers")
    run = open_run(tmp_path / "run")
    assert rows(run) == made.events()
    stats = run.stats()
    assert (stats["accounted"], stats["missing_blocks"], stats["lost"]) == (True, 0, sum(made.refused.values()))
    others = [b for b, (t, _) in zip(made.blocks, made.kinds, strict=True) if t is not BlockType.FRAMES]
    assert stats["stream_bytes"] == len(b"".join(others))
    assert stats["payload_bytes"] == stats["frames"] * (16 if nodes == 4 else 24)
    groups = pq.read_table(tmp_path / "run" / "groups.parquet")
    assert [str(f.type) for f in groups.schema] == ["int64"] * 3
    assert groups.schema.names == ["frames", "first_ps", "last_ps"]
    assert sum(groups["frames"].to_pylist()) == stats["frames"] == made.frame_count
    stamps, at = [made.ps(stamp) for t, f in made.kinds if t is BlockType.FRAMES for stamp, _ in f], 0
    for group in groups.to_pylist():
        assert (group["first_ps"], group["last_ps"]) == (stamps[at], stamps[at + group["frames"] - 1])
        at += group["frames"]
    assert len(groups) > 1 or gap == 1000


def test_a_group_never_goes_into_the_middle_of_a_block_of_the_stream(tmp_path):
    made = board()
    ledger = record(Device(FakeLink(made, piece=112, trickle=3)), tmp_path / "run", Settings(), drain="registers")
    run = open_run(tmp_path / "run")
    assert rows(run) == made.events()
    assert ledger.lost == run.stats()["lost"] == sum(made.refused.values())
    assert not [i for piece in run.pieces() for i in BlockScanner().feed(piece) if not isinstance(i, Block)]
    assert (run.stats()["accounted"], run.stats()["torn_bytes"]) == (True, 0)
    assert len(pq.read_table(tmp_path / "run" / "groups.parquet")) > 20


def test_the_stream_has_its_turn_however_many_frames_wait():
    link = FakeLink(board())
    link.read = lambda address, read=link.read: 1 if address == link.by_name["RUN"] else read(address)
    device = Device(link)
    device.prepare(Settings())
    device.start(stream=False)
    link.waiting *= 50
    drain = open_drain("registers", device)
    for _ in range(1000):
        drain.poll()
    assert 10 <= link.polls <= 100


def test_a_group_too_large_for_a_block(tmp_path):
    made = FakeBoard().start()
    for first in range(0, 10_000, 1000):
        made.frames([(first + i, {i % 16: 1}) for i in range(1000)])
    record(Device(FakeLink(made.stop())), tmp_path / "run", Settings(), drain="registers")
    assert rows(open_run(tmp_path / "run")) == made.events()
    assert pq.read_table(tmp_path / "run" / "groups.parquet")["frames"].to_pylist() == [10_000]


@pytest.mark.parametrize("piece", [1 << 20, 100, 1000])
def test_what_comes_behind_the_last_block_is_not_of_the_run(tmp_path, piece):
    """A link may bring more than was asked for in its last piece."""
    made = board()
    link = FakeLink(made, piece=piece)
    wanted = made.data
    made.blocks[-1] += FakeBoard().census().blocks[0] + b"HMON"
    ledger = record(Device(link), tmp_path / "run", Settings())
    assert (ledger.stopped, ledger.torn) == (True, 0)
    assert (tmp_path / "run" / "stream.bin").read_bytes() == wanted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_it_properly(tmp_path, number):
    made = board()
    link = FakeLink(made, piece=400, endless=True)
    link.on_poll = lambda polls: os.kill(os.getpid(), number) if polls == 3 else None
    interrupt = Interrupt()
    with interrupt.noted():
        ledger = record(Device(link), tmp_path / "run", Settings(), interrupt=interrupt)
    assert ledger.stopped
    run = open_run(tmp_path / "run")
    assert run.info.end["how"] == "interrupted"
    assert rows(run) == made.events()


@pytest.mark.parametrize("name", ["sim:a\nb.csv", "sim:tab\t.csv", "tcp:\x1b[31mred", "sim:" + 40_000 * "\x1b"])
def test_a_board_of_any_name_makes_a_run_that_opens(tmp_path, name):
    link = FakeLink(board())
    link.uri = name
    record(Device(link), tmp_path / "run", Settings())
    assert open_run(tmp_path / "run").info.board == visible(name)[:1 << 16]


def test_a_message_of_any_text_makes_a_run_that_opens(tmp_path):
    link = FakeLink(board(), piece=400, endless=True)

    def fails(polls):
        if polls == 3:
            raise LinkError("\x1b[2J" + 9000 * "!")

    link.on_poll = fails
    with pytest.raises(CutShortError):
        record(Device(link), tmp_path / "run", Settings())
    assert open_run(tmp_path / "run").info.end["how"].startswith("\\x1b[2J!!!")


def test_a_closed_terminal_may_say_so_twice(tmp_path):
    made = board()
    link = FakeLink(made, piece=400, endless=True)
    link.on_poll = lambda polls: os.kill(os.getpid(), signal.SIGHUP) if polls in (3, 5) else None
    interrupt = Interrupt()
    with interrupt.noted():
        assert record(Device(link), tmp_path / "run", Settings(), interrupt=interrupt).stopped
    assert rows(open_run(tmp_path / "run")) == made.events()


def test_what_is_ignored_stays_ignored():
    """The recording of `nohup hypermon record` continues."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt().noted():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_interrupt_ends_it_at_once(tmp_path):
    link = FakeLink(board(), piece=400, endless=True)
    link.on_poll = lambda polls: os.kill(os.getpid(), signal.SIGINT) if polls in (3, 5) else None
    interrupt = Interrupt()
    with interrupt.noted(), pytest.raises(CutShortError, match=r"interrupted twice; .* at least") as cut:
        record(Device(link), tmp_path / "run", Settings(), interrupt=interrupt)
    ledger = cut.value.ledger
    assert not ledger.stopped
    run = open_run(tmp_path / "run")
    assert run.info.end["how"] == "interrupted twice"
    assert run.events().num_rows == ledger.events


def test_signals_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with Interrupt().noted():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_limits(tmp_path):
    link = FakeLink(board(), piece=400, endless=True)
    record(Device(link), tmp_path / "a", Settings(), limits=Limits(events=5))
    assert open_run(tmp_path / "a").info.end["how"] == "stopped at the given number of items"
    link = FakeLink(board(), endless=True)
    link.board_ps = 0
    link.on_poll = lambda polls: setattr(link, "board_ps", polls * 10**11)
    record(Device(link), tmp_path / "b", Settings(), limits=Limits(seconds=1.5))
    assert link.polls >= 15
    assert open_run(tmp_path / "b").info.end["how"] == "stopped at the time limit"


class Slower(FakeLink):
    """A board whose time passes at this fraction of the host's, or stands still; it tells its time when it is asked."""

    def __init__(self, rate):
        super().__init__(board(), endless=True)
        self.rate, self.began = rate, time.monotonic()

    def stream(self, limit):
        in_time(self.began, 20)
        return super().stream(limit)

    def write(self, address, value):
        if address == self.by_name["LATCH"]:
            windows = round(self.rate * (time.monotonic() - self.began) * 1e9 / 800)
            self.put(TIME_LOW=windows & 0xffffffff, TIME_HIGH=windows >> 32)
        else:
            super().write(address, value)


@pytest.mark.parametrize(("rate", "least", "most"), [
    (1.0, 0.05, 2), (0.1, 0.5, 5), (0.0, 0.05, 2)], ids=["as a real board", "simulated", "stands still"])
def test_the_limit_is_of_the_board(tmp_path, rate, least, most):
    link, began = Slower(rate), time.monotonic()
    record(Device(link), tmp_path / "run", Settings(), limits=Limits(seconds=0.05))
    assert least <= time.monotonic() - began
    in_time(began, most)
    end = open_run(tmp_path / "run").info.end
    assert end["how"] == "stopped at the time limit"
    assert end["duration_ps"] >= 5e10 or not rate


def test_a_board_that_does_not_answer_is_stopped_by_the_time_of_the_host(tmp_path, monkeypatch):
    link = Slower(0.1)

    def refuse(device, offset_ns):
        raise LinkError("fake: no answer")

    link.on_poll = lambda polls: monkeypatch.setattr("hypermon.host.record.recorder.ask", refuse)
    record(Device(link), tmp_path / "run", Settings(), limits=Limits(seconds=0.05))
    assert open_run(tmp_path / "run").info.end["how"] == "stopped at the time limit"


def test_a_board_that_was_reset_without_a_word(tmp_path, monkeypatch):
    """By its button: the link stays, and its time begins anew. It may be another recorder's now, and is not stopped."""
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    link = FakeLink(board(), piece=400, endless=True)

    def reset(polls):
        if polls == 5:
            link.put(FRAME_POS=2 << 16)
            link.board.time = 0

    link.on_poll = reset
    cut_short(link, tmp_path / "run", "ended early: the board was reset or switched off; ")
    assert open_run(tmp_path / "run").info.end["duration_ps"] is None
    assert link.control[-1] & 2


@pytest.mark.parametrize("limits", [Limits(trigger=True), Limits(trigger=True, events=5),
                                    Limits(trigger=True, seconds=0.0)])
def test_a_trigger_that_was_not_found(tmp_path, limits):
    cut_short(FakeLink(board()), tmp_path / "run", ", and the trigger was not found; ", limits=limits)


@pytest.mark.parametrize("aside", [True, False])
def test_a_link_that_fails(tmp_path, aside):
    """What was recorded until then is kept, unless it is worth nothing."""
    link = FakeLink(board(), piece=400)

    def fail(polls):
        if polls == 4:
            raise HypermonError("fake: unplugged")

    link.on_poll = fail
    with pytest.raises(HypermonError, match="unplugged"):
        record(Device(link), tmp_path / "run", Settings(), aside=aside)
    assert [p.name for p in tmp_path.iterdir()] == ([] if aside else ["run"])
    if not aside:
        run = open_run(tmp_path / "run")
        assert run.stream_path.stat().st_size == 1200
        assert (run.info.end["how"], run.info.end["proper"]) == ("fake: unplugged", False)


def test_what_was_recorded_is_synced_now_and_then(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0)
    monkeypatch.setattr("os.fsync", synced.append)
    link = FakeLink(board())
    record(Device(link), tmp_path / "run", Settings())
    assert len(synced) >= link.polls


def test_recording_json_is_there_from_the_start(tmp_path):
    seen = []
    link = FakeLink(board())
    link.on_poll = lambda polls: seen.append(json.loads((tmp_path / "run" / "recording.json").read_text()))
    record(Device(link), tmp_path / "run", Settings(flush_ms=4))
    first = seen[0]
    assert first["end"] is None
    assert (first["nodes"], first["clock_hz"], first["window"], first["epoch"]) == (16, 100_000_000, "800", 1)
    assert first["configuration"]["flush_windows"] == 5000


def test_an_existing_run_is_refused_and_untouched(tmp_path):
    (tmp_path / "run").mkdir()
    link = FakeLink(board())
    with pytest.raises(HypermonError, match="exists already"):
        record(Device(link), tmp_path / "run", Settings())
    assert list((tmp_path / "run").iterdir()) == []
