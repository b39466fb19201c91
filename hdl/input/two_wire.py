"""Two wires: receives bytes from an SPI master, and delivers each one a constant time after its first edge."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import FRONT_SPAN_BITS

__all__ = ["TwoWire"]


class TwoWire(wiring.Component):
    """Receives eight bits, the highest one first, each sampled at a rising edge of the clock (SPI modes 0 and 3), or at
    a falling one (modes 1 and 2).

    A byte is delivered ``span`` + 1 clocks after its first edge was seen, whatever its rate is. That is its constant
    latency, and also the limit: a byte whose last edge comes ``span`` clocks after its first one, or later, is a fault,
    and the next edge begins a new byte. So is a byte that ends while the one before has not been delivered. With bytes
    that follow each other directly, eight periods of T clocks each, ``span`` must therefore be at least 7 T + 2 and at
    most 15 T - 1, with T varied by the node's jitter and by one clock of sampling.

    Each level of the clock must last one board clock + aperture. Data must be stable from one aperture + skew before
    the edge until one board clock + aperture + skew after it.

    Parameters
    ----------
    selected : there is a chip select. Edges while it is high have no effect. A byte that is incomplete when it rises is
        a fault.
    span_bits : bits of the span.

    Members
    -------
    clock, data : levels, synchronous.
    select : only if ``selected``; low while the node is selected.
    falling : data are sampled at falling edges.
    span : see above.
    byte, valid : a byte, high for one clock.
    fault : a byte was lost, high for one clock; after ``valid`` of the bytes before it, and never with it.
    pause : the wires have paused, and everything before was delivered: no byte has begun for two spans; or, if
        ``selected``, the node is not selected, or was not since the byte that was delivered in the clock before.
    busy : time counts: less than two spans have passed since a byte began.
    """

    def __init__(self, selected: bool = False, span_bits: int = FRONT_SPAN_BITS):
        self.selected, self.span_bits = selected, span_bits
        super().__init__({
            "clock": In(1), "data": In(1), "falling": In(1), "span": In(span_bits),
            "byte": Out(8), "valid": Out(1), "fault": Out(1), "pause": Out(1), "busy": Out(1),
            **({"select": In(1)} if selected else {}),
        })

    def elaborate(self, platform):
        m = Module()
        before = Signal()
        idle = self.select if self.selected else 0
        edge = Signal()
        count = Signal(3)
        m.d.comb += edge.eq((self.clock ^ before) & (self.clock ^ self.falling) & ~idle)
        m.d.sync += before.eq(self.clock)

        # The byte that is coming: its age counts from its first edge, and from there to the pause.
        shift = Signal(7)
        age = Signal(self.span_bits)
        lives, passed, over, broken = (Signal(name=name) for name in ("lives", "passed", "over", "broken"))
        m.d.comb += [over.eq(age >= self.span), broken.eq((count != 0) & (over | idle))]
        m.d.sync += age.eq(Mux(over, 1, age + 1))
        with m.If(edge & (count == 0)):
            m.d.sync += [age.eq(1), lives.eq(1), passed.eq(0)]
        with m.Elif(over):
            m.d.sync += [passed.eq(count == 0), lives.eq(lives & ~(passed & (count == 0)))]
        with m.If(broken):
            m.d.sync += count.eq(0)
        with m.Elif(edge):
            m.d.sync += [count.eq(count + 1), shift.eq(Cat(self.data, shift))]

        # The byte that waits for its time, and a fault that comes after it.
        complete, holds, due, failed = (Signal(name=name) for name in ("complete", "holds", "due", "failed"))
        waited = Signal(self.span_bits)
        kept = Signal(8)
        m.d.comb += [complete.eq(edge & (count == 7) & ~broken), due.eq(holds & (waited >= self.span))]
        m.d.sync += [
            waited.eq(waited + 1), self.valid.eq(due), holds.eq(holds & ~due),
            failed.eq((failed & holds) | broken), self.fault.eq(failed & ~holds),
        ]
        with m.If(complete):
            with m.If(failed | (holds & ~due)):
                m.d.sync += failed.eq(1)
            with m.Else():
                m.d.sync += [holds.eq(1), waited.eq(age + 1), kept.eq(Cat(self.data, shift))]
        with m.If(due):
            m.d.sync += self.byte.eq(kept)
        done = ~(broken | holds | failed | self.valid | self.fault)
        m.d.comb += self.busy.eq(lives | ~done)
        quiet = ~lives & ~edge
        if not self.selected:
            m.d.sync += self.pause.eq(quiet & done)
            return m
        # The node may be selected again, and send, before its last byte is delivered.
        apart = Signal()        # the node was not selected since the last byte that is not to be told from the next
        with m.If(idle):
            m.d.sync += apart.eq(1)
        with m.Elif(self.valid | (edge & (count == 0) & ~holds)):
            m.d.sync += apart.eq(0)
        m.d.sync += self.pause.eq(((idle | quiet) & done) | (self.valid & apart & ~broken & ~failed))
        return m
