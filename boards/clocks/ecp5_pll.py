"""The phase-locked loops of an ECP5: derive clocks from the oscillator in exact ratios."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from amaranth.hdl import Const, Instance, Module, Signal

from .pll import Pll

__all__ = ["EcpClocks", "EcpPll", "Ratios", "ecp_ratios", "ecp_stages"]

#: Lattice FPGA-DS-02012 (ECP5 family), table "sysCLOCK PLL Timing": range of the VCO, the slowest phase detector,
#: the fastest output.
_ECP_VCO_HZ = (400_000_000, 800_000_000)
_ECP_DETECTOR_HZ_MIN = 10_000_000
_ECP_OUT_HZ_MAX = 400_000_000
_ECP_DIVIDERS = range(1, 129)
#: Its outputs; the first is fed back.
_ECP_OUTPUTS = ("CLKOP", "CLKOS", "CLKOS2", "CLKOS3")


@dataclass(frozen=True)
class Ratios:
    """Dividers: of the reference, of the feedback, of the output that is fed back, of each requested clock."""

    reference: int
    feedback: int
    fed_back: int
    clocks: tuple[int, ...]


def _vcos(clocks: tuple[int, ...]) -> range:
    """VCO frequencies of an ECP5's PLL that these clocks divide, the fastest first."""
    slowest, fastest = _ECP_VCO_HZ
    step = lcm(*clocks)
    return range(fastest // step * step, slowest - 1, -step)


def _candidates(in_hz: int, clocks: tuple[int, ...]) -> Iterator[Ratios]:
    """All divider settings of an ECP5 for exactly these clocks, those with the fastest VCO first."""
    for vco in _vcos(clocks):
        outputs = tuple(vco // hz for hz in clocks)
        if max(outputs) not in _ECP_DIVIDERS or max(clocks) > _ECP_OUT_HZ_MAX:
            continue
        for reference in range(1, in_hz // _ECP_DETECTOR_HZ_MIN + 1):
            for fed_back in _ECP_DIVIDERS:
                feedback, rest = divmod(vco * reference, in_hz * fed_back)
                spare = fed_back in outputs or len(outputs) < len(_ECP_OUTPUTS)
                if not rest and feedback in _ECP_DIVIDERS and spare and vco // fed_back <= _ECP_OUT_HZ_MAX:
                    yield Ratios(reference, feedback, fed_back, outputs)


def ecp_ratios(in_hz: int, clocks: tuple[int, ...]) -> Ratios:
    """The dividers of an ECP5 for exactly these clocks. The first clock is fed back if possible, otherwise a slow one.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly.
    """
    try:
        return max(_candidates(in_hz, clocks), key=lambda r: (r.fed_back == r.clocks[0], -r.reference, r.fed_back))
    except ValueError:
        asked = ", ".join(map(str, clocks))
        raise ValueError(f"an ECP5's PLL cannot make exactly {asked} Hz from {in_hz}") from None


class EcpPll(Pll):
    """The EHXPLLL of an ECP5, up to four clocks; all rise together where their dividers allow it."""

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        super().__init__(in_hz, clocks)
        self.ratios = ecp_ratios(in_hz, tuple(clocks.values()))

    def elaborate(self, platform):
        m = Module()
        ratios = self.ratios
        fed_back = Signal()
        outputs = [(divider, getattr(self, name)) for divider, name in zip(ratios.clocks, self.clocks, strict=True)]
        same = next((output for output in outputs if output[0] == ratios.fed_back), None)
        if same is None:
            outputs = [(ratios.fed_back, fed_back), *outputs]
        else:
            outputs = [same, *(output for output in outputs if output is not same)]
            m.d.comb += fed_back.eq(same[1])
        vco_hz = self.in_hz * ratios.feedback * ratios.fed_back // ratios.reference
        settings: dict[str, object] = {}
        for output, letter, (divider, clock) in zip(_ECP_OUTPUTS, "ABCD", outputs, strict=False):
            settings |= {
                f"a_FREQUENCY_PIN_{output}": f"{vco_hz / divider / 1e6:g}", f"p_OUTDIVIDER_MUX{letter}": f"DIV{letter}",
                f"p_{output}_ENABLE": "ENABLED", f"p_{output}_DIV": divider, f"p_{output}_CPHASE": divider - 1,
                f"p_{output}_FPHASE": 0, f"o_{output}": clock,
            }
        m.submodules.pll = Instance(
            "EHXPLLL", **settings,
            a_FREQUENCY_PIN_CLKI=f"{self.in_hz / 1e6:g}",
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1", a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED",
            p_CLKI_DIV=ratios.reference, p_CLKFB_DIV=ratios.feedback, p_FEEDBK_PATH="CLKOP",
            i_CLKI=self.i, i_CLKFB=fed_back, i_RST=Const(0), i_STDBY=Const(0), i_PHASESEL0=Const(0),
            i_PHASESEL1=Const(0), i_PHASEDIR=Const(0), i_PHASESTEP=Const(0), i_PHASELOADREG=Const(0),
            i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0), o_LOCK=self.locked,
        )
        return m


def ecp_stages(in_hz: int, clocks: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The clocks of one PLL, or of two in a row: those of the first, and those of the second from its clock
    ``between``. Multiples of the first clock stay with it, in phase.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly in this way.
    """
    try:
        ecp_ratios(in_hz, tuple(clocks.values()))
        return clocks, {}
    except ValueError:
        first_hz = next(iter(clocks.values()))
        kept = {name: hz for name, hz in clocks.items() if hz % first_hz == 0}
        rest = {name: hz for name, hz in clocks.items() if name not in kept}
        if not rest:
            raise
    later = tuple(rest.values())
    for vco in _vcos(tuple(kept.values())):
        for divider in reversed(_ECP_DIVIDERS):     # slow, because it passes through the fabric
            between, odd = divmod(vco, divider)
            if not odd and between >= 2 * _ECP_DETECTOR_HZ_MIN and any(_candidates(between, later)) \
                    and any(_candidates(in_hz, (*kept.values(), between))):
                return {**kept, "between": between}, rest
    raise ValueError(f"two PLLs of an ECP5 cannot make exactly {first_hz} and {', '.join(map(str, later))} Hz "
                     f"from {in_hz}")


class EcpClocks(Pll):
    """The clocks of a board, from one PLL of an ECP5 or from two in a row, see :func:`ecp_stages`."""

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        super().__init__(in_hz, clocks)
        self.first, self.second = ecp_stages(in_hz, clocks)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = EcpPll(self.in_hz, self.first)
        m.d.comb += first.i.eq(self.i)
        locked = first.locked
        made = {name: getattr(first, name) for name in self.first}
        if self.second:
            m.submodules.second = second = EcpPll(self.first["between"], self.second)
            m.d.comb += second.i.eq(first.between)
            locked &= second.locked
            made |= {name: getattr(second, name) for name in self.second}
        m.d.comb += [self.locked.eq(locked), *(getattr(self, name).eq(made[name]) for name in self.clocks)]
        return m
