"""Phase-locked loops: two clocks from the oscillator's, in an exact ratio."""

from dataclasses import dataclass

from amaranth.hdl import Const, Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PLLS", "EcpPll", "Ratios", "ecp_ratios"]

#: Lattice FPGA-DS-02012 (ECP5 family), table "sysCLOCK PLL Timing": the oscillator inside, the slowest phase detector.
_ECP_VCO_HZ = (400_000_000, 800_000_000)
_ECP_DETECTOR_HZ_MIN = 10_000_000
_ECP_DIVIDERS = range(1, 129)


@dataclass(frozen=True)
class Ratios:
    """Dividers: of the reference, of the feedback, of both outputs."""

    reference: int
    feedback: int
    capture: int
    link: int


def ecp_ratios(in_hz: int, capture_hz: int, link_hz: int) -> Ratios:
    """The dividers of an ECP5 for exactly these clocks, with the oscillator inside as fast as it goes.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly.
    """
    slowest, fastest = _ECP_VCO_HZ
    for reference in _ECP_DIVIDERS:
        if in_hz < reference * _ECP_DETECTOR_HZ_MIN:
            break
        feedback, rest = divmod(capture_hz * reference, in_hz)
        if rest or feedback not in _ECP_DIVIDERS:
            continue
        for capture in reversed(_ECP_DIVIDERS):
            vco = capture_hz * capture
            link, rest = divmod(vco, link_hz)
            if slowest <= vco <= fastest and not rest and link in _ECP_DIVIDERS:
                return Ratios(reference, feedback, capture, link)
    raise ValueError(f"an ECP5's PLL cannot make exactly {capture_hz} and {link_hz} Hz from {in_hz}")


class EcpPll(wiring.Component):
    """The EHXPLLL of an ECP5, fed back from its first output.

    Parameters
    ----------
    in_hz, capture_hz, link_hz : reached exactly.

    Members
    -------
    i : the oscillator.
    capture, link : the clocks.
    locked : both are in step with it.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly.
    """

    def __init__(self, in_hz: int, capture_hz: int, link_hz: int):
        self.in_hz, self.capture_hz, self.link_hz = in_hz, capture_hz, link_hz
        self.ratios = ecp_ratios(in_hz, capture_hz, link_hz)
        super().__init__({"i": In(1), "capture": Out(1), "link": Out(1), "locked": Out(1)})

    def elaborate(self, platform):
        m = Module()
        ratios = self.ratios
        fed_back = Signal()
        m.d.comb += fed_back.eq(self.capture)
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_FREQUENCY_PIN_CLKI=f"{self.in_hz / 1e6:g}", a_FREQUENCY_PIN_CLKOP=f"{self.capture_hz / 1e6:g}",
            a_FREQUENCY_PIN_CLKOS=f"{self.link_hz / 1e6:g}",
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1", a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED",
            p_OUTDIVIDER_MUXA="DIVA", p_OUTDIVIDER_MUXB="DIVB", p_CLKOP_ENABLE="ENABLED", p_CLKOS_ENABLE="ENABLED",
            p_CLKI_DIV=ratios.reference, p_CLKFB_DIV=ratios.feedback, p_FEEDBK_PATH="CLKOP",
            p_CLKOP_DIV=ratios.capture, p_CLKOP_CPHASE=ratios.capture // 2, p_CLKOP_FPHASE=0,
            p_CLKOS_DIV=ratios.link, p_CLKOS_CPHASE=ratios.link // 2, p_CLKOS_FPHASE=0,
            i_CLKI=self.i, i_CLKFB=fed_back, i_RST=Const(0), i_STDBY=Const(0), i_PHASESEL0=Const(0),
            i_PHASESEL1=Const(0), i_PHASEDIR=Const(0), i_PHASESTEP=Const(0), i_PHASELOADREG=Const(0),
            i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0),
            o_CLKOP=self.capture, o_CLKOS=self.link, o_LOCK=self.locked,
        )
        return m


#: By the family of a board.
PLLS = {"ecp5": EcpPll}
