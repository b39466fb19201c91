"""After a stop: how long a recorder waits for a board that is slow, silent, noisy or gone."""

import time
from dataclasses import replace

import pytest
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import Limits, record
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink

from .recorded import board, cut_short, rows


def test_a_board_that_never_says_stop_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    made = board()
    link = FakeLink(made, mute=True)
    made.blocks[-2] += b"torn"
    ledger = cut_short(link, tmp_path / "run", match="did not report that it had stopped")
    assert (ledger.stopped, ledger.torn_bytes) == (False, 4)
    run = open_run(tmp_path / "run")
    assert "did not report that it had stopped" in run.info.end["how"]
    assert rows(run) == made.events()


@pytest.mark.parametrize(("bounds", "more", "expected"), [
    ({"NOISE_MOST": 1 << 16}, b"\xa5" * 1000, "bytes of noise arrived after its last block"),
    ({"NOISE_S": 0.05, "NOISE_BYTES": 5000}, b"\xa5" * 1000, "bytes of noise arrived after its last block"),
    ({"ON_THE_WAY": 1 << 16}, b"", "bytes came in the .* s since it was stopped, and no end of them"),
    ({"LAST_S": 0.05, "SLOWEST": 1e9}, b"", "bytes came in the .* s since it was stopped, and no end of them")])
def test_a_board_that_never_falls_silent_is_given_up(tmp_path, monkeypatch, bounds, more, expected):
    """It sends noise, or valid blocks of the run with news in them, for ever."""
    for name, value in bounds.items():
        monkeypatch.setattr(f"hypermon.host.record.recorder._{name}", value)
    link = FakeLink(board(), mute=True, piece=2000)
    sent = FakeBoard().start()

    def play(polls):
        assert polls < 50_000, "it is waited for without end"
        if not link.control[-1] & 2:       # it was stopped
            sent.frames([(1000 + polls, {0: polls % 16})])
            link.pending += more or sent.blocks[-1]

    link.on_poll = play
    assert not cut_short(link, tmp_path / "run", f"did not report that it had stopped: [0-9,]+ {expected}").stopped
    assert open_run(tmp_path / "run").stats()["events"] >= len(board().events())


@pytest.mark.parametrize("slowness", [1, 1000])
def test_a_slow_link_has_more_time_after_the_stop(tmp_path, monkeypatch, slowness):
    """A serial port whose time-out was raised may lead to a simulated board."""
    monkeypatch.setattr("hypermon.host.record.recorder._LAST_S", 0.05)
    monkeypatch.setattr("hypermon.host.record.recorder._SLOWEST", 1e12)
    link = FakeLink(board(), piece=1000)
    link.slowness = slowness
    held = []

    def play(polls):
        if not link.control[-1] & 2 and not held:
            held.append(link.pending)
            link.pending = b""
            time.sleep(0.2)
        elif held and not link.pending and len(held) < 2:
            held.append(b"")
            link.pending = held[0]

    link.on_poll = play
    if slowness == 1:
        cut_short(link, tmp_path / "run", "and no end of them")
    else:
        assert record(Device(link), tmp_path / "run", Settings()).stopped


class Stopped(FakeLink):
    """Plays the blocks up to ``split``, and a block a poll from the stop on, which is at window ``time``."""

    def __init__(self, made, split, time):
        super().__init__(made)
        self.split, self.time, self.left, self.told = split, time, [], False

    def write(self, address, value):
        begins = address == self.by_name["CONTROL"] and value & 3 == 2
        stops = address == self.by_name["CONTROL"] and not value & 3 and self.told
        if not stops:
            super().write(address, value)
        if begins:
            self.told, self.pending = True, b"".join(self.board.blocks[:self.split])
        elif address == self.by_name["LATCH"]:
            self.put(TIME_LOW=self.time & 0xffffffff, TIME_HIGH=self.time >> 32)
        elif stops:
            self.left = self.board.blocks[self.split:]

    def stream(self, limit):
        data = super().stream(limit)
        return data or (self.left.pop(0) if self.left else b"")


def beats(made, count, every_s=1.0):
    """An idle board says that it is there."""
    for _ in range(count):
        made.census(time=made.time + round(every_s * 1_250_000))


def burst(made):
    made.frames([(made.time + k, {k % 16: 5}) for k in range(1, 21)])


def idle_board(before, after, every_s=1.0):
    """Twenty events before ``before`` idle seconds, twenty after them, which come after the stop and ``after`` more."""
    made = FakeBoard().start()
    burst(made)
    beats(made, before)
    split = len(made.blocks), made.time
    beats(made, after, every_s)
    burst(made)
    return Stopped(made.stop(made.time + 10), *split)


@pytest.mark.parametrize(("before", "after", "every_s"), [
    (1100, 0, 1.0), (1100, 9, 1.0),     # heartbeats from before the stop say nothing about it
    (0, 900, 0.01),                     # those of a board that is just slow to stop
    (0, 15, 300.0)])                    # far apart, because something else takes the link's time
def test_heartbeats_are_not_silence(tmp_path, before, after, every_s):
    """What a board still has to say is waited for, however long it has been idle before."""
    link = idle_board(before, after, every_s)
    ledger = record(Device(link), tmp_path / "run", Settings())
    assert (ledger.stopped, ledger.events) == (True, 40)
    assert open_run(tmp_path / "run").info.end["proper"]


def test_heartbeats_that_are_still_on_their_way(tmp_path):
    """After a long stall they come after the stop, and are older than it."""
    made = FakeBoard().start()
    beats(made, 2000)
    burst(made)
    link = Stopped(made.stop(made.time + 10), 1, made.time)
    ledger = record(Device(link), tmp_path / "run", Settings())
    assert (ledger.stopped, ledger.events) == (True, 20)


@pytest.mark.parametrize("settings", [{"flush_ms": 60_000.0}, {"item_timeout_ms": 60_000.0}])
def test_what_may_be_held_back_for_long_is_waited_for(tmp_path, settings):
    ledger = record(Device(idle_board(0, 60)), tmp_path / "run", Settings(**settings))
    assert (ledger.stopped, ledger.events) == (True, 40)


def test_a_board_that_says_everything_but_stop_is_given_up(tmp_path):
    """Before it has said it for long: these heartbeats are a second apart."""
    link = idle_board(5, 1000)
    assert not cut_short(link, tmp_path / "run", "the stimulus ended, and the board did not report").stopped
    assert link.polls < 200


def test_a_board_that_someone_else_has_begun_to_use_is_given_up(tmp_path):
    made = FakeBoard().start()
    burst(made)
    made.epoch = 2
    beats(made.start(), 100)
    link = Stopped(made.stop(), 2, 100)
    assert cut_short(link, tmp_path / "run", "did not report that it had stopped").events == 20
    assert len(link.left) > 50      # it is not listened to until it is silent


class Virtual(FakeLink):
    """A virtual board: its time is its own, and goes on as ``tick`` says."""

    board_ps = 0

    def __init__(self, made, tick, **more):
        super().__init__(made, **more)
        self.tick = tick

    def stream(self, limit):
        self.board_ps += self.tick
        return super().stream(limit)


def test_a_virtual_board_may_be_silent_for_long(tmp_path, monkeypatch):
    """It was asked to stall: its time goes on."""
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    link = Virtual(board(), tick=1, mute=True)
    last = link.blocks[-1]

    def play(polls):
        time.sleep(0.01)
        if polls == 25:
            link.pending += last

    link.on_poll = play
    assert record(Device(link), tmp_path / "run", Settings()).stopped


@pytest.mark.parametrize("follow", [False, True])
def test_a_virtual_board_whose_time_stands_still(tmp_path, monkeypatch, follow):
    """Such as one that waits for a wave that nobody can send it."""
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    monkeypatch.setattr(Device, "prepare", lambda self, settings, real=Device.prepare: real(
        self, replace(settings, follow=False)))
    link = Virtual(board(), tick=0, endless=True, mute=True)
    link.blocks = link.board.blocks = [b"", b""] if follow else link.blocks
    words = "has stopped, and the board did not report that it had stopped" + (
        ", and the wave that it follows never arrived" if follow else "; ")
    cut_short(link, tmp_path / "run", words, settings=Settings(follow=follow), limits=Limits(seconds=5))


@pytest.mark.parametrize(("slowness", "arrives"), [(1.0, False), (100.0, True)])
def test_a_wave_may_arrive_late(tmp_path, monkeypatch, slowness, arrives):
    """The other board's process may take long to start, and this board has no time until then."""
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    monkeypatch.setattr(Device, "prepare", lambda self, settings, real=Device.prepare: real(
        self, replace(settings, follow=False)))
    made, held, came = board(), [], time.monotonic() + 0.3
    link = Virtual(made, tick=0, endless=True)
    link.slowness = slowness

    def play(polls):
        time.sleep(0.01)
        if not link.tick:
            held.append(link.pending)
            link.pending = b""
            if arrives and time.monotonic() > came:
                link.tick, link.pending = 1, b"".join(held)

    link.on_poll = play
    asked = {"settings": Settings(follow=True), "limits": Limits(events=len(made.events()))}
    if arrives:
        assert record(Device(link), tmp_path / "run", **asked).stopped
    else:
        link.mute = True
        cut_short(link, tmp_path / "run", "and the wave that it follows never arrived", **asked)


def test_a_slow_disk_is_no_silence_of_the_board(tmp_path, monkeypatch):
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.02)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    monkeypatch.setattr("os.fsync", lambda descriptor: time.sleep(0.02))
    link = FakeLink(board(), piece=2000)
    assert record(Device(link), tmp_path / "run", Settings()).stopped


def test_a_board_that_is_gone_after_the_stop(tmp_path, monkeypatch):
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    link = FakeLink(board(), mute=True)
    link.on_poll = lambda polls: setattr(link, "away", not link.pending)
    cut_short(link, tmp_path / "run", "the stimulus ended, but fake is gone")
