"""Port writes of the emulated cube, on the virtual board: what the nodes wrote is what the host reads."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import BURST_BASE, REGISTERS, Control, Window
from hypermon.host.device.device import Settings
from hypermon.host.run import Run
from hypermon.sim.virtual.link import VirtualLink
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.machine.nx2 import KINDS
from hypermon.studies.ipsc.machine.recorders import PORTS, WITH_EVENT
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs import experiment as experiments
from hypermon.studies.ipsc.runs.benchmark import bandwidth, event_bandwidth, predicted
from hypermon.studies.ipsc.runs.experiment import board_events, experiment, frame_rates, group_rates
from hypermon.studies.ipsc.runs.monitor import CLASSIC, EXTENDED, WIDE, play, stimulus, write_times
from hypermon.studies.ipsc.runs.work_fit import work_cycles

SHARE = 0.003


@pytest.fixture(scope="module")
def board(classic):
    """The setting of 1990 on a board that other tests have, too."""
    return replace(CLASSIC, geometry=classic)


@pytest.fixture(scope="module")
def wished(extended):
    """The extended board, likewise."""
    return replace(EXTENDED, geometry=extended)


@pytest.fixture(scope="module")
def bytewise(byte_wide):
    """The board with ports of 8 bits, likewise."""
    return replace(WIDE, geometry=byte_wide)


def records(how):
    workload = PROGRAMS["life"](2, SHARE, work_cycles("life", 2, SHARE))
    return run(Machine(2), workload.program, how, host=workload.host)


@pytest.mark.parametrize("how", PORTS)
def test_every_event_comes_back(how, board, wished, bytewise, tmp_path):
    course = records(how)
    monitor = {"hardware": board, "extended": wished, "wide": bytewise, "adapter": wished}[how]
    table = board_events(play(stimulus(course, Machine(2)), tmp_path / "run", monitor))
    for node in course.nodes:
        own = table.filter(np.array(table["node"]) == node.number)
        came = [bytes([event]) + payload for event, payload in
                zip(own["event"].to_pylist(), own["payload"].to_pylist(), strict=True)]
        assert came == node.recorder.records
        # A filler nibble is no beginning.
        begin = np.array(node.recorder.times) + (how == "hardware") * node.recorder.period_us
        late = own["time_ps"].to_numpy() / 1e6 - begin
        assert late.min() > -0.9
        assert late.max() < 2.5


def test_an_adapter_takes_stores(wished, tmp_path):
    """Its nibbles are those of the gateware, from the contract of hdl/store_port.py; the node pays for bytes and
    stores, and continues before its last nibble is written."""
    cpu, port = Cpu(), PORTS["adapter"]
    assert [port.stores(size) for size in range(1, 16)] == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
    course = records("adapter")
    recorder = course.nodes[0].recorder
    sizes = [len(record) for record in recorder.records]
    assert min(sizes) < 4 <= 8 <= max(sizes)
    begin, values = write_times(recorder, 0.0, 1)
    at = 0
    for time, record in zip(recorder.times, recorder.records, strict=True):
        nibbles = [len(record), *(nibble for byte in record for nibble in (byte & 15, byte >> 4))]
        assert values[at:at + len(nibbles)].tolist() == nibbles
        for place in range(len(nibbles)):
            # Bits 0 to 3 of the first word, then from bit 8 on; a byte costs 51.2 cycles of 62.5 ns, a store six.
            store, inside = (0, place) if place < 7 else divmod(place + 1, 8)
            ready = (min(3 + 4 * store, len(record)) - min(3, len(record))) * 51.2 + 6 * store
            assert begin[at + place] == pytest.approx(time + ready / 16 + 0.2 * inside)
        at += len(nibbles)
    assert (np.diff(begin) > 0.19).all()
    pay = recorder.log(1e9, KINDS["call"], (1, 2)) - 1e9
    assert pay == pytest.approx(cpu.us(51.2 * len(recorder.records[-1]) + 6 * port.stores(len(recorder.records[-1]))))


def test_an_adapter_costs_less_than_software():
    """On all four programs, if an event needs no more than its bytes and stores; not with the kernel's cost."""
    for program in PROGRAMS:
        seconds = {}
        for how in ("raw", "software", "adapter", WITH_EVENT):
            workload = PROGRAMS[program](8, SHARE, work_cycles(program, 8, SHARE))
            seconds[how] = run(Machine(8), workload.program, how, host=workload.host).seconds
        assert seconds["raw"] < seconds["adapter"] < seconds["software"] < seconds[WITH_EVENT], program


def test_a_run_has_its_figures(board, tmp_path):
    done = experiment("life", 2, "hardware", SHARE, path=tmp_path / "run", monitor=board)
    assert done.lost == 0
    assert done.frames * 16 == done.logged
    assert done.order.messages > 0 == done.order.early
    assert done.frames == pytest.approx(done.writes, rel=0.02)
    assert done.frames == pytest.approx(done.expected_frames, rel=0.003)
    assert 0 < done.expected_backlog < CLASSIC.geometry.frame_depth
    series, seconds = frame_rates(done.run)
    assert seconds == pytest.approx(done.seconds, rel=0.01)
    assert series.sum() * seconds / 100 == pytest.approx(done.frames)
    edges, rates = group_rates(done.run)
    stamps = np.unique(done.run.events()["time_ps"].to_numpy())
    assert len(rates) > 10
    assert (rates * np.diff(edges) / 1e12).round().tolist() == np.histogram(stamps, edges)[0].tolist()


def test_groups_state_rates_between_their_first_frames(tmp_path):
    """However the frames of a group are spread. Edges fall together where groups are coarser than the intervals."""
    rng = np.random.default_rng(7)
    stamps = np.cumsum(rng.integers(1, 10**9, 2000))
    at = np.unique(np.concatenate([[0], rng.integers(1, 2000, 60)]))
    sizes = np.diff([*at, 2000])
    pq.write_table(pa.table({"frames": sizes, "first_ps": stamps[at], "last_ps": stamps[at + sizes - 1]}),
                   tmp_path / "groups.parquet")
    edges, rates = group_rates(SimpleNamespace(path=tmp_path), 100)
    assert 20 < len(rates) <= len(at)
    assert set(edges[:-1]) <= set(stamps[at])
    assert edges[-1] == stamps[-1]
    assert (rates * np.diff(edges) / 1e12).round().tolist() == np.histogram(stamps, edges)[0].tolist()


def test_two_nodes_fit_and_three_overrun(board, tmp_path):
    two, three = (bandwidth(nodes, 0, 800, tmp_path / str(nodes), monitor=replace(board, every_ms=4, stop_ms=1.2))
                  for nodes in (2, 3))
    assert not two.overrun
    assert two.frame_rate == pytest.approx(predicted(2, 0)[0], rel=0.06)
    assert three.frames < predicted(3, 0)[0] * three.seconds
    assert two.drained is None


def test_what_the_host_reads_is_measured(board, tmp_path):
    done = bandwidth(8, 0, 1600, tmp_path / "run", monitor=replace(board, rate=3_000_000, stop_ms=0))
    assert done.overrun
    assert done.drained == pytest.approx(3_000_000, rel=0.03)


@pytest.mark.parametrize(("rate", "nodes", "window", "carried"), [
    (8_000_000, 8, Window.NS800, 8e6), (18_000_000, 16, Window.NS400, 18e6),
    (40_000_000, 16, Window.NS400, CLASSIC.geometry.bus_rate)])
def test_what_the_bus_carries(tmp_path, rate, nodes, window, carried):
    """The rates of section 5.1 on a board of 20 MHz, and what its bus carries at most. Each frame comes whole."""
    done = bandwidth(nodes, 0, 1600, tmp_path / "run", monitor=replace(CLASSIC, rate=rate, window=window, stop_ms=0))
    assert done.overrun
    assert done.drained == pytest.approx(carried, rel=0.015)
    stats = Run(tmp_path / "run").stats()
    assert stats["events"] + stats["lost"] == nodes * 4000
    assert stats["accounted"]
    assert (stats["causes"]["link"], stats["missing_blocks"]) == (0, 0)


@pytest.mark.parametrize(("rate", "clocks"), [(5_000_000, 16), (None, 14), (40_000_000, 5)])
def test_clocks_of_a_word(rate, clocks):
    """A host of 5 MB/s makes an access of each word, as does one without a rate. A faster one reads bursts, of 5 clocks
    for a frame's first word; without a frame, every word is a first one."""
    with VirtualLink(None, CLASSIC.geometry, drain_rate=rate) as link:
        link.write(REGISTERS["CONTROL"].offset, Control.ENABLE)
        link.read_burst(BURST_BASE, 1000)       # the first census leaves meanwhile
        begin = link.cycles
        link.read_burst(BURST_BASE, 1000)
        assert (link.cycles - begin) / 1000 == pytest.approx(clocks, abs=0.1)


@pytest.mark.parametrize("how", ["extended", "wide"])
def test_three_nodes_do_not_overrun_a_board_that_stamps_events(how, wished, bytewise, tmp_path):
    done = event_bandwidth(3, how, 20, tmp_path / "run", monitor={"extended": wished, "wide": bytewise}[how])
    assert (done["events"], done["lost"]) == (60, 0)
    # Nine nibbles or five bytes with one write each, 135.6 cycles.
    writes = {"extended": 9, "wide": 5}[how]
    assert done["events_per_second"] == pytest.approx(3 * 16e6 / 135.6 / writes, rel=0.05)
    assert done["bytes_per_second"] < 9 * done["events_per_second"]


@pytest.mark.slow
def test_three_nodes_overrun_the_board_of_1990(tmp_path):
    done = bandwidth(3, 0, 4000, tmp_path / "run")
    assert done.overrun
    assert bandwidth(2, 0, 4000, tmp_path / "two").lost == 0


def test_independent_nodes_share_frames_as_calculated():
    rate, merged = predicted(8, 20)
    assert (rate, merged) == (pytest.approx(285_349, rel=1e-3), pytest.approx(0.203, abs=0.001))


@pytest.mark.parametrize(("window", "ns"), [(Window.NS800, 800), (Window.NS200, 200), (Window.CLOCK, 50)])
def test_the_closed_form_is_that_of_the_window(window, ns):
    monitor = replace(CLASSIC, window=window)
    assert monitor.window_s == pytest.approx(ns * 1e-9)
    share = ns / 8850
    assert predicted(2, 0, window_s=monitor.window_s)[1] == pytest.approx(share, rel=1e-3)


def test_settings_are_those_of_1990():
    assert CLASSIC.geometry.frame_depth == 1024
    assert CLASSIC.geometry.node_depth == 64
    assert CLASSIC.window == Settings().window
    assert CLASSIC.stalls(14) == [(6.5, 1.3), (13.0, 1.3)]
    assert experiments.BOARDS["hardware"] is CLASSIC
