"""COMPACT payloads: groups and codes."""

import enum

from .geometry import BEAT_BYTES
from .record import Field, Record

__all__ = [
    "CODES", "COMPACT_HEAD", "Code", "GAP_GROUPS", "GROUP_BITS",
]

#: A COMPACT payload is a row of groups of this number of bits, the low half of a byte first.
GROUP_BITS = 4
#: Maximum number of groups of a gap: 21 bits. A longer gap begins another block.
GAP_GROUPS = 7


class Code(enum.IntEnum):
    """Codes of a COMPACT payload other than an item: one group ``8 | code``, then one of 0.

    A number never ends in a group of 0 after another group, so these two groups are no number.
    """

    #: Many nodes in one window.
    WINDOW = 0
    #: The item before it was ended by the time-out.
    ABORTED = 1
    #: An item that was still open when its window was written.
    LATE = 2


#: The groups that follow the two groups of a code.
CODES = {
    Code.WINDOW: "gap; strobe vector, one bit per node, node 0 lowest, 4 nodes per group; then the nibble of "
                 "every node whose bit is set, lowest node first, one group each",
    Code.ABORTED: "two groups, low one first: how many nibbles at the end of the previous item are filler (zeros)",
    Code.LATE: "age as a number, of 21 bits in two's complement; node; nibble; further nibbles. The item's window "
               "is the current window minus the age",
}

COMPACT_HEAD = Record("compact head", "One beat before the groups of a COMPACT block with flag bit 2.", (
    Field("words", 32, "bit i: node i is in word mode"),
    Field("events", 32, "bit i: node i is in event mode; overrides `words`"),
    Field("zero", 64, "0"),
))
assert COMPACT_HEAD.bytes == BEAT_BYTES
