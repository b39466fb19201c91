"""One wire: receives the bytes of a UART, each a constant time after its first edge."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import FRONT_FRACTION_BITS, FRONT_PERIOD_BITS

__all__ = ["OneWire"]

#: Bits after a byte for which the line must be idle until that is a pause: the length of a byte.
_PAUSE_BITS = 10
#: Index of the stop bit; the start bit has index 0.
_STOP = 9


class OneWire(wiring.Component):
    """Receives a start bit (low), eight bits, the lowest one first, and a stop bit (high); idle lines are high.

    Each bit is sampled once, in its middle as counted from the edge of the start bit, to a clock. The byte is delivered
    one clock after the middle of the stop bit. With a period of ``period`` / 256 clocks, the times of all ten samples
    after the edge depend on ``period`` alone: the latency is constant. A sender's bits may be longer or shorter by
    (period / 2 - 1 clock) / 9.5, less the rise and fall times: by 4 % at a period of 8 clocks, by 5 % at a long one.

    A start bit that is high in its middle is a fault. So is a stop bit that is low; the line must be high before the
    next start bit is looked for. As long as the line has never been high, nothing is received.

    Parameters
    ----------
    period_bits : bits of the period, at least 12.

    Members
    -------
    level : of the line, synchronous.
    period : of a bit, in 1/256 clocks; at least 8 clocks.
    byte, valid : a byte, high for one clock.
    fault : a byte was lost, high for one clock; never with ``valid``.
    pause : the line has been idle for the length of a byte.
    busy : clocks are being counted.
    """

    def __init__(self, period_bits: int = FRONT_PERIOD_BITS):
        self.period_bits = period_bits
        super().__init__({
            "level": In(1), "period": In(period_bits),
            "byte": Out(8), "valid": Out(1), "fault": Out(1), "pause": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        one = 1 << FRONT_FRACTION_BITS
        left = Signal(self.period_bits + 1)    # until the next sample
        count = Signal(range(_PAUSE_BITS))
        now = Signal()
        m.d.comb += now.eq(left < 2 * one)      # a change is seen half a clock late in the mean
        m.d.sync += [left.eq(left - one), self.valid.eq(0), self.fault.eq(0)]
        with m.If(now):
            m.d.sync += left.eq(left - one + self.period)

        with m.FSM(init="LOW") as fsm:
            with m.State("LOW"):
                m.d.sync += [left.eq(self.period), count.eq(0), self.pause.eq(0)]
                with m.If(self.level):
                    m.next = "HIGH"
            with m.State("HIGH"):
                with m.If(now & ~self.pause):
                    m.d.sync += [count.eq(count + 1), self.pause.eq(count == _PAUSE_BITS - 1)]
                with m.If(~self.level):
                    m.d.sync += [left.eq(self.period >> 1), count.eq(0), self.pause.eq(0)]
                    m.next = "BYTE"
            with m.State("BYTE"):
                with m.If(now):
                    m.d.sync += count.eq(count + 1)
                    with m.If(count == 0):
                        with m.If(self.level):
                            m.d.sync += [self.fault.eq(1), count.eq(0)]
                            m.next = "HIGH"
                    with m.Elif(count == _STOP):
                        m.d.sync += [self.valid.eq(self.level), self.fault.eq(~self.level), count.eq(0)]
                        m.next = "LOW"
                        with m.If(self.level):
                            m.next = "HIGH"
                    with m.Else():
                        m.d.sync += self.byte.eq(Cat(self.byte[1:], self.level))
        m.d.comb += self.busy.eq(~(fsm.ongoing("LOW") | self.pause) | self.valid | self.fault)
        return m
