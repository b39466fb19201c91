"""How a board's times become the run's."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypermon.hdl.layout import Window
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.alignment import Alignment, align, offsets
from hypermon.host.recording.clock import WallClock
from hypothesis import given
from hypothesis import strategies as st

CLOCKS = st.sampled_from([20_000_000, 50_000_000, 60_000_000, 100_000_000, 133_000_000, 150_000_000])
#: Times of a recording: a day, and somewhat before its beginning.
STAMPS = st.lists(st.integers(-100, 86_400 * 300_000_000), min_size=1, max_size=30)


def recording(clock_hz, utc_ns=10**18, drift_ppm=0.0):
    info = SimpleNamespace(board="uart:x", nodes=4, clock_hz=clock_hz, configuration={}, end={"duration_ps": 0})
    return SimpleNamespace(info=info, clock=WallClock(utc_ns, drift_ppm, 400, 9), path=None)


@given(clock_hz=CLOCKS, stamps=STAMPS, drift=st.floats(-100, 100).filter(bool), offset=st.integers(-10**15, 10**15))
def test_corrected_times_are_whole_ticks(clock_hz, stamps, drift, offset):
    """An eighth of a clock each, rounded down to picoseconds; within a sixteenth of the exact time."""
    own = Alignment("", 0, 1, "host clock", offset, drift, 0, 8 * clock_hz)
    tick = Fraction(10**12, 8 * clock_hz)
    board = [int(stamp * Fraction(10**12, 2 * clock_hz)) for stamp in stamps]
    for time, moved in zip(board, own.times(np.array(board)).tolist(), strict=True):
        exact = time + Fraction(time) * Fraction(drift) / 10**6
        assert abs(moved - offset - exact) <= tick / 2 + 2 + abs(exact) / 2**50
        count = -(-(moved - offset) // tick)
        assert int(count * tick // 1) == moved - offset


@given(clock_hz=CLOCKS, first=st.integers(0, 10**14), drift=st.floats(-100, 100))
def test_different_times_stay_different_and_in_order(clock_hz, first, drift):
    """Of consecutive quarters of a clock, the finest that a stamp may count."""
    own = Alignment("", 0, 1, "host clock", 7, drift, 0, 8 * clock_hz)
    board = np.array([int((first + k) * Fraction(10**12, 4 * clock_hz)) for k in range(200)])
    assert np.all(np.diff(own.times(board)) > 0)
    every = own.times(np.arange(int(board[0]), int(board[0]) + 30_000))
    assert np.all(np.diff(every) >= 0)


@pytest.mark.parametrize(("clock_hz", "drift", "ticks", "unsure"), [
    (100_000_000, 20.0, 800_000_000, 801), (20_000_000, 20.0, 160_000_000, 804), (100_000_000, 0.0, 0, 800),
    (99_999_989, 20.0, 0, 800)])
def test_ticks_of_a_board(clock_hz, drift, ticks, unsure):
    """Half a tick is added to the uncertainty. Without drift, or with an odd clock, times stay as exact as they are."""
    _, own = offsets([recording(100_000_000), recording(clock_hz, drift_ppm=drift)])
    assert (own.ticks_hz, own.uncertainty_ns) == (ticks, unsure)
    times = np.array([0, 10**16 + 1])
    wanted = times if not drift else times + np.rint(times * (own.drift_ppm * 1e-6)).astype(np.int64)
    if not ticks:
        assert own.times(times).tolist() == wanted.tolist()


def test_the_first_board_and_wires_are_exact():
    parts = [recording(100_000_000, drift_ppm=5.0), recording(100_000_000, drift_ppm=9.0)]
    parts[1].info.configuration["follow"] = True
    times = np.array([-70, 1, 10**17 + 3])
    for own in offsets(parts):
        assert own.times(times).tolist() == times.tolist()


def followed(stopped, last_time, counted_until=None):
    """What a decoded recording says of a board that followed."""
    return {"followed": True, "stopped": stopped, "last_time": last_time,
            **({} if counted_until is None else {"counted_until": counted_until})}


@pytest.mark.parametrize(("second", "third", "unsure"), [
    (followed(True, 10**9), followed(True, 10**9), [25, 40]),
    # 4,000,000 clocks after the last census at up to 100 ppm: 400 clocks.
    (followed(False, 10**9, [996_000_000, 10**9, 998_000_000, 10**9]), followed(True, 10**9), [4025, 4040]),
    (followed(True, 10**9), followed(False, 10**9, [996_000_000] * 4), [25, 4040]),
    (followed(False, 10**6), followed(True, 10**9), [1025, 1040])])
def test_a_wave_that_may_have_failed_unseen(second, third, unsure):
    """After the last census of a recording that was killed, nothing says that the board followed."""
    parts = [recording(100_000_000) for _ in range(3)]
    for part in parts:
        part.info.scale = TimeScale(100_000_000, Window.CLOCK, 0)
        part.info.configuration["follow"] = part is not parts[0]
    chain = [None, {"follows": 0}, {"follows": 1}]
    first, *others = align(parts, [followed(True, 10**9), second, third], chain)
    assert first.uncertainty_ns == 0
    assert [own.uncertainty_ns for own in others] == unsure


def test_a_clock_that_was_not_saved_at_the_end():
    """Two seconds at 100 ppm for each recording that was killed."""
    parts = [recording(100_000_000), recording(100_000_000)]
    for killed in (0, 1):
        parts[killed].info.end = None
        assert offsets(parts)[1].uncertainty_ns == 800 + 200_000 * (killed + 1)
