"""The link of a regeneration board: frames of 256 bits that carry the strobes of eight nodes to the board."""

__all__ = [
    "LINK_ADVANCE", "LINK_AGE", "LINK_BYTES", "LINK_CRC", "LINK_CRC_BITS", "LINK_CRC_INIT", "LINK_EVENT",
    "LINK_FRAME_CLOCKS", "LINK_LAG_BITS", "LINK_LATENCY", "LINK_MOMENTS", "LINK_MORE", "LINK_NODES",
    "LINK_REPLAY_CLOCKS", "LINK_SCRAMBLER", "LINK_SILENT", "LINK_SUPERFRAME", "LINK_SYNC", "LinkSide",
]

import enum

#: Nodes of a regeneration board.
LINK_NODES = 8
#: Clocks of a frame: two bits a clock, four clocks a byte, lowest bit first.
LINK_FRAME_CLOCKS = 128
#: First byte of a frame. No part of it at the start equals one at the end, so two places never overlap. Not scrambled,
#: and not covered by the CRC.
LINK_SYNC = 0x17
#: Bits of the lag, after the side channel's four: clocks from the frame's first time to its first clock.
LINK_LAG_BITS = 12
#: Bytes of events and times in a frame; sync, side channel and lag are three bytes before them, the CRC two after.
LINK_BYTES = 27
#: A byte with this bit is a nibble: bits 6..4 node, bits 3..0 nibble. Without it: time advances by bits 5..0 clocks.
LINK_EVENT = 0x80
#: In a byte of time: the nibbles that follow, up to the next byte of time, continue an item. Without it, and at the
#: beginning of a frame: each of them begins an item.
LINK_MORE = 0x40
#: How far a byte advances time if one byte is not enough.
LINK_ADVANCE = 32
#: CRC-16 with polynomial x^16+x^14+x^12+x^11+x^8+x^5+x^4+x^2+1, bits reversed: it detects every error of up to four
#: bits in a frame (Koopman, "Best CRC Polynomials": 0xac9a up to 241 bits).
LINK_CRC = 0xAC9A
LINK_CRC_BITS = 16
LINK_CRC_INIT = 0xFFFF
#: State of the scrambler x^7+x^6+1 before the first bit after the sync.
LINK_SCRAMBLER = 0x7F
#: Frames after which the side channel repeats: 16 for each of 18 counts: refused and sent items of eight nodes, the
#: age, and one that is 0. A multiple of 32: the clock numbers of moments wrap with it.
LINK_SUPERFRAME = 288
#: Number of the count with the transmitter's age: superframes that it began before this one. The first frame of this
#: count is marked.
LINK_AGE = 16
#: Frames that a transmitter does not send after its start, so that the receiver loses its lock between two lives of a
#: transmitter, however short the time between them is.
LINK_SILENT = 8
#: Moments that the transmitter's FIFO holds.
LINK_MOMENTS = 64
#: Clocks from a strobe to its replay, but for the constant delay of the line and the stages.
LINK_REPLAY_CLOCKS = 1 << LINK_LAG_BITS
#: Clocks by which the stamps of a link's nodes are later than those of nodes that are wired directly, with a line of no
#: length: the replay, and the stages of both ends.
LINK_LATENCY = LINK_REPLAY_CLOCKS + 13
assert 8 * (LINK_BYTES + 5) == 2 * LINK_FRAME_CLOCKS


class LinkSide(enum.IntEnum):
    """Bits of the side channel; bits 2 and 3 are two bits of a count, lowest first."""

    #: Items were refused since the last frame.
    REFUSED = 0
    #: First frame of the age.
    MARK = 1
    COUNT = 2
