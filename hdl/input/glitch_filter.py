"""Glitch filter: runts and ringing of a strobe produce no item."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import at_least, planes

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

    With ``phases`` samples per clock the levels between are known, too, and a strobe may change ``phases`` times in one
    clock. Then only the last of these changes can last. As many active edges may be rejected in one clock as there are
    samples (``twice``). With ``more`` = 0 such a clock gives one pulse, for its first active edge; the
    others are rejected.

    Parameters
    ----------
    nodes : number of strobes.
    phases : samples of a strobe per clock.

    Members
    -------
    level, level_before : levels of the strobes, now and one clock ago.
    middle : only with more than one sample: levels between these two, in order of time, ``nodes`` bits each.
    edge : strobes that have changed in between, once or more often; combinational with ``level``.
    rising, falling : active edges, one bit per node.
    more : see above; to be changed only while no edge is being examined or can come.
    counts : an active edge is accepted, in this clock.
    rejected : an active edge was found not to count, one clock ago. Never together with the pulse that
        follows ``counts`` by one clock, except for several edges in one clock with ``more`` = 0.
    twice : only with more than one sample, never without ``rejected``: a second edge was rejected, too. With four
        samples, further planes of ``nodes`` bits report a third and a fourth one.
    looking : some edge is being examined.
    """

    def __init__(self, nodes: int, phases: int = 1):
        self.nodes, self.phases = nodes, phases
        between = nodes * (phases - 1)
        super().__init__({
            "level": In(nodes), "level_before": In(nodes), "edge": In(nodes),
            "rising": In(nodes), "falling": In(nodes), "more": In(LASTING_BITS),
            "counts": Out(nodes), "rejected": Out(nodes), "looking": Out(1),
            **({"middle": In(between), "twice": Out(between)} if between else {}),
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
        if self.phases == 1:
            m.d.comb += self.counts.eq(counts)
            m.d.sync += self.rejected.eq(rejects)
            return m

        # Several edges within one clock: none but the last can have lasted. If the filter is off, the first active one
        # counts, and each one that another follows is rejected in its place.
        levels = [self.level_before, *(self.middle.word_select(k, every) for k in range(self.phases - 1)), self.level]
        edges = [before ^ level for before, level in pairwise(levels)]
        actives = [edge & ((level & self.rising) | (~level & self.falling))
                   for edge, level in zip(edges, levels[1:], strict=True)]
        is_off = off.replicate(every)
        found = [rejects]
        for k, active in enumerate(actives[:-1]):
            found.append(active & (reduce(or_, actives[k + 1:]) | (reduce(or_, edges[k + 1:]) & ~is_off)))
        m.d.comb += self.counts.eq(Mux(off, reduce(or_, actives), counts))
        m.d.sync += [self.rejected.eq(reduce(or_, found)),
                     self.twice.eq(Cat(at_least(found, k) for k in range(2, self.phases + 1)))]
        return m
