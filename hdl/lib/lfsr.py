"""Numbers that go round without a carry: for addresses of which nobody asks more than that all come by."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat

__all__ = ["following"]

#: Stages of shift registers that pass through all states but 0 (maximal length; P. Alfke, Xilinx XAPP 052, table 3).
_STAGES = {
    1: (1,), 2: (2, 1), 3: (3, 2), 4: (4, 3), 5: (5, 3), 6: (6, 5), 7: (7, 6), 8: (8, 6, 5, 4), 9: (9, 5), 10: (10, 7),
    11: (11, 9), 12: (12, 6, 4, 1), 13: (13, 4, 3, 1), 14: (14, 5, 3, 1), 15: (15, 14),
}


def following(number):
    """The number that comes next: from any, all of that many bits come by before it comes again.

    ``number`` shifted by one, with the sum of some bits behind; 0 is let in behind the highest bit alone.
    """
    stages = [number[k - 1] for k in _STAGES[len(number)]]
    return Cat(reduce(xor, stages) ^ ~number[:-1].any(), number[:-1])
