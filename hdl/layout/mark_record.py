"""MARK payloads: moments at which pins have risen."""

import enum

from .geometry import BEAT_BYTES, Extra
from .record import Field, Record

__all__ = ["DRIFT_CLOCKS", "EXTRA_OUTPUTS", "EXTRA_PINS", "MARK_LATENCY", "MARK_RECORD", "MarkSource"]

#: Clocks from the clock edge that samples a pin to the one that a MARK record states.
MARK_LATENCY = 5
#: Least clocks from one mark of ``sync_in`` to the next, a power of two.
DRIFT_CLOCKS = 1 << 17


class MarkSource(enum.IntEnum):
    """The pin of a mark."""

    #: ``pps_in``: a pulse each second, from a receiver of GPS or the like.
    PPS = 0
    #: ``trigger_in``.
    TRIGGER = 1
    #: ``sync_in`` of a board that keeps its own clock: a rise that came one clock more than a period after the one
    #: before. Marks of both directions are numbered together.
    SYNC_LATE = 2
    #: The same, one clock less.
    SYNC_EARLY = 3


#: Inputs of a board that has the extra.
EXTRA_PINS = {Extra.PPS: "pps_in", Extra.TRIGGER_IN: "trigger_in"}

#: Its outputs.
EXTRA_OUTPUTS = {Extra.TRIGGER_OUT: "trigger_out"}

MARK_RECORD = Record("mark record", "A rise of a pin, in a MARK block.", (
    Field("source", 8, "0 pps_in, 1 trigger_in, 2 sync_in a clock late, 3 sync_in a clock early"),
    Field("latency", 8, "clocks from the pin to the stated clock, to be subtracted"),
    Field("left", 16, "clocks from the stated clock to the end of its window"),
    Field("number", 32, "number of earlier rises of this pin since the reset, modulo 2**32"),
    Field("stamp", 64, "window"),
))
assert MARK_RECORD.bytes == BEAT_BYTES
