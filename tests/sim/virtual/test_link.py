"""The virtual board: time against clock edges, random delay, skipping, a slow or stalled host."""

import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, REGISTERS, Control, Geometry, Window
from hypermon.host.errors import HypermonError
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus
from hypermon.sim.virtual.link import APERTURE_PS, VirtualLink

from tests.sim import plain_host
from tests.sim.plain_host import once, play, read, start

MS = 10**9


def stimulus(rows, nodes=16, initial=None, edge=Edge.RISING, sample=None):
    """From rows (time in ps, node, port), in any order; of so many nodes at least."""
    rows = sorted(rows, key=lambda row: row[:2])
    nodes = max([nodes, *(node + 1 for _, node, _ in rows)])
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Stimulus(np.array(columns[0], np.int64), np.array(columns[1], np.int16), np.array(columns[2], np.uint8),
                    list(initial or [0] * nodes), [edge] * nodes, [sample] * nodes if sample else [])


def edge_ps(geometry, k):
    """Time of clock edge k, exact."""
    return Fraction(k * 10**12, geometry.clock_hz)


def at(geometry, k, offset=0):
    """The last whole picosecond that clock edge k still sees, and ``offset`` more."""
    return int(edge_ps(geometry, k) // 1) + offset


def strobes(geometry, edges, offset=0, nodes=1, hold=3):
    """Rows that strobe every node at these clock edges, ``hold`` clocks long; nibbles count up."""
    return [(at(geometry, k + d, offset), n, level | (i + n) % 16)
            for n in range(nodes) for i, k in enumerate(edges) for d, level in ((-3, 0), (0, 16), (hold, 0))]


def windows_of(geometry, k, window):
    """Window into which an edge first seen at clock edge k is counted."""
    return (k + LATENCY) // geometry.window_clocks(window)


# ------------------------------------------------------------------------------------------- time

@pytest.fixture(params=["classic", "odd", "wide"])
def board(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("window", list(Window))
def test_a_change_is_seen_at_the_first_edge_not_before_it(board, window):
    """At kT and just before it is edge k, a picosecond later edge k + 1, whatever fraction T is."""
    spacing = max(20, board.window_clocks(window))
    edges = [10 + i * (spacing + 1) for i in range(40)]
    for offset, late in ((0, 0), (-1, 0), (1, 1), (-int(edge_ps(board, 1)) + 1, 0)):
        # The first node strobes at the offset, the others exactly.
        rows = strobes(board, edges, offset) + [
            (t, board.nodes - 1, p) for t, _, p in strobes(board, edges)]
        run = once(stimulus(rows, board.nodes), board, window)
        assert run.windows(0) == [windows_of(board, k + late, window) for k in edges]
        assert run.windows(board.nodes - 1) == [windows_of(board, k, window) for k in edges]
        assert run.nibbles(0) == [i % 16 for i in range(40)]
        assert run.lost == 0


def test_exact_far_from_time_0(odd):
    """After hours, where floats of picoseconds and products of 64 bits have long been wrong."""
    edges = [7200 * odd.clock_hz + i for i in (0, 1000, 2003, 3007)]
    for offset, late in ((0, 0), (1, 1)):
        run = once(stimulus(strobes(odd, edges, offset), 3), odd, Window.CLOCK)
        assert run.windows(0) == [k + late + LATENCY for k in edges]


@pytest.mark.parametrize("window", [
    Window.CLOCK, pytest.param(Window.NS200, marks=pytest.mark.slow),
    pytest.param(Window.NS400, marks=pytest.mark.slow), pytest.param(Window.NS800, marks=pytest.mark.slow)],
    ids=lambda w: w.name)
def test_two_hours_take_seconds(classic, window):
    rows = strobes(classic, [100, 7200 * classic.clock_hz])
    began = time.process_time()
    run = once(stimulus(rows), classic, window)
    assert run.windows(0) == [windows_of(classic, k, window) for k in (100, 7200 * classic.clock_hz)]
    assert time.process_time() - began < 60


def test_every_node_has_its_own_port(board):
    """Walking nodes: one strobes, with its number, and no other."""
    rows = [(at(board, 100 * i + d), n, level | n % 16)
            for i, n in enumerate([*range(board.nodes), *reversed(range(board.nodes))])
            for d, level in ((0, 0), (20, 16), (40, 0))]
    run = once(stimulus(rows, board.nodes), board, Window.CLOCK)
    order = [*range(board.nodes), *reversed(range(board.nodes))]
    assert run.events == [(100 * i + 20 + LATENCY, n, n % 16) for i, n in enumerate(order)]


def test_the_level_at_the_start_is_no_edge(classic):
    """Ports have their initial levels before time 0; a change at time 0 is edge 0."""
    initial = [16 | n for n in range(16)]
    assert once(stimulus([], initial=initial), classic, Window.CLOCK).events == []
    run = once(stimulus([(0, 3, 0), (100_000, 3, 16)], initial=initial), classic, Window.CLOCK)
    assert run.events == [(10 + LATENCY, 3, 0)]
    run = once(stimulus([(0, 5, 0x1c)], initial=[7] * 16), classic, Window.CLOCK)
    # Before the edge: what the port was before time 0.
    assert run.events == [(LATENCY, 5, 7)]
    run = once(stimulus([(0, 5, 0x1c)], initial=[7] * 16, sample=Sample.AFTER), classic, Window.CLOCK)
    assert run.events == [(LATENCY, 5, 12)]


@pytest.mark.parametrize(("sample", "nibble"), [(Sample.BEFORE, 2), (Sample.AFTER, 4)])
def test_sample_points(classic, sample, nibble):
    """Before: the data of the clock before the edge; after: of the one behind it."""
    rows = [(at(classic, k), 0, port) for k, port in ((97, 1), (99, 2), (100, 16 | 3), (101, 16 | 4), (102, 16 | 5))]
    assert once(stimulus(rows, sample=sample), classic, Window.CLOCK).nibbles(0) == [nibble]


@pytest.mark.parametrize(("edge", "expected"), [
    (Edge.RISING, [100, 200]), (Edge.FALLING, [150, 250]), (Edge.BOTH, [100, 150, 200, 250])])
def test_active_edges(classic, edge, expected):
    rows = [(at(classic, k), 7, p) for k, p in ((100, 16), (150, 0), (200, 16), (250, 0))]
    run = once(stimulus(rows, edge=edge, sample=Sample.BEFORE), classic, Window.CLOCK)
    assert run.windows(7) == [k + LATENCY for k in expected]


# ----------------------------------------------------------------------------------- random delay

def test_random_delay(classic):
    """Within the aperture before an edge, there or one later, about evenly; outside it, never."""
    edges = [50 + 20 * i for i in range(400)]
    for offset, late in ((0, True), (1 - APERTURE_PS, True), (-APERTURE_PS, False), (1, False), (5000, False)):
        run = once(stimulus(strobes(classic, edges, offset)), classic, Window.CLOCK, seed=7)
        seen = np.array(run.windows(0)) - LATENCY - np.array(edges)
        nominal = int(offset > 0)
        if late:
            assert set(seen.tolist()) == {nominal, nominal + 1}
            assert 120 < int(seen.sum()) - nominal * len(edges) < 280
        else:
            assert set(seen.tolist()) == {nominal}
        assert run.nibbles(0) == [i % 16 for i in range(400)]


def test_random_delay_is_of_every_bit_by_itself(classic):
    """Data that change just before the sample are seen bit by bit, each old or new."""
    edges = [50 + 20 * i for i in range(400)]
    rows = [row for k in edges for row in (
        (at(classic, k - 10), 0, 0), (at(classic, k - 1), 0, 15), (at(classic, k, -5000), 0, 31))]
    assert set(once(stimulus(rows), classic, Window.CLOCK, seed=1).nibbles(0)) == set(range(16))
    assert set(once(stimulus(rows), classic, Window.CLOCK).nibbles(0)) == {15}


def test_seeds(classic):
    rows = strobes(classic, [50 + 20 * i for i in range(100)], nodes=4)
    streams = [once(stimulus(rows), classic, Window.CLOCK, seed=seed).stream for seed in (1, 1, 2, None)]
    assert streams[0] == streams[1]
    assert len(set(streams)) == 3


def test_bus_delay(classic):
    with VirtualLink(None, classic, seed=3, bus_delay=9) as slow, VirtualLink(None, classic) as quick:
        assert [read(slow, name) for name in REGISTERS if name not in ("TIME_LOW", "CONTROL")] == [
            read(quick, name) for name in REGISTERS if name not in ("TIME_LOW", "CONTROL")]
        assert slow.cycles > quick.cycles + len(REGISTERS)


# --------------------------------------------------------------------------------------- skipping

def sparse(rng, geometry, events, longest_ps):
    """Strobes of random nodes: bunches and silences of all lengths."""
    rows = []
    free = [100_000] * geometry.nodes
    now = 100_000
    for _ in range(events):
        now += int(10 ** rng.uniform(3, np.log10(longest_ps)))
        node = int(rng.integers(geometry.nodes))
        begin = max(now, free[node])
        nibble = int(rng.integers(16))
        rows += [(begin, node, nibble), (begin + 60_000, node, 16 | nibble), (begin + 130_000, node, nibble)]
        free[node] = begin + 200_000
    return rows


@pytest.mark.parametrize("window", list(Window))
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["plain", "random delay", "slow host", "stalls"])
def test_skipping_changes_nothing(odd, way, window, seed):
    """Byte for byte, with and without random delay, a slow host and stalls."""
    options = {
        "plain": {}, "random delay": {"seed": seed}, "slow host": {"drain_rate": 300_000},
        "stalls": {"stalls": [(1, 3), ("5.5", 2.25)], "seed": 9},
    }[way]
    rng = np.random.default_rng(1000 * seed + window)
    played = stimulus(sparse(rng, odd, 40, 4 * MS), odd.nodes)
    kept, cycles = [], []
    for skip in (True, False):
        with VirtualLink(played, odd, skip=skip, **options) as link:
            kept.append(play(link, played, window).stream)
            cycles.append(link.cycles)
    assert kept[0] == kept[1]
    if not options:
        assert cycles[0] < cycles[1] // 2


@pytest.mark.slow
@pytest.mark.parametrize("window", list(Window))
@pytest.mark.parametrize("seed", range(10, 30))
def test_skipping_changes_nothing_at_length(classic, window, seed):
    rng = np.random.default_rng(1000 * seed + window)
    played = stimulus(sparse(rng, classic, 200, 4 * MS))
    rate = 30_000 * seed if seed % 2 else None
    kept = [once(played, classic, window, skip=skip, seed=seed % 3 or None, drain_rate=rate).stream
            for skip in (True, False)]
    assert kept[0] == kept[1]


def test_time_passes_at_the_same_place(classic):
    """The end of the stimulus is the same clock edge, and silence is skipped."""
    played = stimulus(strobes(classic, [100, 1_000_000]))
    places = []
    for skip in (True, False):
        with VirtualLink(played, classic, skip=skip) as link:
            start(link, played)
            assert not link.ended
            while not link.ended:
                link.stream(1 << 16)
            places.append(link.edge)
            assert link.cycles < (100_000 if skip else 2_000_000)
            assert link.board_ps == link.edge * 10_000
    assert places == [1_000_003 + LATENCY + 160] * 2


# ------------------------------------------------------------------------------------ a slow host

def dense(geometry, length_ps, gap_ps=400_000):
    """Every node strobes so often, in turn."""
    rows = []
    step = gap_ps // geometry.nodes
    for i, t in enumerate(range(100_000, length_ps, step)):
        n = i % geometry.nodes
        rows += [(t, n, i % 16), (t + gap_ps // 2, n, 16 | i % 16)]
    return rows


@pytest.mark.parametrize("rate", [5_000_000, 1_000_003, 123_456_789, 10**9 + 1, 1_600_000_000])
def test_drain_rate(classic, rate):
    """Never more than the rate gives from time 0 on, and all of it as long as there is enough."""
    played = stimulus(dense(classic, 3 * MS if rate < 10**9 else MS // 2, 200_000))
    with VirtualLink(played, classic, drain_rate=rate) as link:
        start(link, played, Window.CLOCK)
        got, full = 0, []
        while not link.ended:
            count = len(link.stream(16))
            got += count
            # A beat is taken at its clock edge, the one before the present.
            seconds = Fraction(link.edge, classic.clock_hz)
            assert got <= rate * seconds + 16
            full.append(got / max(rate * seconds, 1))
    if rate <= 123_456_789:
        assert full[-1] > 0.99  # with 80 M frames a second offered, the host is never without


def test_without_a_rate_a_beat_comes_every_clock(classic):
    played = stimulus(dense(classic, 2 * MS, 176_000))  # ten strobes in eleven clocks
    fast = once(played, classic, Window.CLOCK)
    assert fast.lost == 0
    assert len(fast.events) == len(played) // 2


def test_slow_host_loses_and_all_is_accounted_for(classic):
    played = stimulus(dense(classic, 5 * MS))
    run = once(played, classic, Window.CLOCK, drain_rate=5_000_000)
    assert run.lost > 0
    assert len(run.events) + run.lost == len(played) // 2
    for node, counts in enumerate(run.census):
        assert counts["accepted"] == counts["delivered"] == len(run.nibbles(node))
    assert {record["causes"] for record in run.losses} == {1}


@pytest.mark.parametrize(("stalls", "spans"), [
    ([(1, 1)], [(1, 2)]), ([(0, 0.5), ("2.25", "0.125")], [(0, 0.5), (2.25, 2.375)]),
    ([(1.5, 1), (1, 1), (2.5, 0)], [(1, 2.5)]), ([(3, 0)], [])])
def test_stalls(classic, stalls, spans):
    """The host takes nothing between AT and AT + FOR, and as usual at all other times."""
    played = stimulus(dense(classic, 4 * MS, 1_600_000))
    with VirtualLink(played, classic, stalls=stalls) as link:
        start(link, played, Window.CLOCK)
        taken = []
        while not link.ended:
            if link.stream(16):
                taken.append((link.edge - 1) * 10_000)
    for begin, end in spans:
        assert not any(begin * MS <= t < end * MS for t in taken)
        assert end * MS in taken  # what waits is taken at once
    longest = max(b - a for a, b in pairwise([0, *taken]))
    assert longest >= max((e - b for b, e in spans), default=0) * MS
    if not spans:
        assert longest < MS


def test_registers_are_paced(classic):
    """Every word read by a burst counts against the rate, and waits for the end of a stall."""
    played = stimulus([(4 * MS, 0, 0)])
    with VirtualLink(played, classic, drain_rate=1_000_000, stalls=[(2.5, 0.5)], skip=False) as link:
        start(link, played)
        link.write(REGISTERS["CONTROL"].offset, Control.ENABLE)
        while link.edge < 130_000:  # the first census has left
            link.stream(1 << 10)
        begin = link.edge
        words = link.read_burst(0x1000, 100)
        assert len(words) == 400
        # A word is four microseconds, from the beginning of one to that of the next.
        assert 39_600 <= link.edge - begin < 39_700
        while link.edge < 250_000:
            link.read(0)
        link.read_burst(0x1000, 1)
        assert 300_000 <= link.edge < 300_100


def test_registers_give_the_frames(classic):
    played = stimulus(strobes(classic, [100, 300, 500], nodes=2))
    with VirtualLink(played, classic) as link:
        start(link, played)
        link.write(REGISTERS["CONTROL"].offset, Control.ENABLE)
        while not link.ended:
            link.stream(1 << 16)
        assert read(link, "RUN") == 3
        words = np.frombuffer(link.read_burst(0x1000, 16), "<u4").reshape(4, 4).tolist()
        assert words == [[0, 0x10, 3, 1], [0, 0x21, 3, 3], [0, 0x32, 3, 6], [0, 0, 0, 0]]
        assert link.read(REGISTERS["FRAME_FIFO"].offset) == 0


# ---------------------------------------------------------------------------------------- the link

def test_identity_and_reset(classic):
    with VirtualLink(None, classic, name="x.csv") as link:
        assert link.uri == "sim:x.csv"
        assert read(link, "MAGIC").to_bytes(4, "little") == b"HMON"
        assert read(link, "WINDOW") == 80
        for window in (3, 1, 2, 0):
            link.write(0, Control.RESET | window << 2)
            assert read(link, "WINDOW") == (80, 40, 20, 1)[window]
        assert read(link, "FRAME_POS") >> 16 == 4
        assert link.edge == link.board_ps == 0


def test_nothing_to_play(classic):
    """No stimulus: time goes on, a heartbeat a second."""
    with VirtualLink(None, classic) as link:
        start(link, Stimulus.idle(16))
        first = bytearray()
        while not link.ended:
            first += link.stream(1 << 20)
        first += link.stream(1 << 20)
        assert len(plain_host.decode(bytes(first), classic).census) == 16
        before, began = link.edge, time.process_time()
        while link.edge < before + 60 * classic.clock_hz:
            link.stream(1 << 20)
        assert time.process_time() - began < 10


def test_time_goes_on_after_a_reset(classic):
    """The stimulus is played once; a reset starts the board's time anew, not the stimulus'."""
    played = stimulus(strobes(classic, [20, 20_000]))
    with VirtualLink(played, classic) as link:
        start(link, played)
        before = b""
        while link.edge < 100:
            before += link.stream(16)
        run = play(link, played, before=before)
        assert run.nibbles(0) == [1]
        assert run.windows(0)[0] < 250


@pytest.mark.parametrize("options", [
    {"drain_rate": 0}, {"drain_rate": -5}, {"stalls": [(-1, 2)]}, {"stalls": [(1, -2)]}, {"bus_delay": -1}])
def test_bad_options(classic, options):
    with pytest.raises(ValueError, match=r"-?\d"):
        VirtualLink(None, classic, **options)


def test_stimulus_of_another_board(classic):
    with pytest.raises(ValueError, match="a stimulus of 17 nodes for a board of 16"):
        VirtualLink(Stimulus.idle(17), classic)
    # Fewer nodes leave ports at 0.
    assert once(stimulus(strobes(classic, [100]), nodes=1), classic).nibbles(0) == [0]


def test_closed(classic):
    link = VirtualLink(None, classic)
    with pytest.raises(ValueError, match="limit must be at least 16"):
        link.stream(15)
    link.close()
    link.close()
    with pytest.raises(HypermonError, match="the link is closed"):
        link.read(0)


def test_a_geometry_is_checked():
    with pytest.raises(ValueError, match="5 MHz"):
        Geometry(clock_hz=33_000_000)
