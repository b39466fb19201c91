"""The phase-locked loop of Xilinx' 7 series: derives clocks from the oscillator in exact ratios."""

from dataclasses import dataclass
from math import lcm

from amaranth.hdl import Const, Instance, Module, Signal

from .pll import Pll

__all__ = ["XilinxPll", "XilinxRatios", "xilinx_ratios"]

#: Xilinx DS181 (Artix-7), table "PLL Specification", the slowest speed grade: range of the VCO, the slowest phase
#: detector, the fastest output.
_VCO_HZ = (800_000_000, 1_600_000_000)
_DETECTOR_HZ_MIN = 19_000_000
_OUT_HZ_MAX = 464_000_000
#: Xilinx UG953, PLLE2_BASE: dividers of the reference and the outputs, and the multiplier.
_REFERENCES, _OUTPUTS, _MULTIPLIERS = range(1, 57), range(1, 129), range(2, 65)
_CLOCKS = 6


@dataclass(frozen=True)
class XilinxRatios:
    """Divider of the reference, multiplier, and divider of the result for each clock."""

    reference: int
    multiplier: int
    clocks: tuple[int, ...]


def xilinx_ratios(in_hz: int, clocks: tuple[int, ...]) -> XilinxRatios:
    """The ratios for exactly these clocks, with the fastest phase detector and then the fastest VCO.

    Raises
    ------
    ValueError
        for frequencies that cannot be reached exactly.
    """
    slowest, fastest = _VCO_HZ
    step = lcm(*clocks)
    for reference in _REFERENCES if max(clocks) <= _OUT_HZ_MAX and len(clocks) <= _CLOCKS else ():
        for vco in range(fastest // step * step, slowest - 1, -step):
            multiplier, rest = divmod(vco * reference, in_hz)
            outputs = tuple(vco // hz for hz in clocks)
            if not rest and multiplier in _MULTIPLIERS and max(outputs) in _OUTPUTS \
                    and in_hz >= reference * _DETECTOR_HZ_MIN:
                return XilinxRatios(reference, multiplier, outputs)
    raise ValueError(f"a PLL of the 7 series cannot make exactly {', '.join(map(str, clocks))} Hz from {in_hz}")


class XilinxPll(Pll):
    """The PLLE2_BASE of a 7-series part, up to six clocks, each on a global buffer; all of them rise together."""

    def __init__(self, in_hz: int, clocks: dict[str, int]):
        super().__init__(in_hz, clocks)
        self.ratios = xilinx_ratios(in_hz, tuple(clocks.values()))

    def elaborate(self, platform):
        m = Module()
        fed_back = Signal()
        outputs: dict[str, object] = {}
        for index, (name, divider) in enumerate(zip(self.clocks, self.ratios.clocks, strict=True)):
            made = Signal(name=f"{name}_made")
            m.submodules[f"buffer_{name}"] = Instance("BUFG", i_I=made, o_O=getattr(self, name))
            outputs |= {f"p_CLKOUT{index}_DIVIDE": divider, f"o_CLKOUT{index}": made}
        m.submodules.pll = Instance(
            "PLLE2_BASE", p_BANDWIDTH="OPTIMIZED", p_CLKIN1_PERIOD=1e9 / self.in_hz, p_STARTUP_WAIT="FALSE",
            p_DIVCLK_DIVIDE=self.ratios.reference, p_CLKFBOUT_MULT=self.ratios.multiplier, **outputs,
            i_CLKIN1=self.i, i_CLKFBIN=fed_back, o_CLKFBOUT=fed_back, i_RST=Const(0), i_PWRDWN=Const(0),
            o_LOCKED=self.locked,
        )
        return m
