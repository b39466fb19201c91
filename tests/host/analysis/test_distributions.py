"""The survey of a run's events, against plain ways to find the same."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypermon.host.analysis.distributions import Gaps, distributions

NODES, DURATION_PS = 4, 50 * 10**9


def made_up(rng):
    """Times and nodes; some times have several events."""
    times = sorted(rng.randrange(0, DURATION_PS, 800_000) for _ in range(3000))
    return np.array(times), np.array([rng.randrange(NODES) for _ in times])


def batches(times, nodes, size=700):
    for at in range(0, len(times), size):
        yield pa.record_batch({"time_ps": pa.array(times[at:at + size]),
                               "node": pa.array(nodes[at:at + size].astype(np.int16))})


def surveyed(times, nodes, losses=()):
    return distributions(batches(times, nodes), NODES, DURATION_PS, len(times),
                         np.array(losses, np.int64).reshape(-1, 2))


def deepest(arrivals, rate):
    """The most events in a buffer that is drained at ``rate`` an event a second, one arrival after the other."""
    level = most = 0.0
    before = None
    for time, count in arrivals:
        if before is not None:
            level = max(level - rate * (time - before) / 1e12, 0.0)
        level += count
        most, before = max(most, level), time
    return most


def test_rates_and_volumes():
    times, nodes = made_up(random.Random(1))
    found = surveyed(times, nodes)
    for table, parts in ((found.rates, 100), (found.timeline, 480)):
        for node in range(NODES):
            edges = np.arange(parts + 1) * (DURATION_PS / parts)
            assert table[node].tolist() == np.histogram(times[nodes == node], edges)[0].tolist()
    assert found.volumes.tolist() == np.bincount(times // 10**9, minlength=51).tolist()
    at, count = found.busiest[0]
    assert count == found.volumes.max() == np.count_nonzero(times // 10**9 == at)
    assert len(found.busiest) == 10


def test_bursts():
    times, nodes = made_up(random.Random(2))
    for losses in ([], [(10**9, 40), (30 * 10**9 + 5, 7), (DURATION_PS - 1, 100)]):
        found = surveyed(times, nodes, losses)
        arrivals = sorted([(int(time), 1) for time in times] + losses)
        assert found.bursts[0].rate == pytest.approx(len(times) / (DURATION_PS / 1e12))
        for rate, depth in found.bursts:
            assert depth - 1 <= deepest(arrivals, rate) <= depth + 1e-6


def test_events_of_one_time():
    times, nodes = np.array([0, 5, 5, 5, 9, 9, 20]), np.zeros(7, np.int64)
    for size in (1, 2, 3, 7):
        found = distributions(batches(times, nodes, size), NODES, 100, 7, np.zeros((0, 2), np.int64))
        assert found.shared.tolist() == [0, 2, 1, 1, 0]


def test_gaps():
    times, nodes = made_up(random.Random(3))
    found = surveyed(times, nodes)
    for gaps, own in [(found.gaps, times), *((found.node_gaps[n], times[nodes == n]) for n in range(NODES))]:
        plain = np.diff(own)
        assert (gaps.total, gaps.zeros, gaps.longest) == (len(plain), np.count_nonzero(plain == 0), plain.max())
        for share in (50, 90, 99, 99.9, 99.99):
            exact = np.percentile(plain, share, method="inverted_cdf")
            assert gaps.percentile(share) == pytest.approx(exact, rel=0.012)
            assert gaps.percentile(share) in plain


def test_gaps_of_many_nodes_in_small_batches():
    """A node's gaps reach over batches in which it has no events, and nodes without events have none."""
    rng = random.Random(5)
    times = np.array(sorted(rng.randrange(0, DURATION_PS, 800_000) for _ in range(2000)))
    nodes = np.array([rng.choice((0, 7, 300, 4094)) for _ in times])
    found = distributions(batches(times, nodes, 3), 4096, DURATION_PS, len(times), np.zeros((0, 2), np.int64))
    for node in (0, 7, 300, 4094):
        plain, gaps = np.diff(times[nodes == node]), found.node_gaps[node]
        assert (gaps.total, gaps.zeros, gaps.longest) == (len(plain), np.count_nonzero(plain == 0), plain.max())
        assert gaps.percentile(100) == plain.max()
    assert sum(gaps.total for gaps in found.node_gaps) == len(times) - 4
    assert found.rates.sum(axis=1).tolist() == np.bincount(nodes, minlength=4096).tolist()


def test_percentiles_on_a_grid():
    """On a grid that is coarser than the bins a percentile is exact."""
    lengths = np.array([80_000] * 90 + [490_000] * 9 + [900_000])
    gaps = Gaps()
    gaps.add(np.cumsum(lengths[:50]))
    gaps.add(np.cumsum(lengths)[50:])
    assert [gaps.percentile(share) for share in (50, 90, 99, 100)] == [80_000, 490_000, 900_000, 900_000]


def test_nothing():
    assert Gaps().percentile(50) == 0
    assert surveyed(np.zeros(0, np.int64), np.zeros(0, np.int64)).busiest == []
