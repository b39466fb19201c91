"""Recordings of hours: segments, rings, full disks, killed hosts, and what is kept."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypermon.hdl.layout import CensusFlag, Sink, Window
from hypermon.host.device.device import Device, Settings
from hypermon.host.device.trigger import parse_match
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.export.formats import export
from hypermon.host.live.tail import Tail
from hypermon.host.record.recorder import CutShortError, Limits, record
from hypermon.host.recording.segments import segments
from hypermon.host.run import open_run

from tests.host.endless import EndlessLink
from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import patience, until

PROGRAM = [sys.executable, str(Path(__file__).parents[1] / "endless.py")]


def board(blocks=60, **more):
    return random_run(FakeBoard(**more), random.Random(5), blocks, losses=0.4)


def rows(run):
    return [tuple(row.values()) for row in run.events().to_pylist()]


def test_segments(tmp_path):
    made = board()
    record(Device(FakeLink(made, piece=777)), tmp_path / "run", Settings(), segment_bytes=3000)
    run = open_run(tmp_path / "run")
    names = [path.name for path in segments(run.path)[0]]
    assert names[:2] == ["stream.bin", "stream-00001.bin"]
    assert len(names) > 5
    assert b"".join(run.pieces()) == made.data
    for path in segments(run.path)[0]:
        assert path.read_bytes()[:4] == made.data[:4]  # each begins with a block
    assert rows(run) == made.events()
    stats = run.stats()
    assert (stats["lost"], stats["accounted"], stats["complete"]) == (sum(made.refused.values()), True, False)


def test_a_ring(tmp_path):
    """The last part of a run, as if there had been nothing before: nothing that went is a loss."""
    made = board(300)
    whole = made.events()
    ring_ps = whole[-1][0] // 4
    record(Device(FakeLink(made, piece=500)), tmp_path / "run", Settings(), ring_s=ring_ps / 1e12)
    run = open_run(tmp_path / "run")
    (first, *_), begins = segments(run.path)
    assert first.name != "stream.bin"
    assert begins is not None
    kept = rows(run)
    assert kept == whole[-len(kept):]
    assert ring_ps <= whole[-1][0] - kept[0][0] < 1.3 * ring_ps
    lost, stats = run.loss().to_pylist(), run.stats()
    assert sum(row["lost"] for row in lost) == stats["lost"] < sum(made.refused.values())
    assert (stats["events"], stats["accounted"], stats["causes"]["link"]) == (len(kept), True, 0)
    assert abs(stats["duration_ps"] - (made.time * 800_000 - kept[0][0])) < 0.05 * ring_ps
    # A segment that should have been removed when the host was killed is not read.
    (run.path / "stream.bin").write_bytes(made.data[:5000])
    (run.path / "decode.json").unlink()
    assert rows(open_run(run.path)) == kept


def test_a_survey_of_a_ring(tmp_path, monkeypatch):
    """Times are from the beginning of what was kept."""
    from hypermon.host.analysis import distributions

    made = board(300)
    record(Device(FakeLink(made, piece=500)), tmp_path / "run", Settings(), ring_s=made.events()[-1][0] / 4e12)
    run = open_run(tmp_path / "run")
    begins = run.stats()["begins_ps"]
    assert begins > 0
    seen, real = [], distributions.distributions
    monkeypatch.setattr(distributions, "distributions", lambda *args: (seen.append(args), real(*args))[1])
    found = distributions.distributions_of(run)
    assert seen[0][4][:, 0].tolist() == sorted(row["from_ps"] - begins for row in run.loss().to_pylist())
    assert seen[0][5] == begins
    assert found.timeline.sum() == found.rates.sum() == run.events().num_rows


def test_a_block_lost_in_a_ring(tmp_path):
    made = board(300)
    record(Device(FakeLink(made, piece=500)), tmp_path / "run", Settings(), ring_s=made.events()[-1][0] / 4e12)
    run = open_run(tmp_path / "run")
    before = run.stats()
    path = segments(run.path)[0][2]
    data = bytearray(path.read_bytes())
    data[40] ^= 1  # in the payload of its first block
    path.write_bytes(data)
    (run.path / "decode.json").unlink()
    after = open_run(run.path).stats()
    assert after["events"] + after["causes"]["link"] == before["events"] + before["causes"]["link"]
    assert after["missing_blocks"] == 1


def record_in_a_process(run, **options):
    return subprocess.Popen([*PROGRAM, str(run), *(f"{name}={value}" for name, value in options.items())],
                            stderr=subprocess.PIPE, text=True)


def prefix(run, gap=100):
    """The run's events are the first ones of what the endless board plays; their number."""
    found, link = rows(run), EndlessLink(gap=gap)
    link.limit_to(len(found) // link.events_a_round + 1)
    whole = run.path.with_name("whole")
    record(Device(link), whole, Settings(window=Window.CLOCK, sink=Sink.EXTENDED))
    assert found == rows(open_run(whole))[:len(found)]
    return len(found)


def test_a_full_disk(tmp_path):
    """It says so, and everything is there but the block that did not fit."""
    limit = 400_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        child = record_in_a_process(tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    _, said = child.communicate(timeout=patience(60))
    assert child.returncode == 1
    assert "the disk is full" in said
    run = open_run(tmp_path / "run")
    assert "the disk is full" in run.info.end["how"]
    assert run.stream_size == limit
    assert prefix(run) > 0.95 * limit / 2.35
    assert run.stats()["torn_bytes"] < 5000
    end = run.info.end
    assert (end["proper"], end["all_written"], run.stats()["complete"]) == (False, False, False)


def test_a_killed_host(tmp_path):
    child = record_in_a_process(tmp_path / "run", paced=1, gap=1000)
    stream = tmp_path / "run" / "stream.bin"
    until(lambda: stream.exists() and stream.stat().st_size > 300_000, "the recording to grow")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    run = open_run(tmp_path / "run")
    assert run.info.end is None
    assert prefix(run, 1000) > 0
    stats = run.stats()
    assert (stats["lost"], stats["missing_blocks"], stats["complete"]) == (0, 0, False)
    assert stats["torn_bytes"] < 6000


def test_almost_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr("hypermon.host.record.recorder._LEAST_FREE", 1 << 59)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    made = board()
    with pytest.raises(CutShortError, match="ended early: the disk is almost full: "):
        record(Device(FakeLink(made, piece=400)), tmp_path / "run", Settings())
    run = open_run(tmp_path / "run")
    assert run.decode()["stopped"]
    assert not run.info.end["proper"]
    assert "almost full" in run.info.end["how"]
    assert rows(run) == made.events()  # it stopped properly, and all that was captured came


@pytest.mark.parametrize("sink", [Sink.CLASSIC, Sink.EXTENDED])
def test_events_alone(tmp_path, sink):
    made = board(sink=sink)
    record(Device(FakeLink(made)), tmp_path / "raw", Settings(sink=sink))
    record(Device(FakeLink(made)), tmp_path / "events", Settings(sink=sink), keep="events")
    raw, kept = open_run(tmp_path / "raw"), open_run(tmp_path / "events")
    assert kept.stream_size == 0
    assert rows(kept) == rows(raw) == made.events()
    assert kept.loss().equals(raw.loss())
    assert kept.stats() == raw.stats()
    if sink is Sink.CLASSIC:
        with pytest.raises(InputError, match="--keep events: there are no frames"):
            export(kept, "frames", str(tmp_path / "out"))


def test_figures_alone(tmp_path):
    made = board()
    record(Device(FakeLink(made)), tmp_path / "raw", Settings())
    record(Device(FakeLink(made)), tmp_path / "stats", Settings(), keep="stats")
    raw, kept = open_run(tmp_path / "raw"), open_run(tmp_path / "stats")
    assert kept.stats() == raw.stats()
    assert kept.loss().equals(raw.loss())
    with pytest.raises(InputError, match="--keep stats: it contains no items"):
        kept.events()
    with pytest.raises(InputError, match="--keep stats: it contains no items"):
        export(kept, "csv", str(tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("keep", ["events", "stats"])
@pytest.mark.parametrize("damage", [lambda told: told.write_text("{"), lambda told: told.unlink(),
                                    lambda told: told.write_text(told.read_text().replace('"format":', '"form":'))])
def test_what_was_kept_is_not_lost_with_its_accounts(tmp_path, keep, damage):
    """There is nothing to make them of, and the events stay."""
    record(Device(FakeLink(board())), tmp_path / "run", Settings(), keep=keep)
    damage(tmp_path / "run" / "decode.json")
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(InputError, match=rf"decode.json: .*--keep {keep}: there are no blocks"):
        open_run(tmp_path / "run").stats()
    assert before == {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}


def test_killed_while_it_kept_events(tmp_path, monkeypatch):
    """What the last checkpoint said is there, in whole files."""
    monkeypatch.setattr("hypermon.host.record.keep._CHECKPOINT_S", 0.0)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    made, seen = board(), []
    link = FakeLink(made, piece=2000)

    def die(polls):
        if polls == 8:
            seen.append(json.loads((tmp_path / "run" / "decode.json").read_text())["events"])
            os.replace(tmp_path / "run", tmp_path / "killed")
            raise SystemExit

    link.on_poll = die
    with pytest.raises((SystemExit, OSError)):
        record(Device(link), tmp_path / "run", Settings(), keep="events")
    found = rows(open_run(tmp_path / "killed"))
    assert len(found) == seen[0] > 0
    assert found == made.events()[:len(found)]


class BlockByBlock(FakeLink):
    """Gives a block a poll, and notes when it was told to stop."""

    def __init__(self, made):
        super().__init__(made, endless=True)
        self.polled_when_stopped = 0

    def stream(self, limit):
        self.piece = len(self.board.blocks[self.polls]) if self.polls < len(self.board.blocks) else 1
        return super().stream(limit)

    def write(self, address, value):
        if self.polls and address == self.by_name["CONTROL"] and not value & 2:
            self.polled_when_stopped = self.polls
        super().write(address, value)


def test_until_the_trigger(tmp_path):
    made = FakeBoard(sink=Sink.EXTENDED).start()
    made.compact([(10, 1, 2)]).census(CensusFlag.TRIGGERED).compact([(20, 1, 3)]).census(CensusFlag.ENDED)
    made.stop(100)
    for match, polls in (({"start": parse_match("--start", "nibble=2")}, 3),
                         ({"stop": parse_match("--stop", "nibble=3")}, 5)):
        link = BlockByBlock(made)
        record(Device(link), tmp_path / str(polls), Settings(sink=Sink.EXTENDED, **match), limits=Limits(trigger=True))
        run = open_run(tmp_path / str(polls))
        assert run.info.end["how"] == "the trigger was found"
        assert link.polled_when_stopped == polls


def test_a_ring_of_what_is_no_stream(tmp_path):
    for more in ({"keep": "events"}, {"drain": "registers"}):
        with pytest.raises(HypermonError, match="a ring keeps raw blocks"):
            record(Device(FakeLink(board())), tmp_path / "run", Settings(), ring_s=1, **more)
    assert not (tmp_path / "run").exists()


def test_segments_as_they_grow(tmp_path):
    """What is shown of a recording meanwhile goes on from file to file."""
    made = board()
    link, seen, tail = FakeLink(made, piece=777), [], Tail(tmp_path / "run")
    link.on_poll = lambda polls: seen.append(tail.read(2000))
    record(Device(link), tmp_path / "run", Settings(), segment_bytes=3000)
    while data := tail.read():
        seen.append(data)
    tail.close()
    assert b"".join(seen) == made.data


@pytest.mark.slow
def test_other_work_does_not_starve_a_recording(tmp_path):
    """A million events a second for five seconds, while every core has two other things to do."""
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        child = record_in_a_process(tmp_path / "run", paced=1)
        stream = tmp_path / "run" / "stream.bin"
        until(lambda: stream.exists() and stream.stat().st_size, "the recording to begin")
        begin = time.monotonic()
        time.sleep(5)
        child.send_signal(signal.SIGINT)
        seconds = time.monotonic() - begin
        child.communicate(timeout=patience(60))
    finally:
        for process in load:
            process.kill()
            process.wait()
    stats = open_run(tmp_path / "run").stats()
    assert (stats["lost"], stats["complete"]) == (0, True)
    assert stats["events"] > 0.9e6 * seconds
