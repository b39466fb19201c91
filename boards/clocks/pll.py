"""A phase-locked loop, of whatever family: clocks from the oscillator's, in exact ratios."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pll"]


class Pll(wiring.Component):
    """A phase-locked loop; a class of its own for each family of FPGAs makes it.

    Parameters
    ----------
    in_hz : of ``i``.
    clocks : names to Hz, reached exactly; each is a member.

    Members
    -------
    i : the reference.
    locked : all are in step with it.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly, or more clocks than the family has.
    """

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        self.in_hz, self.clocks = in_hz, clocks
        super().__init__({"i": In(1), "locked": Out(1), **dict.fromkeys(clocks, Out(1))})
