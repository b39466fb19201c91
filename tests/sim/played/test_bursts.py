"""The rates that the extended board is to take, with a link of 50 MB/s: nothing is lost."""

import numpy as np
import pytest
from hypermon.hdl.layout import BlockType, Sink, Window

from tests.sim.accounts import balanced
from tests.sim.plain_host import once
from tests.sim.traffic import evenly, random_gaps, section_6, traffic

LINK = 50_000_000


def whole(board, written):
    """All of it has come."""
    run = once(written.stimulus, board, Window.CLOCK, Sink.EXTENDED, drain_rate=LINK)
    balanced(run, written)
    assert not run.losses
    assert len(run.events) == len(written)
    return run


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_burst_of_section_6(stored, seed):
    """60 kB of events in 20 ms from 16 nodes, a write a nibble."""
    written = section_6(stored, np.random.default_rng(seed))
    assert len(written) > 132_000
    assert written.edge.max() - written.edge.min() < 2_000_000
    run = whole(stored, written)
    payload = sum(len(payload) for kind, _, payload in run.blocks if kind is BlockType.COMPACT)
    assert payload < 2.0 * len(written)


def test_one_node(stored):
    """25 M nibbles/s from one node."""
    rng = np.random.default_rng(1)
    whole(stored, traffic(stored, *evenly(stored, 25_000_000, 0.1, 3.1, [7]), rng))


def test_all_nodes(stored):
    """20 M nibbles/s from all of them, at random."""
    rng = np.random.default_rng(2)
    written = traffic(stored, *random_gaps(stored, 20_500_000, 0.1, 3.1, rng), rng)
    assert len(written) > 60_000
    whole(stored, written)


def test_all_nodes_at_once(stored):
    """Sixteen in one clock, again and again, 20 M nibbles/s."""
    rng = np.random.default_rng(3)
    rounds = 10_000 + 80 * np.arange(3750)
    whole(stored, traffic(stored, np.repeat(rounds, 16), np.tile(np.arange(16), 3750), rng))
