"""Unbounded proofs of what counts and keeps out, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.input.glitch_filter import GlitchFilter
from hypermon.hdl.input.rate_limit import RateLimit

from .prover import broken, proofs
from .specs.counting import GlitchFilterSpec, RateLimitSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "rate limit": RateLimitSpec,
    "glitch filter": GlitchFilterSpec,
    "glitch filter, half clocks": lambda: GlitchFilterSpec(phases=2),
    "glitch filter, quarter clocks": lambda: GlitchFilterSpec(phases=4),
}

REFUTED = {
    "rate limit, one too many": lambda: RateLimitSpec(
        broken(RateLimit, ("last.eq(self.items - 1)", "last.eq(self.items)"))),
    "rate limit, nodes count together": lambda: RateLimitSpec(
        broken(RateLimit, ("counted(passed, passes)", "counted(passed, passes[0].replicate(self.nodes))"))),
    "rate limit, a skip is no new interval": lambda: RateLimitSpec(
        broken(RateLimit, ("(self.now ^ before) & counts", "(self.now ^ before) & counts & -counts"))),
    "glitch filter, counts a clock early": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("(~self.edge & two)", "(~self.edge & left[1])"))),
    "glitch filter, a runt is not rejected": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("| (last & ~self.edge & ~(self.level ^ known))", ""))),
    "glitch filter, an edge back counts": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("(self.level & ~known & self.rising)", "(self.level & self.rising)"))),
    "glitch filter, a runt between two clock edges is not rejected": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("self.rejected.eq(reduce(or_, found))", "self.rejected.eq(rejects)")), phases=2),
    "glitch filter, two that are rejected at once count as one": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("self.twice.eq(Cat(at_least(found, k) for k in range(2, self.phases + 1)))",
                              "self.twice.eq(0)")), phases=2),
    "glitch filter, four that are rejected at once count as three": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("for k in range(2, self.phases + 1)", "for k in range(2, self.phases)")), phases=4),
    "glitch filter, an edge between two others counts": lambda: GlitchFilterSpec(
        broken(GlitchFilter, ("reduce(or_, edges[k + 1:])", "edges[-1]")), phases=4),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
