"""Common interface of phase-locked loops: clocks derived from the oscillator in exact ratios."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pll"]


class Pll(wiring.Component):
    """A phase-locked loop; each family of FPGAs has its own subclass.

    Parameters
    ----------
    in_hz : frequency of ``i``.
    clocks : names to Hz, reached exactly; each is a member.

    Members
    -------
    i : the reference. On an iCE40 UltraPlus it comes from the PLL's own pin, unless ``own_pin`` is cleared before
        elaboration; other families make no difference.
    locked : all clocks are in phase with it.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly, or more clocks than the family has.
    """

    own_pin = True

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        self.in_hz, self.clocks = in_hz, clocks
        super().__init__({"i": In(1), "locked": Out(1), **dict.fromkeys(clocks, Out(1))})
