"""DDR input: levels at both edges of the clock, for time to half a clock (section 6, finer time)."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DdrInput"]


class DdrInput(wiring.Component):
    """Two flip-flops in a row for each half of the clock, that of a strobe at the falling edge and that at the rising
    one, as a DDR input cell has them (Lattice FPGA-TN-02035, IDDRX1F: ``Q0`` is ``level``, ``Q1`` ``early`` a clock
    sooner).

    Written out as here they may be placed anywhere, and the two halves of a clock are as long as routing leaves
    them. Behind it stands a :class:`~.synchronizer.Synchronizer` with ``half_clock`` and without a ``pad_stage`` of
    its own, which takes both as they are; data need one flip-flop beside it.

    Parameters
    ----------
    width : number of strobes.

    Members
    -------
    pads : raw levels.
    level : of clock edge k, after clock edge k + 1.
    early : of half a clock before it, at the same time.
    """

    def __init__(self, width: int):
        self.width = width
        super().__init__({"pads": In(width), "level": Out(width), "early": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.domains.half = half = ClockDomain(local=True, clk_edge="neg", reset_less=True)
        falling = Signal(self.width)
        first = [Signal(self.width, name=f"first{k}") for k in range(2)]
        m.d.comb += half.clk.eq(ClockSignal())
        m.d.half += falling.eq(self.pads)
        m.d.sync += [first[0].eq(falling), first[1].eq(self.pads), self.early.eq(first[0]), self.level.eq(first[1])]
        return m
