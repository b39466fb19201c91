"""Reads the payloads of CENSUS and LOSS blocks."""

from dataclasses import dataclass

import numpy as np
from hypermon.hdl.layout import CENSUS_BOARD, CENSUS_NODE, LOSS_RECORD, CensusFlag, Counter
from hypermon.host.blocks.blocks import Block

__all__ = ["BoardCensus", "read_census", "read_losses"]


@dataclass(frozen=True)
class BoardCensus:
    """A CENSUS: the head, and ``counters[node][Counter]``, at window ``time``.

    ``discarded``: items that triggers and the event mask have discarded.
    """

    time: int
    flags: CensusFlag
    frames: int
    frame_level: int
    vector_level: int
    discarded: int
    counters: list[list[int]]

    def refused(self, node: int) -> int:
        row = self.counters[node]
        return row[Counter.LOST_FRAME_FIFO] + row[Counter.LOST_NODE_FIFO] + row[Counter.LOST_VECTOR_FIFO]


def read_census(block: Block) -> BoardCensus:
    """The payload of a CENSUS block."""
    head = CENSUS_BOARD.unpack(block.payload)
    counters = np.frombuffer(block.payload, "<u8", offset=CENSUS_BOARD.bytes)
    counters = counters.reshape(block.head.nodes, CENSUS_NODE.bytes // 8)
    return BoardCensus(block.time, CensusFlag(head["flags"] & sum(CensusFlag)), head["frames"],
                       head["frame_level"], head["vector_level"], head["discarded"],
                       counters[:, :len(Counter)].tolist())


def read_losses(block: Block) -> list[tuple[int, int, int, int]]:
    """The records of a LOSS block: node, lost, first and last window."""
    records = np.frombuffer(block.payload, LOSS_RECORD.numpy())
    return list(zip(records["node"].tolist(), records["lost"].tolist(), records["first"].tolist(),
                    records["last"].tolist(), strict=True))
