"""HYPERMON's 5-bit port: four data lines and a strobe.

A node writes a nibble to its data lines and then moves the strobe. The decoder shows the nibbles and, if asked, the
events that the node's software frames from them: a nibble says how many bytes follow, then two nibbles a byte, the
low one first; the first byte is the event's id.
"""

from .pd import Decoder as Decoder
