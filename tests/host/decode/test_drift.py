"""The drift of a board that keeps its own clock, against a model of two oscillators."""

import math

import numpy as np
import pytest
from hypermon.hdl.layout import DRIFT_CLOCKS, MarkSource
from hypermon.host.decode.drift import fit_drift

PERIOD = 1024
MARK = np.dtype([("clock", "<i8"), ("number", "<u4"), ("source", "<u4")])


def no_wander(clock):
    return clock * 0.0


def played(ppm, phase, clocks, wander=no_wander, aperture=0.0, seed=1):
    """Marks that a board writes, and its true clocks at some clocks of the board that leads.

    The own clock at clock x of the other board is x * (1 + ppm) + wander(x) + 1 - phase, and its edges are where that
    is whole. A rise is seen at the first edge after it, or if that comes within the aperture, maybe at the next.
    """
    rng = np.random.default_rng(seed)

    def own(lead):
        return lead * (1 + ppm * 1e-6) + wander(lead) - wander(0.0) + 1 - phase

    rises = own(np.arange(clocks // PERIOD) * float(PERIOD))
    seen = np.ceil(rises)
    seen += (seen - rises < aperture) & (rng.random(len(seen)) < 0.5)
    seen = seen.astype(np.int64)
    marks, last = [], -DRIFT_CLOCKS
    for k in np.flatnonzero(np.diff(seen, prepend=seen[0] - PERIOD) != PERIOD):
        if seen[k] - last >= DRIFT_CLOCKS:
            late = seen[k] - seen[k - 1] > PERIOD
            marks.append((seen[k], len(marks), MarkSource.SYNC_LATE if late else MarkSource.SYNC_EARLY))
            last = seen[k]
    lead = np.linspace(0, clocks, 4001)
    return np.array(marks, MARK), own(lead), lead


def at(drift, own):
    """The clock of the board that leads, at clocks of the own one; the first and last stretch continue."""
    y, h = drift.own.astype(float), drift.ahead
    slopes = np.diff(h) / np.diff(y)
    k = np.clip(np.searchsorted(y, own, "right") - 1, 0, len(y) - 2)
    return own + h[k] + (own - y[k]) * slopes[k]


def error(marks, own, lead, until=True):
    drift = fit_drift(marks, PERIOD, int(own[-1]) if until else 0)
    assert len(drift.own) == len(drift.ahead) >= 2
    assert (np.diff(drift.own) > 0).all()
    return float(np.abs(at(drift, own) - lead).max()), drift.unsure


@pytest.mark.parametrize("aperture", [0.0, 0.1])
@pytest.mark.parametrize("ppm", [0, 0.001, 0.01, 0.1, -0.5, 1, -3, 10, 37.3, -63, 99.9, -100, 200, -400])
@pytest.mark.parametrize("clocks", [400_000, 4_000_000, 100_000_000])
def test_steady_clocks(ppm, aperture, clocks):
    """The uncertainty is what it says, and small as soon as there are some marks."""
    for seed in range(3):
        phase = (0.03, 0.5, 0.96)[seed]
        marks, own, lead = played(ppm, phase, clocks, aperture=aperture, seed=seed)
        off, unsure = error(marks, own, lead)
        assert off <= unsure, (ppm, phase, len(marks))
        if len(marks) > 20 and 1 <= abs(ppm) <= 100:
            assert unsure < 0.4
            assert off < 0.12


@pytest.mark.parametrize(("amplitude", "period"), [(50, 2e8), (1000, 1e9), (5, 2e7)])
@pytest.mark.parametrize("ppm", [30, 0.1])
def test_clocks_that_wander(amplitude, period, ppm):
    """As much as 6 ppm to and fro in ten seconds, or 1.5 ppm in a fifth of a second."""
    marks, own, lead = played(ppm, 0.3, 10**9, lambda clock: amplitude * np.sin(clock * (2 * math.pi / period)))
    off, unsure = error(marks, own, lead)
    assert off <= unsure
    if ppm > 1 and period >= 1e8:
        assert off < 0.1


def test_without_marks_the_phase_stands_still():
    drift = fit_drift(np.zeros(0, MARK), PERIOD)
    assert at(drift, np.array([1.0, 10**9])).tolist() == [0.5, 10**9 - 0.5]
    assert 0.5 <= drift.unsure < 0.7


def test_marks_that_are_missing():
    """Lost blocks cost little: each mark says where the wave is."""
    marks, own, lead = played(80, 0.3, 200_000_000)
    kept = marks[np.r_[0:200, 600:602, 1000:len(marks)]]
    off, unsure = error(kept, own, lead)
    assert off <= unsure
    assert off < 0.1


@pytest.mark.parametrize("ppm", [0.1, 40, -100])
@pytest.mark.parametrize("kept", [0.3, 0.7, 0.95])
def test_an_end_that_is_known_later(ppm, kept):
    """A killed recorder writes no duration, and its last marks may be missing: the line is fitted without them."""
    marks, own, lead = played(ppm, 0.3, 10**9, aperture=0.1)
    drift = fit_drift(marks[marks["clock"] < kept * own[-1]], PERIOD)
    off = np.abs(at(drift, own) - lead)
    assert (off <= [drift.unsure_until(int(clock)) for clock in own]).all()
    before = int(drift.own[-1])
    assert drift.unsure_until(before) == drift.unsure < drift.unsure_until(before + 10**8)


@pytest.mark.parametrize("ppm", [5, -100, 300])
def test_some_marks_of_many(ppm):
    """As a recorder keeps them."""
    marks, own, lead = played(ppm, 0.3, 400_000_000, aperture=0.1)
    kept = marks[np.r_[0:64, 67:len(marks):4]]
    off, unsure = error(kept, own, lead)
    assert off <= unsure
    assert off < 0.15


def test_other_periods():
    """Windows of more than a clock make other periods; here 1280 clocks."""
    marks, _, _ = played(50, 0.5, 20_000_000)
    scaled = marks.copy()
    scaled["clock"] = (marks["clock"] - 1) * 5 // 4 + 1
    drift = fit_drift(scaled, 1280)
    slope = (drift.ahead[-1] - drift.ahead[0]) / (drift.own[-1] - drift.own[0])
    assert abs(slope * 1e6 + 50) < 0.5
