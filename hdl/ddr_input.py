"""DDR input: levels at both edges of the clock, for time to half a clock."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DdrInput"]


class DdrInput(wiring.Component):
    """First flip-flops of the strobes, two for each: one at the falling and one at the rising edge.

    On an FPGA that has them these are the flip-flops of a DDR input cell; written out as here they
    may be placed anywhere, and the two halves of a clock are as long as routing leaves them.
    Behind it stands a :class:`~.synchronizer.Synchronizer` with ``half_clock`` and without a
    ``pad_stage`` of its own; data need one flip-flop beside it.

    Parameters
    ----------
    width : number of strobes.

    Members
    -------
    pads : raw levels.
    level : of clock edge k, after clock edge k.
    early : of half a clock before it, at the same time.
    """

    def __init__(self, width: int):
        self.width = width
        super().__init__({"pads": In(width), "level": Out(width), "early": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.domains.half = half = ClockDomain(local=True, clk_edge="neg", reset_less=True)
        falling = Signal(self.width)
        m.d.comb += half.clk.eq(ClockSignal())
        m.d.half += falling.eq(self.pads)
        m.d.sync += [self.early.eq(falling), self.level.eq(self.pads)]
        return m
