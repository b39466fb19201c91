"""A bare iCE40HX1K in its package of 144 pins, for a regeneration board of one's own: pins have their numbers as names.
"""

from amaranth.vendor import LatticeICE40Platform

__all__ = ["BareHX1K"]


class BareHX1K(LatticeICE40Platform):
    """The part alone, without connectors and without a clock."""

    device = "iCE40HX1K"
    package = "TQ144"
    default_clk = None
    resources = ()
    connectors = ()
