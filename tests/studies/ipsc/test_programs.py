"""The four programs compute what they should, on any number of nodes, and cost what Table 2 says."""

import numpy as np
import pytest
from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.machine.noise import Clocks, Noise
from hypermon.studies.ipsc.machine.traces import causality, software_trace, trace_bytes, volume
from hypermon.studies.ipsc.programs import PROGRAMS, VARIANTS
from hypermon.studies.ipsc.programs.life import generation
from hypermon.studies.ipsc.programs.place import Place
from hypermon.studies.ipsc.runs.printed_values import TABLE_2
from hypermon.studies.ipsc.runs.work_fit import work_cycles

SHARE = 0.01


def course(program, nodes, how="raw", share=SHARE, cycles=1000.0, machine=None):
    workload = VARIANTS[program](nodes, share, cycles)
    return workload, run(machine or Machine(nodes), workload.program, how, host=workload.host)


@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("program", VARIANTS)
def test_results_are_the_sequential_ones(program, nodes):
    workload, done = course(program, nodes, "software", 0.1 if program.startswith("simplex") else SHARE)
    assert "equal those of the sequential program" in workload.check(done.results)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_result_is_noticed(program):
    workload, done = course(program, 2)
    spoilt = done.results[1]
    if isinstance(spoilt, dict):
        cell = next(iter(spoilt))
        spoilt[cell] += 1
    elif isinstance(spoilt, list):
        spoilt[-1] += 1
    else:
        spoilt[0, 0] ^= 1
    with pytest.raises(ValueError, match="(?i)" + program):
        workload.check(done.results)


def test_a_blinker_blinks():
    grid = np.zeros((5, 5), np.uint8)
    grid[2, 1:4] = 1
    assert np.array_equal(generation(np.pad(grid, ((1, 1), (0, 0)))), grid.T)


@pytest.mark.parametrize(("program", "nodes"), TABLE_2)
def test_raw_times_are_fitted(program, nodes):
    workload, done = course(program, nodes, cycles=work_cycles(program, nodes, SHARE))
    assert done.seconds == pytest.approx(workload.share * TABLE_2[program, nodes].raw, rel=0.002)


def test_who_polls_logs_less_by_hardware():
    # Waiting by itself costs the same; looking often costs nibbles.
    ratios = []
    for program in ("simplex", "simplex-blocked"):
        soft, hard = (course(program, 4, how)[1] for how in ("software", "hardware"))
        nibbles = sum(2 * len(record) + 2 for node in hard.nodes for record in node.recorder.records)
        ratios.append(nibbles / trace_bytes(soft))
    assert ratios == [pytest.approx(1.4, abs=0.15), pytest.approx(2.3, abs=0.05)]


def test_annealing_shortens_the_wires():
    short, long = (Place(4, 1.0, 0).rounds_until(share) for share in (0.85, 0.95))
    assert 1 <= long < short < 100
    assert Place(4, 0.003, 0).rounds_until(0.5) is None


def test_clocks_that_drift_break_causality():
    quiet, wild = (Machine(4, noise=Noise(clocks=Clocks(0, offset))) for offset in (0, 20_000))
    orders = []
    for machine in (quiet, wild):
        _, done = course("life", 4, "software", machine=machine)
        trace = software_trace(done)
        assert trace["bytes"].to_numpy().sum() == trace_bytes(done)
        orders.append(causality(trace, "time_us"))
    assert [order.messages for order in orders] == [sum(node.received for node in done.nodes)] * 2
    assert orders[0].early == 0 < orders[1].early
    assert orders[0].least > 0 > orders[1].least


def test_volume_is_that_of_the_trace():
    _, done = course("place", 4, "software")
    trace = software_trace(done)
    assert volume(trace).sum() == trace_bytes(done)
    assert volume(trace, events=True).sum() == len(trace)
    span = trace["time_us"].to_numpy()
    assert len(volume(trace)) == (span.max() - span.min()) // 1000 + 1
