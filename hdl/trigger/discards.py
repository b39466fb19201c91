"""Discards: counts the unwanted items that were discarded after the gate."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import COUNTER_BITS

__all__ = ["Discards"]


class Discards(wiring.Component):
    """Counts the bits that are set, in two halves, so that no carry passes through a whole counter.

    Parameters
    ----------
    sources : number of bits.

    Members
    -------
    thrown : one bit per discarded item.
    count : number of discarded items, two clocks later. (The halves are consistent only when nothing has been discarded
        for two clocks.)
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
