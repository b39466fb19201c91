"""What nodes did over time, in columns: shares of states, items and losses, aligned at an event."""

import numpy as np
import pytest
from hypermon.host.compare.lanes import COLUMNS, aligned
from hypermon.host.errors import HypermonError

from .conftest import US

#: The first begin of a state in :func:`.conftest.rows`.
BEGIN = 7 * US


def test_states_take_their_part_of_each_column(two) -> None:
    own, other = aligned(two())
    assert (own.low, own.high) == (other.low, other.high)
    assert len(own.names) == 4
    [(node, states)] = own.lanes.states.items()
    assert (node, list(states)) == (0, ["it's a job"])
    width = (own.high - own.low) / COLUMNS
    assert states["it's a job"].sum() * width == pytest.approx(240 * 30 * US, rel=1e-6)
    edges = own.low + np.arange(COLUMNS + 1) * width
    inside = [k for k in range(COLUMNS) if edges[k] >= BEGIN + 40 * US and edges[k + 1] <= BEGIN + 70 * US]
    assert all(states["it's a job"][k] == pytest.approx(1, abs=1e-6) for k in inside)


def test_runs_are_aligned_at_an_event(two) -> None:
    """The first receive of the second run is later; the part before it is as long in both."""
    runs = two()
    began, ended = aligned(runs, "begin"), aligned(runs, "caught")
    assert all(own.low <= -BEGIN < 0 < own.high for own in began)
    first = [run.sql("select min(time_ps) from framed where event = 7").fetchall()[0][0] for run in runs]
    assert first[1] > first[0]
    # A recording begins a window or so before time 0.
    assert ended[0].low == ended[1].low
    assert -US < ended[0].low + max(first) <= 0
    alone = [aligned([run], "caught")[0] for run in runs]
    assert ended[0].high == ended[1].high == max(own.high for own in alone) > min(own.high for own in alone)
    shares = [own.lanes.states[0]["it's a job"].sum() for own in ended]
    assert shares[0] == pytest.approx(shares[1], rel=0.02)


def test_items_and_losses_have_their_columns(losing_run) -> None:
    [own] = aligned([losing_run])
    table, loss = losing_run.events(), losing_run.loss()
    assert own.lanes.items.sum() == len(table)
    edges = own.low + np.arange(COLUMNS + 1) * (own.high - own.low) / COLUMNS
    times, nodes = table["time_ps"].to_numpy(), table["node"].to_numpy()
    counts, _ = np.histogram(times[nodes == 3], edges)
    assert np.abs(np.cumsum(counts) - np.cumsum(own.lanes.items[3])).max() <= 1
    for row in loss.to_pylist():
        at = np.searchsorted(edges, (row["from_ps"] + row["to_ps"]) / 2) - 1
        assert own.lanes.lost[row["node"], at]
    assert not own.lanes.lost.all()


def test_an_event_that_is_not_there(two) -> None:
    runs = two()
    for name, said in (("nix", "there is no event 'nix'"), ("event:200", "it has no such event")):
        with pytest.raises(HypermonError, match=f"--align {name}: .*{said}"):
            aligned(runs, name)
