"""The gear of an ECP5: an edge clock for input cells that take four samples per clock, and the clock, half as fast."""

from amaranth.hdl import ClockDomain, Elaboratable, Instance, Module, Signal
from amaranth.lib.cdc import FFSynchronizer

__all__ = ["EcpGear"]

#: Steps of the start, each of the number of oscillator clocks given below: reset and stopped, stopped, running.
_STEP_BITS = 3


class EcpGear(Elaboratable):
    """Divides the edge clock by two, in a known phase, and starts all cells of the gear with the same edge.

    Lattice FPGA-TN-02035, GDDRX2_RX: the edge clock is stopped (ECLKSYNCB) while the reset of the divider (CLKDIVF) and
    of the input cells (IDDRX2F) is released. ALIGNWD of both stays unconnected: the open tools refuse a constant there.

    All input cells have to be at the side of the part, left or right, at which the edge clock is.

    Parameters
    ----------
    clock_hz : frequency of ``clock``.

    Members
    -------
    fast : twice the clock, from a PLL.
    oscillator : a clock that runs before, for the order of the start.
    locked : the PLL has locked.
    edge, clock : the edge clock and the clock.
    reset : of the input cells.
    ready : both clocks run.
    """

    def __init__(self, clock_hz: int):
        self.clock_hz = clock_hz
        self.fast = Signal()
        self.oscillator = Signal()
        self.locked = Signal()
        self.edge = Signal()
        self.clock = Signal()
        self.reset = Signal(init=1)
        self.ready = Signal()

    def elaborate(self, platform):
        m = Module()
        m.domains.start = start = ClockDomain(local=True, reset_less=True)
        locked, stop = Signal(), Signal(init=1)
        time = Signal(_STEP_BITS + 2)
        m.submodules.lock = FFSynchronizer(self.locked, locked, o_domain="start")
        step = time[_STEP_BITS:]
        m.d.comb += start.clk.eq(self.oscillator)
        m.d.start += [self.reset.eq(step == 0), stop.eq(step <= 1), self.ready.eq(locked & (step == 3))]
        with m.If(~locked):
            m.d.start += time.eq(0)
        with m.Elif(~time.all()):
            m.d.start += time.eq(time + 1)
        m.submodules.sync = Instance("ECLKSYNCB", i_ECLKI=self.fast, i_STOP=stop, o_ECLKO=self.edge)
        m.submodules.divider = Instance(
            "CLKDIVF", p_DIV="2.0", a_FREQUENCY_PIN_CDIVX=f"{self.clock_hz / 1e6:g}", i_CLKI=self.edge,
            i_RST=self.reset, o_CDIVX=self.clock)
        return m
