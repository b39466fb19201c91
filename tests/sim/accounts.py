"""The books of a run against what was written: every item has come as it was, or is in a record of loss."""

from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np
from hypermon.hdl.layout import CENSUS_BOARD, CENSUS_NODE, LATENCY, BlockType, CensusFlag

from tests.sim.plain_host import Run
from tests.sim.traffic import Mode, Traffic

__all__ = ["balanced", "outages"]

_LOST = ("lost_frame_fifo", "lost_node_fifo", "lost_vector_fifo")
#: Clocks until a nibble is in the counters; and from a census' time until they are latched, at most.
_COUNTED, _LATCHED = 32, 20_000


def balanced(run: Run, traffic: Traffic) -> None:
    """Windows of one clock: all accounts agree to the last item, every stamp is exact, and what was lost
    is in the records, each from its first to its last window."""
    nodes = traffic.geometry.nodes
    assert run.stopped
    for n in range(nodes):
        offered = traffic.offered(n)
        came = [(item.window, item.nibbles) for item in run.items if item.node == n] or [
            (window, bytes([nibble])) for window, node, nibble in run.events if node == n]
        # What was open for long is sent later than what came after it.
        came.sort()
        assert all(a[0] < b[0] for a, b in pairwise(came)), f"node {n}: an item came twice"
        wrong = [(window, nibbles) for window, nibbles in came if offered.get(window) != nibbles]
        assert not wrong, f"node {n}: an item that was not written then: {wrong[:3]}"
        lost = sorted(set(offered) - {window for window, _ in came})
        census = run.census[n]
        assert census["accepted"] == census["delivered"] == len(came)
        assert sum(census[name] for name in _LOST) == len(lost)
        assert len(offered) == census["accepted"] + len(lost)
        records = [record for record in run.losses if record["node"] == n]
        assert sum(record["lost"] for record in records) == len(lost), f"node {n}"
        at = 0
        for record in records:
            mine = lost[at:at + record["lost"]]
            at += record["lost"]
            assert (record["first"], record["last"]) == (mine[0], mine[-1]), f"node {n}: {record}, lost {mine[:3]}..."
    _as_it_went(run, traffic)


def _as_it_went(run: Run, traffic: Traffic) -> None:
    """Every census: offered = accepted + lost, and delivered is what stands before it (plain_host sees to that)."""
    when = traffic.edge + LATENCY
    for kind, time, payload in run.blocks:
        if kind is not BlockType.CENSUS:
            continue
        head = CENSUS_BOARD.unpack(payload)
        rows = [CENSUS_NODE.unpack(payload, k) for k in range(CENSUS_BOARD.bytes, len(payload), CENSUS_NODE.bytes)]
        seen = sum(row["accepted"] + sum(row[name] for name in _LOST) for row in rows)
        assert all(row["delivered"] <= row["accepted"] for row in rows)
        low, high = np.searchsorted(when, (time - _COUNTED, time + _LATCHED))
        assert low <= seen <= high, f"census at {time}: {seen} offered, not {low}..{high}"
        if head["flags"] & CensusFlag.STOP:
            assert seen == len(traffic)


def outages(run: Run, traffic: Traffic) -> int:
    """Checks that gates reopen late enough: between two records of a node many were accepted. Returns how many
    records there are."""
    geometry = traffic.geometry
    # A vector FIFO goes from its limit down to half, a node FIFO from full down to half.
    spare = geometry.vector_depth - geometry.node_depth - 4 - geometry.vector_depth // 2
    several = any(mode is not Mode.NIBBLE for mode in traffic.modes)
    # An item of several nibbles takes as many places, and stands at its first.
    places = [(item.window, item.node) for item in run.items for _ in item.nibbles] if several else [
        (window, node) for window, node, _ in run.events]
    windows = [window for window, _ in places]
    everyone = sorted(windows if several else set(windows))
    for n in range(geometry.nodes):
        mine = sorted(window for window, node in places if node == n)
        for before, after in pairwise(record for record in run.losses if record["node"] == n):
            between = (before["last"], after["first"])
            vectors = bisect_left(everyone, between[1]) - bisect_right(everyone, between[0])
            own = bisect_left(mine, between[1]) - bisect_right(mine, between[0])
            assert own, f"node {n}: two records of one outage, {before} and {after}"
            assert vectors >= spare // 2 or own >= geometry.node_depth // 4, f"{between}: {vectors}, {own}"
    return len(run.losses)
