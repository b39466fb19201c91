"""Reads the payloads of CENSUS and LOSS blocks."""

from dataclasses import dataclass

import numpy as np
from hypermon.hdl.layout import (
    CENSUS_ABSENT_SHIFT,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    CENSUS_RESTARTED_SHIFT,
    CENSUS_UNSURE_SHIFT,
    LOSS_RECORD,
    CensusFlag,
    Counter,
)
from hypermon.host.blocks.blocks import Block

__all__ = ["LINK_GATE", "LINK_LINE", "REFUSED", "BoardCensus", "read_census", "read_losses"]

#: Where a row of a census has the losses of the node's link; both are 0 for a node without one.
LINK_GATE, LINK_LINE = len(Counter), len(Counter) + 1
#: Where it has the items lost by each cause.
REFUSED = {"frame_fifo": int(Counter.LOST_FRAME_FIFO), "node_fifo": int(Counter.LOST_NODE_FIFO),
           "vector_fifo": int(Counter.LOST_VECTOR_FIFO), "regeneration_gate": LINK_GATE,
           "regeneration_line": LINK_LINE}


@dataclass(frozen=True)
class BoardCensus:
    """A CENSUS: the head, and ``counters[node][Counter]``, at window ``time``.

    A row has two numbers more than the board's counters, at :data:`LINK_GATE` and :data:`LINK_LINE`: items of the node
    that its regeneration board refused, and that were lost on its line.

    ``discarded``: items that triggers and the event mask have discarded.
    ``unsure``, ``absent``, ``restarted``: bit k: more may be lost on link k than is counted; no frame of link k has
    arrived; its regeneration board was restarted or exchanged. ``lined``: how many nodes, from 0 on, are on links.
    """

    time: int
    flags: CensusFlag
    frames: int
    frame_level: int
    vector_level: int
    discarded: int
    counters: list[list[int]]
    unsure: int = 0
    absent: int = 0
    restarted: int = 0
    lined: int = 0

    def refused(self, node: int) -> int:
        row = self.counters[node]
        return sum(row[counter] for counter in REFUSED.values())


def read_census(block: Block) -> BoardCensus:
    """The payload of a CENSUS block."""
    head = CENSUS_BOARD.unpack(block.payload)
    nodes, flags = block.head.nodes, head["flags"]
    rest = np.frombuffer(block.payload, "<u8", offset=CENSUS_BOARD.bytes)
    counters = np.zeros((nodes, LINK_LINE + 1), np.uint64)
    own = nodes * CENSUS_NODE.bytes // 8
    counters[:, :len(Counter)] = rest[:own].reshape(nodes, CENSUS_NODE.bytes // 8)[:, :len(Counter)]
    links = rest[own:].reshape(-1, CENSUS_LINK.bytes // 8)
    counters[:len(links), LINK_GATE:] = links
    return BoardCensus(block.time, CensusFlag(flags & sum(CensusFlag)), head["frames"],
                       head["frame_level"], head["vector_level"], head["discarded"], counters.tolist(),
                       flags >> CENSUS_UNSURE_SHIFT & 15, flags >> CENSUS_ABSENT_SHIFT & 15,
                       flags >> CENSUS_RESTARTED_SHIFT & 15, len(links))


def read_losses(block: Block) -> list[tuple[int, int, int, int]]:
    """The records of a LOSS block: node, lost, first and last window."""
    records = np.frombuffer(block.payload, LOSS_RECORD.numpy())
    return list(zip(records["node"].tolist(), records["lost"].tolist(), records["first"].tolist(),
                    records["last"].tolist(), strict=True))
