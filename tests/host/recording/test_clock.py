"""The board's time and UTC."""

import random
import time

import numpy as np
import pytest
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.recording.clock import Answer, ClockTie, WallClock, load_clock, save_clock
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run

BEGAN_NS = 1_800_000_000_123_456_789


def answers(rng, seconds, drift_ppm, unsure_us=200):
    """What a board answers once a second, whose time 0 was at ``BEGAN_NS``."""
    for second in range(seconds):
        board = second * 10**9 + rng.randrange(10**6)
        true = BEGAN_NS + board + round(board * drift_ppm * 1e-6)
        before, after = rng.randrange(1, unsure_us * 1000), rng.randrange(1, unsure_us * 1000)
        yield Answer(board, true - before, true + after)


@pytest.mark.parametrize("drift", [-35.0, 0.0, 12.5])
def test_offset_and_drift(drift):
    tie, rng = ClockTie(0), random.Random(3)
    for answer in answers(rng, 3600, drift):
        tie.add(answer)
    clock = tie.estimate()
    assert clock.answers == 3600
    assert clock.drift_ppm == pytest.approx(drift, abs=0.01)
    for second in (0, 1800, 3599):
        true = BEGAN_NS + second * 10**9 + round(second * 1000 * drift)
        assert abs(int(clock.utc(second * 10**12).astype(np.int64)) - true) <= min(clock.uncertainty_ns, 20_000)
    assert clock.uncertainty_ns < 200_000
    assert len(tie._answers) < 1024


def test_a_short_recording_says_nothing_about_the_drift():
    tie = ClockTie(0)
    for answer in answers(random.Random(1), 5, 50.0):
        tie.add(answer)
    clock = tie.estimate()
    assert clock.drift_ppm == 0
    assert clock.uncertainty_ns < 1_000_000
    assert abs(clock.utc_ns - BEGAN_NS) <= clock.uncertainty_ns


@pytest.mark.parametrize("rate", [1000.0, 10.0, 2.1, 0.6, 0.1, 1e-3])
@pytest.mark.parametrize("seconds", [3, 60])
def test_a_simulated_board_at_a_serial_port(tmp_path, rate, seconds):
    """It may outrun the host, or lag behind it. Its recording can be read, and says nothing about UTC."""
    tie, rng = ClockTie(BEGAN_NS), random.Random(4)
    for second in range(seconds):
        before, after = rng.randrange(10**6), rng.randrange(10**6)
        host = BEGAN_NS + second * 10**9
        tie.add(Answer(round(second * 1e9 * rate) + 1000, host - before, host + after))
    save_clock(tmp_path, tie.estimate())
    assert load_clock(tmp_path) == WallClock(BEGAN_NS, answers=seconds)


def test_a_simulated_board_whose_first_and_last_answers_are_late(tmp_path):
    """Those two alone allow any rate; the others do not."""
    tie = ClockTie(BEGAN_NS)
    for second in range(20):
        doubt = 10**12 if second in (0, 19) else 1000
        tie.add(Answer(second * 10**10, BEGAN_NS + second * 10**9 - doubt, BEGAN_NS + second * 10**9 + doubt))
    save_clock(tmp_path, tie.estimate())
    assert load_clock(tmp_path) == WallClock(BEGAN_NS, answers=20)


def test_a_drift_at_the_limit(tmp_path):
    """What is measured as a drift can be read again."""
    for drift in (-499_000.0, 499_000.0):
        tie = ClockTie(BEGAN_NS)
        for answer in answers(random.Random(5), 60, drift):
            tie.add(answer)
        save_clock(tmp_path, tie.estimate())
        assert load_clock(tmp_path).drift_ppm == pytest.approx(drift, abs=100)


@pytest.mark.parametrize("jump_s", [-86_400.0, -3600.0, 0.5, 40 * 365 * 86_400.0])
def test_a_clock_that_is_set_while_it_records(tmp_path, monkeypatch, jump_s):
    """Nothing of the recording depends on it, and UTC is said to be as unsure as that."""
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    made = random_run(FakeBoard(), random.Random(3), 12)
    link, now, jumped = FakeLink(made, piece=400), time.time_ns, []
    monkeypatch.setattr("time.time_ns", lambda: now() + sum(jumped))
    link.on_poll = lambda polls: jumped.append(round(jump_s * 1e9)) if polls == 5 else None
    before = now()
    ledger = record(Device(link), tmp_path / "run", Settings())
    run = open_run(tmp_path / "run")
    assert (ledger.stopped, jumped) == (True, [round(jump_s * 1e9)])
    assert [tuple(row.values()) for row in run.events().to_pylist()] == made.events()
    # The made-up board is at a fixed time, so the offset is off by it.
    assert abs(run.clock.utc_ns + made.time * 800 - before) < 10 * 10**9
    assert abs(jump_s) * 1e9 <= run.clock.uncertainty_ns < abs(jump_s) * 1e9 + 10**9


def test_no_answer():
    assert ClockTie(BEGAN_NS).estimate() == WallClock(BEGAN_NS)
    assert "not measured" in WallClock(BEGAN_NS).as_text()


def test_utc_is_exact_to_the_nanosecond():
    clock = WallClock(BEGAN_NS, 10.0)
    assert clock.utc([0, 10**12, 10**17]).astype(np.int64).tolist() == [
        BEGAN_NS, BEGAN_NS + 10**9 + 10_000, BEGAN_NS + 10**14 + 10**9]


def test_it_is_written_down(tmp_path):
    made = random_run(FakeBoard(), random.Random(3), 5)
    record(Device(FakeLink(made)), tmp_path / "run", Settings())
    run = open_run(tmp_path / "run")
    assert run.clock.answers >= 1
    assert run.clock.uncertainty_ns is not None
    asked = run.sql("select time_ps, utc(time_ps) as utc from events order by time_ps limit 5").fetchnumpy()
    assert (asked["utc"].astype("datetime64[ns]") == run.utc(asked["time_ps"])).all()
    (tmp_path / "run" / "clock.json").unlink()
    assert open_run(tmp_path / "run").clock.uncertainty_ns is None
