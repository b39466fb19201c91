"""Specification of the time base: windows are as long as they should be."""

from amaranth.hdl import Array, Assert, Module, Mux, Signal
from hypermon.hdl.layout import Geometry, Window
from hypermon.hdl.timebase import Timebase

from .prover import Spec

__all__ = ["WindowLengthSpec"]


class WindowLengthSpec(Spec):
    """Every window has as many clocks as was set, the first one too; and time goes on for ever.

    The environment promises that the length is set a clock before time starts, and then stays.
    """

    def __init__(self, timebase=Timebase):
        super().__init__()
        self.timebase = timebase

    def specify(self, m: Module) -> None:
        m.submodules.dut = dut = self.timebase(Geometry())
        chosen = self.constant(m, 2, "window")
        lengths = [Geometry().window_clocks(w) for w in Window]
        length, clock = Signal(range(max(lengths) + 1)), Signal(range(max(lengths) + 1))
        told, ran = Signal(), Signal()
        m.d.comb += [
            dut.start.eq(self.free(1, "start") & told), dut.window.eq(chosen), length.eq(Array(lengths)[chosen])]
        m.d.sync += [told.eq(1), ran.eq(dut.running)]
        with m.If(dut.running):
            m.d.sync += clock.eq(Mux(dut.end, 0, clock + 1))
        m.d.comb += [
            Assert(dut.end == (dut.running & (clock == length - 1)), "each window is as long as was set"),
            Assert(~ran | dut.running, "time goes on"),
        ]
