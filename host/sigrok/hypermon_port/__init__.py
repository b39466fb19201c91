"""HYPERMON's 5-bit port: four data lines and a strobe.

A node writes a nibble to its data lines and then moves the strobe. The decoder shows the nibbles. If requested, it also
shows the events that the node's software frames from them. An event is a nibble with the number of bytes that follow,
then two nibbles per byte, the low one first; the first byte is the event's id.
"""

from .pd import Decoder as Decoder
