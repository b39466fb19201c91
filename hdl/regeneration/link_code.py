"""CRC and scrambler of the link, two bits per clock, and the records that pass between its stages."""

from amaranth.hdl import Cat, Mux
from amaranth.lib import data

from ..layout import LINK_CRC, LINK_LAG_BITS, LINK_NODES, PORT_BITS

__all__ = ["MOMENT", "TIME_BITS", "TIMED_MOMENT", "crc_after", "scrambled"]

#: All nibbles of one clock: their nodes; which of them continue an item (``more``), the others begin one; and the
#: clock's number.
MOMENT = data.StructLayout({
    "mask": LINK_NODES, "more": LINK_NODES, "nibbles": PORT_BITS * LINK_NODES, "stamp": LINK_LAG_BITS})
#: Bits of the receiver's clock numbers: a lag and the delay until the replay.
TIME_BITS = LINK_LAG_BITS + 1
#: The same in the receiver's time. ``torn``: frames before it, after the moment before it, were not delivered.
TIMED_MOMENT = data.StructLayout({
    "mask": LINK_NODES, "more": LINK_NODES, "nibbles": PORT_BITS * LINK_NODES, "time": TIME_BITS, "torn": 1})


def crc_after(state, bits):
    """The CRC register after ``bits``, the first one lowest. Its own lowest bits are followed by zeros."""
    for bit in bits:
        shifted = state[1:]
        state = Mux(state[0] ^ bit, shifted ^ LINK_CRC, shifted)[:len(state)]
    return state


def scrambled(state):
    """Two bits of the scrambler, the first one lowest, and its state after them."""
    first, second = state[6] ^ state[5], state[5] ^ state[4]
    return Cat(first, second), Cat(second, first, state[:5])
