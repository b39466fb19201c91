"""The stream from a HYPERMON board to its host: blocks, and in COMPACT blocks the items in groups of four bits.

Eight lines are a byte: one per sample, as in a recording's stream.bin, or one at every rising edge of CLK.
"""

from .pd import Decoder as Decoder
