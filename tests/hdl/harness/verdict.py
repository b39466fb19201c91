"""Is what the board said what it had to say?"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_

from hypermon.hdl.layout import BlockFlag, Cause, CensusFlag, Status

from .blocks import Run
from .scoreboard import Item, explain, frames

__all__ = ["verify"]

_LOST = {Cause.FRAME_FIFO: "lost_frame_fifo", Cause.NODE_FIFO: "lost_node_fifo",
         Cause.VECTOR_FIFO: "lost_vector_fifo"}


def verify(run: Run, offered: Mapping[int, Sequence[Item]], clocks: int, *, cut: bool = False,
           grown: bool = False, streamed: bool = True) -> None:
    """Hold one epoch against what its nodes offered.

    Parameters
    ----------
    offered : items of each node that takes part.
    clocks : in a window.
    cut : a reset ended the epoch; else its last block is the CENSUS of the stop.
    grown : outages may have grown while LOSS records could not be queued.
    streamed : all frames came by the stream, in order with the censuses.

    Raises
    ------
    AssertionError
    """
    nodes = range(run.geometry.nodes)
    certain = not any(item.optional for found in offered.values() for item in found)
    if not cut and certain and not any(run.losses.values()):
        expected = frames(offered, clocks)
        for position, (one, two) in enumerate(zip(run.frames, expected, strict=False)):
            assert one == two, f"frame {position} is {one}, must be {two}"
        assert len(run.frames) == len(expected), f"{len(run.frames)} frames, must be {len(expected)}"
    # Nodes are looked at in turn, in so many clocks.
    merged = max(8, 1 << (run.geometry.nodes - 1).bit_length())
    explained = {n: explain(offered.get(n, ()), run.delivered(n), run.losses[n], clocks, merged=merged, grown=grown,
                            cut=cut)
                 for n in nodes}
    for node in nodes:
        for causes in run.causes[node]:
            assert grown or causes.bit_count() == 1, f"node {node}: one outage, causes {causes!r}"

    # Every census: counts never fall, and say exactly what stands before it in the stream.
    before: dict[int, dict[str, int]] = {}
    for census in run.censuses:
        for node, row in enumerate(census.nodes):
            if streamed:
                assert row["delivered"] == census.before[node], (node, row, census.before)
            assert row["accepted"] >= row["delivered"], (node, row)
            previous = before.get(node, row)
            assert all(row[name] >= previous[name] for name in row), (previous, row)
            before[node] = row
    for first, second in pairwise(run.censuses):
        assert second.time > first.time, (first.time, second.time)
    if cut:
        return

    assert run.stopped, "the last block is no CENSUS of a stop"
    assert run.censuses[0].flags & CensusFlag.START, run.censuses[0]
    last = run.censuses[-1]
    # What the extended sink writes are no frames.
    made = 0 if BlockFlag.EXTENDED in run.flags else len(run.frames)
    assert last.board["frames"] == made, (last.board, made)
    assert last.board["frame_level"] == last.board["vector_level"] == 0, last.board
    every = reduce(or_, (c for causes in run.causes.values() for c in causes), Cause(0))
    assert last.board["status"] == every & ~Status.READY, (last.board, every)
    for node, row in enumerate(last.nodes):
        told = explained[node]
        assert row["accepted"] == row["delivered"] == told.accepted, (node, row, told)
        assert sum(row[name] for name in _LOST.values()) == told.lost, (node, row, told)
        causes = reduce(or_, run.causes[node], Cause(0))
        for cause, name in _LOST.items():
            assert bool(row[name]) == bool(causes & cause), (node, row, causes)
        assert (row["carried"], row["lag_max"]) in told.outcomes, (node, row, told.outcomes)
