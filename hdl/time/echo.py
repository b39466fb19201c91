"""Measures how long the wave takes to another board and back: the echo of ``sync_out`` at ``sync_in``."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import ECHO_CLOCKS, ECHO_SUM_BITS, ECHOES

__all__ = ["Echo"]


class Echo(wiring.Component):
    """Sums the clocks from each rise of the own wave to the next rise of the line, over sets of echoes.

    The board that leads has no use for ``sync_in`` otherwise. A board that follows it returns its own wave there. Its
    phase wanders against this board's, so the mean over a set is finer than a clock.

    Members
    -------
    out : the wave of this board, from its register.
    rise : the line has risen, see :class:`~.board_sync.BoardSync`: two flip-flops after the pad, for one clock.
    result : the sum of a set of :data:`~.layout.ECHOES` echoes, bits 18..0; the number of sets since the reset, modulo
        2**13, bits 31..19. An echo of k clocks is seen when ``rise`` comes k clocks after the first clock in which
        ``out`` is high. Rises after the first one of a period do not count. A period without an echo, and an echo that
        comes after :data:`~.layout.ECHO_CLOCKS` clocks or later, do not count either.
    """

    def __init__(self):
        super().__init__({"out": In(1), "rise": In(1), "result": Out(32)})

    def elaborate(self, platform):
        m = Module()
        before = Signal()
        awaits = Signal()
        clocks = Signal(range(ECHO_CLOCKS))     # since the rise of `out`
        sum_, last = Signal(ECHO_SUM_BITS), Signal(ECHO_SUM_BITS)
        count = Signal(range(ECHOES))
        sets = Signal(32 - ECHO_SUM_BITS)
        complete = Signal()
        m.d.sync += [before.eq(self.out), complete.eq(0)]
        with m.If(self.out & ~before):
            m.d.sync += [clocks.eq(1), awaits.eq(~self.rise)]
        with m.Elif(awaits):
            m.d.sync += clocks.eq(clocks + 1)
            with m.If(clocks == ECHO_CLOCKS - 1):
                m.d.sync += awaits.eq(0)
            with m.If(self.rise):
                m.d.sync += [awaits.eq(0), sum_.eq(sum_ + clocks), count.eq(count + 1), complete.eq(count.all())]
        with m.If(complete):
            m.d.sync += [last.eq(sum_), sum_.eq(0), sets.eq(sets + 1)]
        m.d.comb += self.result.eq(last | sets << ECHO_SUM_BITS)
        return m
