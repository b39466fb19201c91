"""The phase-locked loop of Lattice's iCE40: one clock derived from the oscillator."""

from dataclasses import dataclass

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal

from .pll import Pll

__all__ = ["Ice40Pll", "Ice40Ratios", "ice40_ratios", "made_hz"]

#: Lattice FPGA-DS-02029 (iCE40 LP/HX) and FPGA-DS-02008 (iCE40 UltraPlus), tables "sysCLOCK PLL Timing": ranges of
#: the phase detector, the VCO, the output.
_DETECTOR_HZ = (10_000_000, 133_000_000)
_VCO_HZ = (533_000_000, 1_066_000_000)
_OUT_HZ = (16_000_000, 275_000_000)
#: Lattice FPGA-TN-02052, "iCE40 sysCLOCK PLL Design and Usage Guide": DIVR + 1, DIVF + 1, DIVQ.
_REFERENCES, _FEEDBACKS, _OUTPUTS = range(1, 17), range(1, 129), range(1, 7)
#: Same guide, FILTER_RANGE: lowest frequency of the phase detector for each setting, in MHz.
_FILTERS = ((101, 6), (66, 5), (44, 4), (26, 3), (17, 2), (0, 1))


@dataclass(frozen=True)
class Ice40Ratios:
    """Dividers of the reference and of the feedback; the output is divided by two to the power of ``output``."""

    reference: int
    feedback: int
    output: int

    def filter_range(self, in_hz: int) -> int:
        """FILTER_RANGE: the loop filter for the phase detector's frequency."""
        detector = in_hz // self.reference // 1_000_000
        return next(value for low, value in _FILTERS if detector >= low)


def ice40_ratios(in_hz: int, hz: int) -> Ice40Ratios:
    """The dividers for exactly this clock, with the fastest phase detector.

    Raises
    ------
    ValueError
        for a frequency that cannot be reached exactly.
    """
    for reference in _REFERENCES if _OUT_HZ[0] <= hz <= _OUT_HZ[1] else ():
        for output in _OUTPUTS:
            feedback, rest = divmod((hz << output) * reference, in_hz)
            if not rest and feedback in _FEEDBACKS and _VCO_HZ[0] <= hz << output <= _VCO_HZ[1] \
                    and _DETECTOR_HZ[0] * reference <= in_hz <= _DETECTOR_HZ[1] * reference:
                return Ice40Ratios(reference, feedback, output)
    raise ValueError(f"an iCE40's PLL cannot make exactly {hz} Hz from {in_hz}")


def made_hz(clocks: dict[str, int]) -> int:
    """Output frequency of the PLL for these clocks: their frequency, or twice that if it is too slow for the output.

    Raises
    ------
    ValueError
        for clocks that differ.
    """
    if len(set(clocks.values())) != 1:
        raise ValueError(f"an iCE40's PLL makes one clock, not {', '.join(map(str, clocks.values()))} Hz")
    hz = next(iter(clocks.values()))
    return hz if hz >= _OUT_HZ[0] else 2 * hz


class Ice40Pll(Pll):
    """The SB_PLL40 of an iCE40: one frequency for any number of clocks."""

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        super().__init__(in_hz, clocks)
        self.hz = made_hz(clocks)
        self.ratios = ice40_ratios(in_hz, self.hz)

    def elaborate(self, platform):
        m = Module()
        ratios = self.ratios
        first, *others = self.clocks
        made = Signal()
        # On an UltraPlus the oscillator's pin belongs to the PLL, and no other logic can use it then.
        pad = self.own_pin and platform.device.startswith("iCE40UP")
        m.submodules.pll = Instance(
            "SB_PLL40_PAD" if pad else "SB_PLL40_CORE",
            a_FREQUENCY_PIN_PLLOUTGLOBAL=f"{self.hz / 1e6:g}",
            p_FEEDBACK_PATH="SIMPLE", p_PLLOUT_SELECT="GENCLK",
            p_DIVR=Const(ratios.reference - 1, 4), p_DIVF=Const(ratios.feedback - 1, 7), p_DIVQ=Const(ratios.output, 3),
            p_FILTER_RANGE=Const(ratios.filter_range(self.in_hz), 3),
            **{"i_PACKAGEPIN" if pad else "i_REFERENCECLK": self.i},
            i_RESETB=Const(1), i_BYPASS=Const(0), o_PLLOUTGLOBAL=made, o_LOCK=self.locked)
        if self.hz != self.clocks[first]:
            # Halved by a flip-flop.
            m.domains.made = ClockDomain(local=True, reset_less=True)
            m.d.comb += ClockSignal("made").eq(made)
            half = Signal()
            m.d.made += half.eq(~half)
            m.d.comb += getattr(self, first).eq(half)
        else:
            m.d.comb += getattr(self, first).eq(made)
        m.d.comb += [getattr(self, name).eq(getattr(self, first)) for name in others]
        return m
