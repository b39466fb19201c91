"""Specifications of what counts and keeps out: rate limit, glitch filter; with small numbers."""

from itertools import pairwise

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal
from hypermon.hdl.input.glitch_filter import LASTING_BITS, GlitchFilter
from hypermon.hdl.input.rate_limit import RateLimit

from ..prover import Spec, exposing, opened, using

__all__ = ["GlitchFilterSpec", "RateLimitSpec"]


class RateLimitSpec(Spec):
    """In an interval as many items of a node pass as is set, and no more; which they are does not depend on others.

    Intervals begin so many clocks after the window's number has changed. The number may skip. Promised is that
    nothing is offered until the settings have stood for some clocks.
    """

    #: Clocks from a change of the number to the new interval.
    LATE = 4

    def __init__(self, rate_limit=RateLimit, nodes=2):
        super().__init__()
        self.rate_limit, self.nodes = using(rate_limit, ITEMS_BITS=2, SPAN_BITS=1), nodes

    def specify(self, m: Module) -> None:
        m.submodules.dut = dut = self.rate_limit(self.nodes)
        items, span = self.constant(m, 2, "items"), self.constant(m, 1, "span")
        now, ready = Signal(4), Signal(8)
        offer = self.free(self.nodes, "offer") & ready[-1].replicate(self.nodes)
        m.d.sync += [now.eq(now + self.free(2, "step")), ready.eq(Cat(Const(1, 1), ready))]
        m.d.comb += [dut.items.eq(items), dut.span.eq(span), dut.now.eq(now), dut.offer.eq(offer)]
        past = [now >> span]
        for k in range(self.LATE + 1):
            past.append(kept := Signal(4, name=f"interval{k}"))
            m.d.sync += kept.eq(past[-2])
        begins = past[self.LATE] != past[self.LATE + 1]
        for n in range(self.nodes):
            passed = Signal(3, name=f"passed{n}")
            here = Mux(begins, 0, passed)
            m.d.sync += passed.eq(here + (offer[n] & dut.allow[n] & (items != 0)))
            m.d.comb += Assert(~ready[-1] | (dut.allow[n] == ((items == 0) | (here < items))), "so many, and no more")


class GlitchFilterSpec(Spec):
    """A level counts when it has lasted, so many clocks after its edge; every active edge counts or is rejected, but
    for the one that is being looked at. With several samples per clock that is so of all edges that a clock may have.

    Promised is that the level is 0 at first, until the settings have stood for some clocks.
    """

    induction = 3

    def __init__(self, glitch=GlitchFilter, phases=1):
        super().__init__()
        self.glitch, self.signals = exposing(glitch)
        self.phases = phases

    def specify(self, m: Module) -> None:
        dut = self.glitch(1, self.phases)
        m.submodules.dut = opened(dut)
        more = self.constant(m, LASTING_BITS, "more")
        rising, falling = self.constant(m, 1, "rising"), self.constant(m, 1, "falling")
        ready, before = Signal(4), Signal()
        level = self.free(1, "level") & ready[-1]
        middle = [self.free(1, f"middle{k}") & ready[-1] for k in range(self.phases - 1)]
        levels = [before, *middle, level]
        edges = [old ^ new for old, new in pairwise(levels)]
        actives = [found & Mux(new, rising, falling) for found, new in zip(edges, levels[1:], strict=True)]
        edge = Cat(edges).any()
        m.d.sync += [ready.eq(Cat(Const(1, 1), ready)), before.eq(level)]
        if self.phases > 1:
            m.d.comb += dut.middle.eq(Cat(middle))
        m.d.comb += [
            dut.level.eq(level), dut.level_before.eq(before), dut.edge.eq(edge), dut.rising.eq(rising),
            dut.falling.eq(falling), dut.more.eq(more),
        ]
        n = self.signals
        active = Mux(level, rising, falling)
        # Clocks without an edge, as far as they matter.
        lasted = Signal(range((1 << LASTING_BITS) + 1), init=1 << LASTING_BITS)
        known = Signal()
        here = Mux(edge, 0, lasted)
        is_on = more != 0
        counts = Mux(is_on, (here == more) & (level != known) & active & ready[-1], Cat(actives).any())
        looked_at, rejected, counted = Signal(), Signal(3), Signal()     # an active edge is being
        rejects = Signal(3)
        # Of the edges within this clock all but the last, or, if all count at once, all active ones but one.
        within = sum((a & Cat(edges[k + 1:]).any() for k, a in enumerate(actives[:-1])), Const(0, 1))
        several = sum(actives, Const(0, 1))
        m.d.comb += rejects.eq((looked_at & (edge | ((here == more) & (level == known))))
                               + Mux(is_on, within, Mux(several == 0, 0, several - 1)))
        m.d.sync += [
            lasted.eq(Mux(here > more, here, here + 1)), known.eq(Mux(here == more, level, known)),
            rejected.eq(rejects), counted.eq(counts),
            looked_at.eq(Mux(edge, active & is_on, looked_at & (here != more))),
        ]
        ledger = Signal(4)      # active edges, less pulses, less rejected
        m.d.sync += ledger.eq(ledger + several - counts - rejects)
        told = dut.rejected + (sum(iter(dut.twice)) if self.phases > 1 else 0)
        m.d.comb += [
            Assert(dut.counts == counts, "a level counts when it has lasted, then, and once"),
            Assert(told == rejected, "and what did not last is rejected"),
            Assert(ledger == looked_at, "active edges = pulses + rejected"),
            Assert(~(dut.rejected & counted & (is_on | (self.phases == 1))), "never both"),
            Assert(~looked_at | dut.looking, "says that it looks"),
            # How its numbers hang together.
            Assert(Cat(n["left"]) == Mux(lasted > more, 0, more - lasted + 1)[:LASTING_BITS]), Assert(lasted != 0),
            Assert(n["last"] == ((lasted == more) & ready[0])), Assert(n["known"] == known),
            Assert(~ready[0] | ((n["off"] == (more == 0)) & (n["one"] == (more == 1)))),
        ]
