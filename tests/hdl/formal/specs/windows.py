"""Specification of the time base: windows are as long as they should be."""

from amaranth.hdl import Array, Assert, Module, Mux, Signal
from hypermon.hdl.layout import Geometry, Window
from hypermon.hdl.time.timebase import Timebase

from ..prover import Spec

__all__ = ["DisciplineSpec", "WindowLengthSpec"]


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


class DisciplineSpec(Spec):
    """A time base that is led never steps back, and does what it is asked for, once for each request and nothing
    else: a window that is a clock longer or shorter, or a number that is left out.

    The environment may ask for anything at any time, both at once too, and take it back. Of the window's
    number the lower bits are looked at; the others change only by a carry, as they do in a time base that
    is not led.
    """

    def __init__(self, timebase=Timebase, bits=16):
        super().__init__()
        self.timebase, self.bits = timebase, bits

    def specify(self, m: Module) -> None:
        m.submodules.dut = dut = self.timebase(Geometry(), True)
        chosen = self.constant(m, 2, "window")
        lengths = [Geometry().window_clocks(w) for w in Window]
        clock, length = Signal(range(max(lengths) + 2)), Signal(range(max(lengths) + 2))
        told = Signal(2)
        m.d.comb += [
            dut.start.eq(self.free(1, "start") & told[1]), dut.window.eq(chosen),
            dut.longer.eq(self.free(1, "longer")), dut.shorter.eq(self.free(1, "shorter")),
        ]
        m.d.sync += told.eq(told << 1 | 1)
        usual = Array(lengths)[chosen]
        before, stepped, skips = Signal(self.bits), Signal(), Signal()
        m.d.sync += [
            before.eq(dut.now), stepped.eq(dut.end),
            skips.eq(dut.corrected & ~dut.longer & (usual == 1)),
        ]
        # The length of the next window is settled at the end of this one.
        with m.If(dut.end):
            m.d.sync += [clock.eq(0), length.eq(usual)]
            with m.If(dut.corrected & dut.longer):
                m.d.sync += length.eq(usual + 1)
            with m.Elif(dut.corrected & (usual != 1)):
                m.d.sync += length.eq(usual - 1)
        with m.Elif(dut.running):
            m.d.sync += clock.eq(clock + 1)
        with m.Else():
            m.d.sync += length.eq(usual)
        step = (dut.now[:self.bits] - before)[:self.bits]
        m.d.comb += [
            Assert(step == Mux(stepped, Mux(skips, 2, 1), 0), "time goes on by windows, and never back"),
            Assert(~dut.corrected | dut.longer | dut.shorter, "nobody asked"),
            Assert(~dut.corrected | dut.end, "at the end of a window"),
            Assert(~(dut.running & told[1]) | (dut.end == (clock == length - 1)), "as long as it should be"),
        ]
