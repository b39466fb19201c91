"""Glitch filter: runts and ringing of a strobe produce no item."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import planes

__all__ = ["LASTING_BITS", "GlitchFilter"]

#: Bits of the number of clocks for which a level must last.
LASTING_BITS = 4


class GlitchFilter(wiring.Component):
    """Accepts a change of a strobe only when its new level has lasted.

    A level is accepted once it has been seen unchanged at ``more`` clock edges after the first one:
    at ``more + 1`` edges in all. A change that did not last is a runt, or part of an edge that rings. It
    produces nothing, and is counted as rejected if it was an active edge. Therefore

        active edges of the raw strobe = pulses + rejected

    holds at every moment, except for the one edge that is still being examined. Of an edge that rings, the last
    change counts. Every accepted change takes effect exactly ``more`` clocks after it was seen: a fixed
    delay, which the host subtracts from the stamp. With ``more`` = 0 every change is accepted in the clock in which
    it is seen.

    With ``half_clock`` the level half a clock ago is known, too, and a strobe may change twice in one clock.
    Then the first of the two changes has not lasted. If both edges are active, two may be rejected in one
    clock (``twice``). With ``more`` = 0 such a clock gives one pulse, for its first active edge; if
    both are active the second one is rejected.

    Parameters
    ----------
    nodes : number of strobes.
    half_clock : strobes are sampled twice per clock.

    Members
    -------
    level, level_before : levels of the strobes, now and one clock ago.
    middle : only with ``half_clock``: levels half a clock ago.
    edge : strobes that have changed in between, once or twice; combinational with ``level``.
    rising, falling : active edges, one bit per node.
    more : see above; to be changed only while no edge is being examined or can come.
    counts : an active edge is accepted, in this clock.
    rejected : an active edge was found not to count, one clock ago. Never together with the pulse that
        follows ``counts`` by one clock, except for the second of two edges in one clock with ``more`` = 0.
    twice : only with ``half_clock``, never without ``rejected``: a second edge was rejected, too.
    looking : some edge is being examined.
    """

    def __init__(self, nodes: int, half_clock: bool = False):
        self.nodes, self.half_clock = nodes, half_clock
        super().__init__({
            "level": In(nodes), "level_before": In(nodes), "edge": In(nodes),
            "rising": In(nodes), "falling": In(nodes), "more": In(LASTING_BITS),
            "counts": Out(nodes), "rejected": Out(nodes), "looking": Out(1),
            **({"middle": In(nodes), "twice": Out(nodes)} if half_clock else {}),
        })

    def elaborate(self, platform):
        m = Module()
        every = self.nodes
        off = Signal(init=1)
        one = Signal()
        known = Signal(every)    # the accepted level
        left = planes(LASTING_BITS, every, "left")   # clocks for which the new level must still last
        last = Signal(every)     # this is the last of them
        lasts = Signal(every)
        waits = reduce(or_, left)
        m.d.sync += [off.eq(self.more == 0), one.eq(self.more == 1)]

        # Counts down from `more` after an edge; "the last clock" is computed one clock ahead.
        borrow = waits
        for b, plane in enumerate(left):
            fresh = self.more[b].replicate(every)
            m.d.sync += plane.eq((self.edge & fresh) | (~self.edge & (plane ^ borrow)))
            borrow = borrow & ~plane
        two = left[1] & ~reduce(or_, [plane for b, plane in enumerate(left) if b != 1])
        m.d.sync += last.eq((self.edge & one.replicate(every)) | (~self.edge & two))

        m.d.comb += lasts.eq(off.replicate(every) | (last & ~self.edge))
        m.d.sync += known.eq((self.level & lasts) | (known & ~lasts))
        counts = lasts & ((self.level & ~known & self.rising) | (~self.level & known & self.falling))

        # The previous edge: it led to the level of one clock ago.
        was_active = (self.level_before & self.rising) | (~self.level_before & self.falling)
        rejects = was_active & ((self.edge & waits) | (last & ~self.edge & ~(self.level ^ known)))
        m.d.comb += self.looking.eq(waits.any())
        if not self.half_clock:
            m.d.comb += self.counts.eq(counts)
            m.d.sync += self.rejected.eq(rejects)
            return m

        # Up and down within one clock, or down and up: the level is the same again, and is the accepted one if the
        # filter is off. Of the two edges the first cannot have lasted.
        runt = (self.level_before ^ self.middle) & (self.middle ^ self.level)
        one_active = runt & ((self.middle & self.rising) | (~self.middle & self.falling))
        other_active = runt & ((self.level & self.rising) | (~self.level & self.falling))
        is_off = off.replicate(every)
        too = one_active & (other_active | ~is_off)
        m.d.comb += self.counts.eq(counts | (is_off & (one_active | other_active)))
        m.d.sync += [self.rejected.eq(rejects | too), self.twice.eq(rejects & too)]
        return m
