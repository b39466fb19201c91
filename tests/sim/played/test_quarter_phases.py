"""Stamps to a quarter of a clock: strobes at any phase, with random delay at each of the four samples of a clock."""

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, BlockFlag, Geometry, Sink, Window
from hypermon.sim.stimulus.port_mapping import Edge
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import APERTURE_PS, VirtualLink

from tests.sim.plain_host import play, read, write

CLOCK_PS, QUARTER_PS, NODES = 10_000, 2500, 6


@pytest.fixture(scope="module")
def quartered(tools):
    from hypermon.sim.virtual.build import library

    geometry = Geometry(NODES, node_depth=64, vector_depth=256, frame_depth=16, sinks=tuple(Sink), phases=4)
    library(geometry)
    return geometry


def edges_of(seed: int, each: int):
    """Times of edges of every node: any picosecond, each level lasts two clocks at least."""
    rng = np.random.default_rng(seed)
    return [200_000 + np.cumsum(rng.integers(2 * CLOCK_PS, 40 * CLOCK_PS, each)) for _ in range(NODES)]


def played(times) -> Stimulus:
    time = np.concatenate(times)
    node = np.repeat(np.arange(NODES), [len(of) for of in times])
    port = np.concatenate([(np.arange(len(of)) + 1) % 2 << 4 | n for n, of in enumerate(times)])
    order = np.lexsort((node, time))
    return Stimulus(time[order].astype(np.int64), node[order].astype(np.int16), port[order].astype(np.uint16),
                    list(range(NODES)), [Edge.BOTH] * NODES)


def quarters(run, node: int):
    return np.array([item.window for item in run.items if item.node == node])


@pytest.mark.parametrize("each", [2500, pytest.param(167_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [None, 5])
def test_stamps_within_a_quarter_and_the_aperture(quartered, each, seed):
    """The sample that a stamp names is the first after its edge; with random delay, it may be the one after that if the
    edge came within the aperture before the first. The slow version has a million edges."""
    times = edges_of(each, each)
    stimulus = played(times)
    with VirtualLink(stimulus, quartered, seed=seed) as link:
        run = play(link, stimulus, Window.CLOCK, sink=Sink.EXTENDED)
    assert not run.lost
    assert run.flags == {BlockFlag.EXTENDED | BlockFlag.QUARTER}
    late = 0
    for node, of in enumerate(times):
        stamps = quarters(run, node)
        assert len(stamps) == each
        # Sample q of the board is at q * QUARTER_PS; stamp s is that of the clock edge LATENCY clocks before, in which
        # quarter 3 is the clock edge itself.
        sampled = (stamps - 4 * LATENCY - 3) * QUARTER_PS
        after = sampled - of
        assert (after >= 0).all()
        assert (after < QUARTER_PS + (APERTURE_PS if seed else 0)).all()
        late += int((after >= QUARTER_PS).sum())
        assert set(stamps % 4) == {0, 1, 2, 3}
        # As many in each quarter, but for chance.
        share = np.bincount(stamps % 4, minlength=4) / each
        assert np.abs(share - 0.25).max() < 4 * np.sqrt(0.19 / each)
    # An aperture of every quarter, half of the time.
    expected = APERTURE_PS / QUARTER_PS / 2 if seed else 0
    assert abs(late / (NODES * each) - expected) <= 4 * np.sqrt(0.25 / (NODES * each)) * bool(seed)


def test_stamps_are_whole_clocks_until_the_phases_are_known(quartered):
    times = edges_of(9, 200)
    stimulus = played(times)
    with VirtualLink(stimulus, quartered) as link:
        assert read(link, "PHASES") == 1
        write(link, "PHASES", 0)
        run = play(link, stimulus, Window.CLOCK, sink=Sink.EXTENDED)
    assert run.flags == {BlockFlag.EXTENDED}
    for node, of in enumerate(times):
        assert (quarters(run, node) == -(-of // CLOCK_PS) + LATENCY).all()
