"""A board with a deep buffer: the SDRAM's real controller, with the memory at its pins, and hosts that are away."""

import numpy as np
import pytest
from hypermon.hdl.layout import BEAT_BYTES, Geometry, Sink, Window
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual.build import library
from hypermon.sim.virtual.deep_board import deep_shell
from hypermon.sim.virtual.link import VirtualLink
from hypermon.sim.virtual.memory.sdram_chip import Delays

from tests.sim.accounts import balanced
from tests.sim.plain_host import play, read
from tests.sim.played.test_loss import stalled
from tests.sim.traffic import random_gaps, traffic

#: 64 KiB, a 512th of a ULX3S's: what survives 25 ms there survives 12.8 s.
DEPTH = 1 << 12


@pytest.fixture(scope="module")
def deep(tools):
    geometry = Geometry(frame_depth=16, sinks=tuple(Sink), external_depth=DEPTH)
    library(geometry, deep_shell())
    return geometry


def away(geometry, load, at_ms, for_ms, seed=1, tail_ms=4, sink=Sink.EXTENDED, drain_rate=50_000_000):
    """A run at ``load`` items a second in which the host takes nothing for a while: run, what was written, the most
    bytes that waited in the SDRAM."""
    rng = np.random.default_rng(seed)
    written = traffic(geometry, *random_gaps(geometry, load, 0.1, at_ms + for_ms + tail_ms, rng), rng)
    with VirtualLink(written.stimulus, geometry, drain_rate=drain_rate, stalls=[(at_ms, for_ms)],
                     shell=deep_shell()) as link:
        assert read(link, "STORE_DEPTH") >> 16 == (geometry.external_depth - 1).bit_length()
        run = play(link, written.stimulus, Window.CLOCK, sink=sink)
        high = BEAT_BYTES * read(link, "EXTERNAL_HIGH")
    balanced(run, written)
    return run, written, high


def test_a_long_stall_loses_nothing(deep):
    """25 ms of 64 KiB at a million a second, as 12.8 s of 32 MiB."""
    run, written, high = away(deep, 1e6, 1, 25)
    assert not run.losses
    assert len(run.events) == len(written)
    assert 48 * 1024 < high < 64 * 1024


def test_a_full_one_loses_as_the_accounts_say(deep):
    """When it is full, what stands before it fills, and the gate refuses: offered = accepted + lost."""
    run, written, high = away(deep, 20e6, 0.5, 4, tail_ms=1)
    assert run.lost > 10_000
    assert high > 64 * 1024
    assert len(run.events) + run.lost == len(written)


@pytest.mark.parametrize("sink", [pytest.param(Sink.CLASSIC, marks=pytest.mark.slow), Sink.EXTENDED])
def test_bursts_and_stalls(deep, sink):
    stalled(deep, sink, 5, 3, 10, 60_000, shell=deep_shell())


@pytest.mark.slow
@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("seed", range(2))
def test_bursts_and_long_stalls(deep, sink, seed):
    stalled(deep, sink, seed, 20, 60, 60_000, shell=deep_shell())


@pytest.mark.slow
def test_a_wrong_phase_is_told(deep):
    """Wires that are too slow for what they carry out: the memory complains, and the link says so."""
    shell = deep_shell(delays=Delays(out=7_500))
    with VirtualLink(None, deep, shell=shell) as link, pytest.raises(HypermonError, match="set-up"):
        link.stream(1 << 16)
