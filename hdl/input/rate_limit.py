"""Rate limit: a floating strobe costs the board so much and no more."""

from functools import reduce
from operator import and_

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import counted, planes

__all__ = ["ITEMS_BITS", "SPAN_BITS", "Limiter"]

#: Bits of the number of items allowed in an interval.
ITEMS_BITS = 8
#: Bits of the binary logarithm of the interval.
SPAN_BITS = 5


class Limiter(wiring.Component):
    """Lets at most ``items`` items of each node pass in each interval of ``2**span`` windows.

    Intervals begin where the window number is a multiple of ``2**span``, for all nodes at once, so that
    nothing but the window number and what came in the interval decides: a simulation may skip, and
    nodes do not touch each other. Two intervals that follow each other let up to ``2 * items`` pass
    in a row. A bucket of tokens would let pass as much, and would have to be filled by a timer.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    items : see above; 0: no limit. To be changed only while nothing is offered.
    span : see above.
    now : window number; may come late.
    offer : an item begins, a bit a node.
    allow : it may pass. In a register: it does not look at ``offer`` of its own clock.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        super().__init__({
            "items": In(ITEMS_BITS), "span": In(SPAN_BITS), "now": In(32), "offer": In(nodes),
            "allow": Out(nodes, init=-1 % (1 << nodes)),
        })

    def elaborate(self, platform):
        m = Module()
        # Another interval: some bit above `span` has changed. A skip of less than 2**31 windows changes
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
