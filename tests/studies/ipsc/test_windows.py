"""What arithmetic says of nodes' writes: frames, merging, what waits for the host; and the gateware's own signals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.benchmark import predicted
from hypermon.studies.ipsc.runs.emulated import bursts, emulated, ordered
from hypermon.studies.ipsc.runs.experiment import experiment
from hypermon.studies.ipsc.runs.monitor import CLASSIC
from hypermon.studies.ipsc.runs.waves import STROBES_US, waves
from hypermon.studies.ipsc.runs.windows import Frames, bench_frames, frames


def test_strobes_of_one_window_share_a_frame():
    done = frames([np.array([0.1, 5.0]), np.array([0.7, 9.0])])
    assert (done.count, done.nibbles, done.merged) == (3, 4, 0.5)
    assert done.us == pytest.approx([0, 4.8, 8.8])
    assert frames([np.array([0.1]), np.array([0.7])], 200e-9).count == 2


def waiting(done, monitor):
    """The most frames that wait, step by step."""
    queue, most, at, step = 0.0, 0.0, 0, 0.05
    for now in np.arange(0, done.us[-1] + step, step):
        while at < done.count and done.us[at] <= now:
            queue, at = queue + 1, at + 1
        most = max(most, queue)
        ms = now / 1000
        if not (ms >= monitor.every_ms and ms % monitor.every_ms < monitor.stop_ms):
            queue = max(0.0, queue - step * monitor.rate / 16e6)
    return most


@pytest.mark.parametrize("stop", [0, 0.7, 3.0])
def test_frames_wait_for_a_host_that_pauses(stop):
    monitor = replace(CLASSIC, stop_ms=stop)
    done = Frames(np.unique(np.random.default_rng(1).integers(0, 40_000, 11_000)), 800e-9)
    assert done.backlog(monitor) == pytest.approx(waiting(done, monitor), abs=2)


def test_rates_begin_where_they_should():
    done = Frames(np.arange(0, 10_000, 10), 800e-9)
    whole, late = done.rates(10), done.rates(10, 4000)
    assert whole[0] == pytest.approx(np.full(10, 125_000), rel=0.02)
    assert (whole[1], late[1]) == (pytest.approx(0.008, rel=0.01), pytest.approx(0.004, rel=0.01))


def test_long_bandwidth_tests_merge_as_independent_nodes_do():
    found = [bench_frames(2, 0, 40_000, seed) for seed in range(3)]
    rate, merged = predicted(2, 0)
    assert np.mean([rate for rate, *_ in found]) == pytest.approx(rate, rel=0.01)
    assert np.mean([share for _, share, _ in found]) == pytest.approx(merged, abs=0.01)
    assert bench_frames(3, 0, 40_000, 1)[2] > CLASSIC.geometry.frame_depth > found[0][2]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_without_a_board_is_that_of_the_experiment(program):
    row, rates = emulated(program, 2, 0.01, 1990)
    raw, soft = (experiment(program, 2, how, 0.01) for how in ("raw", "software"))
    assert (row["raw"], row["soft"], row["soft_bytes"]) == (raw.seconds, soft.seconds, soft.logged)
    assert row["units"] == raw.units > 0
    assert row["hard"] > row["soft"] > row["raw"]
    assert row["nibbles"] >= row["frames"] > 2 * row["soft_bytes"] * (0.6 if program == "simplex" else 1)
    assert row["backlog_0"] <= row["backlog_1.3"] <= row["backlog_2.6"]
    assert len(rates) == 100


def test_seeds_differ():
    assert emulated("life", 2, 0.01, 1)[0]["hard"] != emulated("life", 2, 0.01, 2)[0]["hard"]


def test_matmul_is_shown_after_its_factors_have_come():
    row, rates = emulated("matmul", 8, 1.0, 1)
    series = [interval["frames_per_second"] for interval in rates]
    # Half a megabyte goes to each of 8 nodes, at 0.39 us a byte.
    assert sum(interval["seconds"] for interval in rates) < row["hard"] - 0.3
    # The parts of the product come back at the end, and nothing but time slices is before.
    assert max(series[:80]) < 0.7 * max(series[80:])


def test_clocks_decide_what_seems_early():
    row = ordered("life", 4, 0.01, 1)
    assert 0 <= row["early"] < row["messages"]


def test_bursts_are_above_the_mean():
    row, whole = bursts(8, 0.01, 1), emulated("place", 8, 0.01, 1)[0]
    assert row["bytes"] == whole["soft_bytes"]
    assert row["ms"] == pytest.approx(1000 * whole["soft"], abs=5)
    assert row["bytes"] / row["ms"] < row["burst"]
    assert row["busy_ms"] <= row["ms"]


def test_the_gateware_takes_each_nibble_once_at_its_strobe():
    rows = [row for row in waves() if row["figure"] == 3]
    assert [row["nibble"] & 15 for row in rows if row["push"]] == [0x5, 0xC]
    risen = [row["ns"] for before, row in pairwise(rows) if row["strobe"] > before["strobe"]]
    taken = [row["ns"] for row in rows if row["push"]]
    # Data are there 6 cycles of the node before their strobe; the board sees it 4 clocks later.
    assert [late - early for early, late in zip(risen, taken, strict=True)] == [200, 200]


def test_three_windows_have_three_strobe_vectors():
    rows = [row for row in waves() if row["figure"] == 4]
    made = [(row["stamp"], row["vector"]) for row in rows if row["vector"] >= 0]
    assert made == [(1, 0b001101), (2, 0b100010), (3, 0b010000)]
    assert sum(vector.bit_count() for _, vector in made) == len(STROBES_US)
