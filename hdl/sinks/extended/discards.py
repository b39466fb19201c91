"""Discards: how many items were thrown away behind the gate because nobody wants them."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...layout import COUNTER_BITS

__all__ = ["Discards"]


class Discards(wiring.Component):
    """Counts the bits that are set, in two halves, so that no carry goes through a whole counter.

    Parameters
    ----------
    sources : bits.

    Members
    -------
    thrown : an item each.
    count : their sum, two clocks later. (The halves are of one clock only when nothing has been thrown
        for two.)
    """

    def __init__(self, sources: int):
        super().__init__({"thrown": In(sources), "count": Out(COUNTER_BITS)})

    def elaborate(self, platform):
        m = Module()
        half = COUNTER_BITS // 2
        low, high = self.count[:half], self.count[half:]
        carry = Signal()
        some = Signal(range(len(self.thrown) + 1))
        m.d.sync += [some.eq(reduce(add, self.thrown)), Cat(low, carry).eq(low + some)]
        with m.If(carry):
            m.d.sync += high.eq(high + 1)
        return m
