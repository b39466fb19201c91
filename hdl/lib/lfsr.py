"""LFSR addresses: every address occurs once per cycle, in no useful order, and no carry chain is needed."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat

__all__ = ["lfsr_next"]

#: Taps of linear-feedback shift registers that pass through all states but 0 (maximal length; P. Alfke, Xilinx
#: XAPP 052, table 3).
_STAGES = {
    1: (1,), 2: (2, 1), 3: (3, 2), 4: (4, 3), 5: (5, 3), 6: (6, 5), 7: (7, 6), 8: (8, 6, 5, 4), 9: (9, 5), 10: (10, 7),
    11: (11, 9), 12: (12, 6, 4, 1), 13: (13, 4, 3, 1), 14: (14, 5, 3, 1), 15: (15, 14),
}


def lfsr_next(number):
    """The next number of the sequence. From any number, every number of that width occurs once before it repeats.

    ``number`` is shifted by one and the XOR of its taps is shifted in. State 0 is inserted after the state in which
    only the highest bit is set.
    """
    stages = [number[k - 1] for k in _STAGES[len(number)]]
    return Cat(reduce(xor, stages) ^ ~number[:-1].any(), number[:-1])
