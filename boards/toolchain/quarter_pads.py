"""Input cells of an ECP5 that take four samples of a strobe per clock, and the pin whose edges check them."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io

__all__ = ["DELAY_TAPS", "EDGE_HZ", "PhaseSource", "QuarterInput"]

#: Taps of 25 ps by which a strobe is delayed in its cell. The edge clock samples strobes before the clock's tree has
#: brought its edge to the flip-flops of the data; only a board shows by how much.
DELAY_TAPS = 0
#: Edges per second at the pin ``phase_out``, nominally: the part's own oscillator, divided.
_OSCILLATOR_HZ, _DIVIDER, _EDGE_CLOCKS = 310_000_000, 16, 1024
EDGE_HZ = _OSCILLATOR_HZ / _DIVIDER / _EDGE_CLOCKS


class QuarterInput(Elaboratable):
    """DELAYG and IDDRX2F of one strobe.

    The cell gives four samples per clock, Q0 the first. By the vendor's models of IDDRX2F and CLKDIVF, if they start
    together as by :class:`~..clocks.ecp5_gear.EcpGear`, Q2 of clock edge k is the sample of clock edge k - 1. So Q3,
    kept for a clock, and Q0 and Q1 are the three before it: as of :class:`~hypermon.hdl.input.ddr_input.DdrInput`,
    ``level`` of clock edge k is valid after k + 1.

    Parameters
    ----------
    port : the pin.
    taps : of the delay.

    Members
    -------
    edge, reset : from the gear; the clock is that of ``sync``.
    level : level at a clock edge.
    early : three quarters, a half, and a quarter of a clock before it.
    """

    def __init__(self, port, taps: int = DELAY_TAPS):
        self.port, self.taps = port, taps
        self.edge = Signal()
        self.reset = Signal()
        self.level = Signal()
        self.early = Signal(3)

    def elaborate(self, platform):
        m = Module()
        m.submodules.pad = pad = io.Buffer("i", self.port)
        delayed, samples, last = Signal(), Signal(4), Signal()
        m.submodules.delay = Instance(
            "DELAYG", p_DEL_MODE="USER_DEFINED", p_DEL_VALUE=self.taps, i_A=pad.i, o_Z=delayed)
        m.submodules.cell = Instance(
            "IDDRX2F", i_D=delayed, i_ECLK=self.edge, i_SCLK=ClockSignal(), i_RST=self.reset,
            **{f"o_Q{k}": samples[k] for k in range(4)})
        m.d.sync += last.eq(samples[3])
        m.d.comb += [self.early.eq(Cat(last, samples[:2])), self.level.eq(samples[2])]
        return m


class PhaseSource(Elaboratable):
    """Edges that have nothing to do with the board's clock: the part's own oscillator, an RC, toggles a pin through
    ODDRX1F, :data:`EDGE_HZ` times per second. For the self-check of the phases, the pin is wired to strobes."""

    def __init__(self, port):
        self.port = port

    def elaborate(self, platform):
        m = Module()
        m.domains.edges = edges = ClockDomain(local=True, reset_less=True)
        m.submodules.oscillator = Instance("OSCG", p_DIV=_DIVIDER, o_OSC=edges.clk)
        count = Signal((2 * _EDGE_CLOCKS - 1).bit_length())
        m.d.edges += count.eq(count + 1)
        m.submodules.pad = pad = io.DDRBuffer("o", self.port, o_domain="edges")
        m.d.comb += [pad.o[0].eq(count[-1]), pad.o[1].eq(count[-1])]
        return m
