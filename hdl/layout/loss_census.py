"""LOSS and CENSUS payloads."""

import enum

from .geometry import BEAT_BYTES
from .record import Field, Record
from .register_map import COUNTERS, COUNTERS_STRIDE, Counter

__all__ = [
    "CENSUS_ABSENT_SHIFT", "CENSUS_BOARD", "CENSUS_LINK", "CENSUS_NODE", "CENSUS_RESTARTED_SHIFT", "CENSUS_SHARE",
    "CENSUS_TIMES", "CENSUS_UNSURE_SHIFT", "CensusFlag", "LOSS_RECORD",
]

LOSS_RECORD = Record("loss record", "One outage of one node, in a LOSS block.", (
    Field("node", 8, "node number"),
    Field("causes", 8, "bit 0 frame FIFO, bit 1 node FIFO, bit 2 strobe-vector FIFO, bit 4 gate of a "
          "regeneration board, bit 5 line of a regeneration board"),
    Field("zero_1", 16, "0"),
    Field("zero_2", 32, "0"),
    Field("lost", 64, "items lost"),
    Field("first", 64, "window of the first lost item; with cause bit 4 or 5, none was lost before it"),
    Field("last", 64, "window of the last lost item; with cause bit 4 or 5, none was lost after it"),
))
assert LOSS_RECORD.bytes == 2 * BEAT_BYTES


class CensusFlag(enum.IntFlag):
    """CENSUS ``flags``."""

    #: The first one after an enable.
    START = 1 << 0
    #: Capture is disabled and everything queued has left: the final counts of this run.
    STOP = 1 << 1
    #: Time follows another board's.
    FOLLOWS = 1 << 2
    #: Since the reset the other board's wave has failed for some periods: time may be wrong.
    STRAYED = 1 << 3
    #: Nothing is kept yet: the trigger waits for an item that matches.
    AWAITS = 1 << 4
    #: A start was found.
    TRIGGERED = 1 << 5
    #: A stop was found, and its window has ended: nothing is kept any more.
    ENDED = 1 << 6
    #: The board has links: their counts follow those of the nodes.
    LINKS = 1 << 7


#: While counters change, a census comes when this many times its own size has left in other blocks since the last
#: one, but not before the first of these times in seconds, nor after the second; in silence it comes after the third.
#: On a slow link the first two times are ten times as long: each then equals the next one of the three.
CENSUS_SHARE = 112
CENSUS_TIMES = 0.01, 0.1, 1

CENSUS_BOARD = Record("census, board", "Head of a CENSUS payload.", (
    Field("frames", 64, "frames generated since reset"),
    Field("frame_level", 32, "frames in the frame FIFO"),
    Field("vector_level", 32, "vectors in the strobe-vector FIFO"),
    Field("flags", 32, "bit 0 start, bit 1 stop, bit 2 time follows another board's, bit 3 time may be wrong because "
                       "that board's wave failed, bit 4 waiting for a start trigger, bit 5 it was found, bit 6 a stop "
                       "was found, bit 7 rows of links follow those of the nodes, bits 11..8: more may be lost on "
                       "link 0 to 3 than is counted, bits 15..12: no frame of link 0 to 3 has arrived since the "
                       "reset, bits 19..16: the regeneration board of link 0 to 3 was restarted or exchanged since "
                       "the reset"),
    Field("status", 32, "STATUS"),
    Field("discarded", 64,
          "items that the start trigger, the stop trigger and the event mask have discarded; they do not count "
          "as delivered"),
))
assert CENSUS_BOARD.bytes == 2 * BEAT_BYTES

CENSUS_NODE = Record("census, node", "One per node, in order, after the head.", (
    *(Field(c.name.lower(), 64, COUNTERS[c]) for c in Counter),
))
assert CENSUS_NODE.bytes == COUNTERS_STRIDE

#: CENSUS ``flags``: the first of four bits, one per link; more may be lost on it than is counted.
CENSUS_UNSURE_SHIFT = 8
#: ... and no frame of it has arrived since the reset.
CENSUS_ABSENT_SHIFT = 12
#: ... and its regeneration board was restarted or exchanged since the reset.
CENSUS_RESTARTED_SHIFT = 16

CENSUS_LINK = Record("census, link", "One per node of a link, in order, after those of all nodes.", (
    Field("refused", 64, "items that the gate of the regeneration board refused"),
    Field("lost", 64, "items lost on its line"),
))
assert CENSUS_LINK.bytes == BEAT_BYTES
