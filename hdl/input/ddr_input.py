"""DDR input: samples levels at both clock edges, for half-clock time resolution (section 6, finer time)."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DdrInput"]


class DdrInput(wiring.Component):
    """Two flip-flops in a row for each half of the clock: one pair samples a strobe at the falling edge, the other at
    the rising edge. A DDR input cell has the same structure (Lattice FPGA-TN-02035, IDDRX1F: ``Q0`` is ``level``;
    ``Q1`` is ``early``, one clock sooner).

    Written as logic, as here, the flip-flops can be placed anywhere, and routing determines how long the two halves of
    a clock are. A :class:`~.strobe_synchronizer.StrobeSynchronizer` with two ``phases`` and without its own
    ``pad_stage`` follows and accepts both signals unchanged; data need one flip-flop in parallel.

    Parameters
    ----------
    width : number of strobes.

    Members
    -------
    pads : raw levels.
    level : levels at clock edge k, valid after clock edge k + 1.
    early : levels half a clock before them, valid at the same time.
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
