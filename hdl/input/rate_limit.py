"""Rate limit: bounds the bandwidth that a floating strobe can use."""

from functools import reduce
from operator import and_

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import counted, planes

__all__ = ["ITEMS_BITS", "SPAN_BITS", "RateLimit"]

#: Bits of the number of items allowed in an interval.
ITEMS_BITS = 8
#: Bits of the binary logarithm of the interval.
SPAN_BITS = 5


class RateLimit(wiring.Component):
    """Passes at most ``items`` items of each node in each interval of ``2**span`` windows.

    Intervals begin where the window number is a multiple of ``2**span``, for all nodes at once. The decision
    therefore depends only on the window number and on the items of the interval: a simulation may skip, and
    nodes do not affect each other. Two successive intervals can pass up to ``2 * items`` in a row. A token bucket
    would pass as many, and would need a timer to fill it.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    items : see above; 0: no limit. To be changed only while nothing is offered.
    span : see above.
    now : window number; may come late.
    offer : an item begins, one bit per node.
    allow : the item may pass. From a register: it does not depend on ``offer`` of the same clock.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        super().__init__({
            "items": In(ITEMS_BITS), "span": In(SPAN_BITS), "now": In(32), "offer": In(nodes),
            "allow": Out(nodes, init=-1 % (1 << nodes)),
        })

    def elaborate(self, platform):
        m = Module()
        # A new interval: some bit at or above `span` has changed. A skip of less than 2**31 windows changes
        # one of the 32 if it ends in another interval.
        before = Signal(32, reset_less=True)
        counts = Signal(32, reset_less=True)          # the bits that number intervals
        changed = Signal(32, reset_less=True)
        some = Signal(4)
        begins = Signal(init=1)
        off = Signal(init=1)
        m.d.sync += [
            off.eq(self.items == 0),
            counts.eq(Array(Const(-1 << s & 0xffffffff, 32) for s in range(1 << SPAN_BITS))[self.span]),
            before.eq(self.now), changed.eq((self.now ^ before) & counts),
            *(some[k].eq(changed[8 * k:8 * k + 8].any()) for k in range(4)), begins.eq(some.any() | off),
        ]
        # Items that have passed, until the last one that may.
        passed = planes(ITEMS_BITS, self.nodes, "passed")
        last = Signal(ITEMS_BITS)
        m.d.sync += last.eq(self.items - 1)
        ends = reduce(and_, (~(plane ^ bit.replicate(self.nodes)) for plane, bit in zip(passed, last, strict=True)))
        passes = self.offer & self.allow
        m.d.sync += [
            self.allow.eq(self.allow & ~(ends & self.offer)),
            *(plane.eq(new) for plane, new in zip(passed, counted(passed, passes), strict=True)),
        ]
        with m.If(begins):
            m.d.sync += [self.allow.eq(-1), *(plane.eq(0) for plane in passed)]
        return m
