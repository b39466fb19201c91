"""Exact time, against Python's fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypermon.hdl.layout import Geometry, Window
from hypermon.host.blocks.times import TimeScale
from hypothesis import given
from hypothesis import strategies as st

clocks = st.integers(1, 200).map(lambda n: n * 5_000_000) | st.sampled_from([30_000_000, 35_000_000])
scales = st.builds(TimeScale, clocks, st.sampled_from(Window), st.integers(0, 255))


def exact(scale: TimeScale, stamp: int) -> Fraction:
    return Fraction((stamp * scale.window.clocks(scale.clock_hz) - scale.latency) * 10**12, scale.clock_hz)


@given(scales, st.data())
def test_start_is_exact_rounded_down(scale, data):
    stamps = data.draw(st.lists(st.integers(0, scale.stamp_max) | st.integers(0, 1000), min_size=1))
    wanted = [math.floor(exact(scale, s)) for s in stamps]
    assert [scale.start_ps(s) for s in stamps] == wanted
    assert scale.starts_ps(np.array(stamps, np.int64)).tolist() == wanted


fine_scales = st.builds(TimeScale, clocks, st.just(Window.CLOCK), st.integers(0, 255), st.sampled_from([2, 4]))


@given(scales | fine_scales, st.data())
def test_stamp_at_turns_start_round(scale, data):
    stamp = data.draw(st.integers(0, scale.stamp_max - 1) | st.integers(0, 1000))
    start, behind = scale.start_ps(stamp), scale.start_ps(stamp + 1)
    assert scale.stamp_at(start) == stamp
    assert scale.stamp_at(behind - 1) == stamp
    assert scale.stamp_at(start - 1) == stamp - 1


@given(fine_scales, st.data())
def test_parts_of_a_clock_are_exact_rounded_down(scale, data):
    """The last stamp of window w is the clock edge that its strobes were sampled at; the others are the samples before,
    half a clock apart, or a quarter."""
    n = scale.phases
    stamps = data.draw(st.lists(st.integers(0, scale.stamp_max) | st.integers(0, 1000), min_size=1))
    wanted = [math.floor(Fraction((s - (n - 1) - n * scale.latency) * 10**12, n * scale.clock_hz)) for s in stamps]
    assert [scale.start_ps(s) for s in stamps] == wanted
    assert scale.starts_ps(np.array(stamps, np.int64)).tolist() == wanted
    whole = TimeScale(scale.clock_hz, scale.window, scale.latency)
    for stamp in stamps:
        if stamp % n == n - 1:
            assert scale.start_ps(stamp) == whole.start_ps(stamp // n)
    assert scale.span_ps(5, 9) == whole.span_ps(5, 9)
    assert scale.stamp_max == n * whole.stamp_max + n - 1
    assert scale.stamp_ps == 10**12 // (n * scale.clock_hz)


@given(scales)
def test_last_stamp_is_the_last_that_fits(scale):
    def end(stamp):
        return exact(scale, stamp + 1)

    assert end(scale.stamp_max) <= 2**63 - 1 < end(scale.stamp_max + 1)
    assert scale.starts_ps(np.array([scale.stamp_max]))[0] == math.floor(exact(scale, scale.stamp_max))


@given(scales, st.integers(0, 2**40), st.integers(0, 2**20))
def test_span_is_two_clocks_early_and_rounded_outwards(scale, first, more):
    begin, end = scale.span_ps(first, first + more)
    clock = Fraction(10**12, scale.clock_hz)
    assert begin == math.floor(exact(scale, first) - 2 * clock)
    assert end == math.ceil(exact(scale, first + more + 1))


@pytest.mark.parametrize(("clock_hz", "ps"), [(35_000_000, 28571), (30_000_000, 33333), (100_000_000, 10_000)])
def test_a_window_of_one_clock(clock_hz, ps):
    scale = TimeScale(clock_hz, Window.CLOCK, 0)
    assert scale.window_ps == ps
    assert scale.start_ps(clock_hz) == 10**12
    assert scale.clocks_ps(12345) == Geometry(clock_hz=clock_hz).ps(12345)


def test_first_window_starts_before_time_0():
    assert TimeScale(100_000_000, Window.NS800, 6).start_ps(0) == -60_000
    assert TimeScale(35_000_000, Window.CLOCK, 1).starts_ps(np.array([0])).tolist() == [-28572]


@pytest.mark.parametrize("clock_hz", [100_000_000, 35_000_000, 30_000_000])
@pytest.mark.parametrize("window", Window)
def test_spans_are_rounded_outwards(clock_hz, window):
    """From two clocks before the first window to the end of the last one."""
    scale = TimeScale(clock_hz, window, 3)
    clocks_ = window.clocks(clock_hz)
    for first, last in ((0, 0), (5, 9), (1, 10**6)):
        begin = Fraction((first * clocks_ - 3 - 2) * 10**12, clock_hz)
        end = Fraction(((last + 1) * clocks_ - 3) * 10**12, clock_hz)
        assert scale.span_ps(first, last) == (math.floor(begin), math.ceil(end))
