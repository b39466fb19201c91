"""The phase-locked loop of Gowin's GW1N and GW2A: a clock derived from the oscillator, and an even fraction of it."""

from dataclasses import dataclass

from amaranth.hdl import Const, Instance, Module, Signal

from .pll import Pll

__all__ = ["GowinPll", "GowinRatios", "gowin_ratios", "ordered"]

#: Gowin DS117 (GW1NR) and DS226 (GW2AR), tables "PLL switching characteristics", the slower speed grade of both:
#: ranges of the VCO, the phase detector, the output.
_VCO_HZ = (500_000_000, 1_200_000_000)
_DETECTOR_HZ = (3_000_000, 400_000_000)
_OUT_HZ_MAX = 600_000_000
#: Gowin UG286, "Gowin Clock User Guide", table of rPLL's parameters: dividers of the reference and of the feedback,
#: between the VCO and the output, and after the output.
_DIVIDERS = range(1, 65)
_OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)
_FRACTIONS = (1, *range(2, 129, 2))     # 1: the faster clock itself


@dataclass(frozen=True)
class GowinRatios:
    """Dividers: of the reference, of the feedback, between VCO and output, from there to the slower clock."""

    reference: int
    feedback: int
    output: int
    fraction: int


def gowin_ratios(in_hz: int, fast_hz: int, slow_hz: int) -> GowinRatios:
    """The dividers for exactly these clocks, with the fastest phase detector and VCO.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly; the slower one is an even fraction of the faster, or the same.
    """
    fraction, uneven = divmod(fast_hz, slow_hz)
    for reference in _DIVIDERS if not uneven and fraction in _FRACTIONS and fast_hz <= _OUT_HZ_MAX else ():
        feedback, rest = divmod(fast_hz * reference, in_hz)
        if rest or feedback not in _DIVIDERS or not _DETECTOR_HZ[0] <= in_hz / reference <= _DETECTOR_HZ[1]:
            continue
        for output in reversed(_OUTPUT_DIVIDERS):
            if _VCO_HZ[0] <= fast_hz * output <= _VCO_HZ[1]:
                return GowinRatios(reference, feedback, output, fraction)
    raise ValueError(f"a Gowin PLL cannot make exactly {fast_hz} and {slow_hz} Hz from {in_hz}")


def ordered(clocks: dict[str, int]) -> tuple[str, str]:
    """Names of the faster clock, which the PLL generates directly, and of the slower one.

    Raises
    ------
    ValueError
        if the number of clocks is not two.
    """
    if len(clocks) != 2:
        raise ValueError(f"a Gowin PLL makes two clocks, not {len(clocks)}")
    slow, fast = sorted(clocks, key=clocks.__getitem__)
    return fast, slow


class GowinPll(Pll):
    """The rPLL of a GW1N or GW2A: two clocks, one an even fraction of the other, or one clock under both names."""

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        super().__init__(in_hz, clocks)
        self.fast, self.slow = ordered(clocks)
        self.ratios = gowin_ratios(in_hz, clocks[self.fast], clocks[self.slow])

    def elaborate(self, platform):
        m = Module()
        ratios = self.ratios
        fast, slow = getattr(self, self.fast), getattr(self, self.slow)
        divided, divider = Signal(), max(ratios.fraction, _FRACTIONS[1])
        m.d.comb += slow.eq(fast if ratios.fraction == 1 else divided)
        m.submodules.pll = Instance(
            "rPLL", a_FREQUENCY_PIN_CLKOUT=f"{self.clocks[self.fast] / 1e6:g}",
            a_FREQUENCY_PIN_CLKOUTD=f"{self.clocks[self.fast] / 1e6 / divider:g}",
            p_FCLKIN=f"{self.in_hz / 1e6:g}", p_DEVICE=platform.family,
            p_IDIV_SEL=ratios.reference - 1, p_FBDIV_SEL=ratios.feedback - 1, p_ODIV_SEL=ratios.output,
            p_DYN_SDIV_SEL=divider, p_DYN_IDIV_SEL="false", p_DYN_FBDIV_SEL="false", p_DYN_ODIV_SEL="false",
            p_DYN_DA_EN="false", p_PSDA_SEL="0000", p_DUTYDA_SEL="1000",
            p_CLKFB_SEL="internal", p_CLKOUT_BYPASS="false", p_CLKOUTP_BYPASS="false", p_CLKOUTD_BYPASS="false",
            p_CLKOUTD_SRC="CLKOUT", p_CLKOUTD3_SRC="CLKOUT",
            i_CLKIN=self.i, i_CLKFB=Const(0), i_RESET=Const(0), i_RESET_P=Const(0),
            i_IDSEL=Const(0, 6), i_FBDSEL=Const(0, 6), i_ODSEL=Const(0, 6),
            i_PSDA=Const(0, 4), i_DUTYDA=Const(0, 4), i_FDLY=Const(0, 4),
            o_CLKOUT=fast, o_CLKOUTD=divided, o_LOCK=self.locked,
        )
        return m
