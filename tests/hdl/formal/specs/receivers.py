"""Specifications of the receivers of front ends: which bytes they deliver and reject, and when."""

from amaranth.hdl import Assert, Assume, Const, Module, Mux, Signal
from hypermon.hdl.input.one_wire import OneWire
from hypermon.hdl.input.two_wire import TwoWire

from ..prover import Spec, exposing, opened, state_of, using

__all__ = ["OneWireSpec", "TwoWireSpec"]


class TwoWireSpec(Spec):
    """A byte is delivered if all of its eight edges came within the span, once, span + 1 clocks after the first of
    them, and with the bits that the wires had at the edges. Each other byte is reported as a fault in the clock in
    which nothing that came before it is still to be delivered, and is never delivered.

    The wires may do anything in every clock. One bit of each byte is followed, any one.

    Parameters
    ----------
    bits : of the span; two bytes without pause fit into the largest one.
    clocks : after which a broken twin does what it should not.
    """

    def __init__(self, wire=TwoWire, selected=False, bits=5, clocks=2):
        super().__init__()
        self.induction = clocks
        copy, self.inside = exposing(wire)
        self.wire, self.selected, self.bits = using(copy, FRONT_SPAN_BITS=bits), selected, bits

    def specify(self, m: Module) -> None:
        dut, n, most = self.wire(self.selected), self.inside, (1 << self.bits) - 1
        m.submodules.dut = opened(dut)
        span, falling = self.constant(m, self.bits, "span"), self.constant(m, 1, "falling")
        clock, data = self.free(1, "clock"), self.free(1, "data")
        high = self.free(1, "high") if self.selected else Const(0, 1)
        m.d.comb += [dut.clock.eq(clock), dut.data.eq(data), dut.falling.eq(falling), dut.span.eq(span),
                     Assume(span >= 8)]
        if self.selected:
            m.d.comb += dut.select.eq(high)

        # The byte that is coming: its edges so far, and the clocks since the first of them.
        before, taken, age = Signal(), Signal(3), Signal(range(most + 2))
        edge = (clock != before) & (clock != falling) & ~high
        late = (taken != 0) & ((age == span) | high)
        complete = edge & (taken == 7) & ~late
        m.d.sync += [before.eq(clock), age.eq(Mux(edge & (taken == 0), 1, age + (age != most + 1)))]
        with m.If(late):
            m.d.sync += taken.eq(0)
        with m.Elif(edge):
            m.d.sync += taken.eq(taken + 1)
        which, bit = self.constant(m, 3, "which"), Signal()
        with m.If(edge & (taken == 7 - which)):
            m.d.sync += bit.eq(data)

        # Bytes are due in so many clocks. One that is complete before the one before is delivered, or before a fault
        # has been reported, is lost.
        due, bits = Signal(most + 2), Signal(most + 2)
        owed, reported = Signal(), Signal()
        reports = owed & ~due[1:].any()
        accepted = complete & ~owed & ~due[2:].any()
        there = Const(1, most + 2) << (span - age)[:self.bits]
        m.d.sync += [
            due.eq(due[1:] | Mux(accepted, there, 0)),
            bits.eq(bits[1:] | Mux(accepted & Mux(which == 0, data, bit), there, 0)),
            owed.eq(late | (complete & ~accepted) | (owed & ~reports)), reported.eq(reports),
        ]
        followed = dut.byte.bit_select(which, 1)
        m.d.comb += [
            Assert(dut.valid == due[0], "whole bytes, once, and at their time"),
            Assert(~dut.valid | (followed == bits[0]), "as they were on the wire"),
            Assert(dut.fault == reported, "a fault for the others, after the bytes before it"),
            Assert(~(dut.valid & dut.fault), "never both"),
        ]
        nothing = (taken == 0) & ~due.any() & ~owed & ~reported
        # Selected again, a node may send before its byte from before that is delivered.
        apart, again = Signal(), Signal()
        with m.If(high):
            m.d.sync += apart.eq(1)
        with m.Elif(due[0] | (edge & (taken == 0) & ~due[1:].any())):
            m.d.sync += apart.eq(0)
        m.d.sync += again.eq(due[0] & apart)
        m.d.comb += [
            Assert(~dut.pause | nothing | (again & ~owed & ~reported), "a pause comes after everything"),
            Assert(dut.busy | nothing, "busy while anything is to come"),
        ]

        # Clocks since a byte began; its wires pause after two or three spans, the latter if it was not completed.
        quiet = Signal(self.bits + 2, init=-1 % (1 << self.bits + 2))
        m.d.sync += quiet.eq(Mux(edge & (taken == 0), 1, quiet + ~quiet.all()))
        if not self.selected:
            runs = Signal()     # after power-up, pause comes a clock later
            m.d.sync += runs.eq(1)
            m.d.comb += [
                Assert(~dut.pause | (quiet > 2 * span), "a pause is two spans"),
                Assert((quiet <= 3 * span + 2) | dut.pause | ~runs, "and comes after three"),
            ]

        # How its numbers hang together.
        lives, passed, holds, waited = n["lives"], n["passed"], n["holds"], n["waited"]
        if self.selected:
            m.d.comb += Assert(n["apart"] == apart)
        at = (taken + which)[:3]
        m.d.comb += [
            Assert(n["before"] == before), Assert(n["count"] == taken), Assert(n["failed"] == owed),
            Assert((taken == 0) | ((n["age"] == age) & (age != 0) & (age <= span) & lives & ~passed)),
            Assert((taken + which < 8) | (n["shift"].bit_select(at, 1) == bit) | (taken == 0)),
            Assert(holds == due[1:].any()),
            Assert(~holds | ((waited <= span) & (due[1:] == (Const(1, most + 1) << (span - waited)[:self.bits])))),
            Assert(~holds | (n["kept"].bit_select(which, 1) == bits[1:].any())), Assert((bits & ~due) == 0),
            Assert(n["age"] <= span), Assert(~lives | (n["age"] != 0)), Assert((taken == 0) | (quiet == age)),
            Assert(~lives | (quiet == n["age"] + Mux(passed, span, 0)) | (quiet == n["age"] + span)
                   | (passed & (quiet == n["age"] + 2 * span))),
            Assert(lives | (quiet > 2 * span)), Assert(~holds | (quiet <= waited)),
            Assert(~(owed | dut.valid) | (quiet <= span + 1)), Assert(~reported | (quiet <= span + 2)),
        ]


class OneWireSpec(Spec):
    """A byte is delivered if its start bit is low and its stop bit high in the middle, once, a clock after the middle
    of the stop bit, and with the levels of the line in the middle of its bits. Each other one is a fault at that time,
    and is never delivered. The middle of a bit is counted from the first clock of the start bit.

    The line may do anything in every clock. One bit of each byte is followed, any one.

    Parameters
    ----------
    bits, fraction : bits of the period, and how many of them are a fraction.
    """

    induction = 2

    def __init__(self, wire=OneWire, bits=5, fraction=1):
        super().__init__()
        copy, self.inside = exposing(wire)
        self.wire = using(copy, FRONT_PERIOD_BITS=bits, FRONT_FRACTION_BITS=fraction)
        self.bits, self.fraction = bits, fraction

    def specify(self, m: Module) -> None:
        dut, n, f = self.wire(), self.inside, self.fraction
        m.submodules.dut = module = opened(dut)
        state, one = state_of(module), 1 << f
        period, level = self.constant(m, self.bits, "period"), self.free(1, "level")
        m.d.comb += [dut.level.eq(level), dut.period.eq(period), Assume(period >= 8 << f)]

        # A byte: clocks since its first one, samples so far, and when the next one is, in parts of a clock.
        inside, ready, since, samples = Signal(), Signal(), Signal(8), Signal(range(10))
        middle = Signal(self.bits + 4)
        now = inside & (since == middle >> f)
        begins = ready & ~inside & ~level
        last = samples == 9
        m.d.sync += since.eq(Mux(begins, 1, since + 1))
        with m.If(begins):
            m.d.sync += [inside.eq(1), samples.eq(0), middle.eq(period >> 1)]
        with m.Elif(now):
            m.d.sync += [samples.eq(samples + 1), middle.eq(middle + period)]
            with m.If(last | ((samples == 0) & level)):
                m.d.sync += inside.eq(0)
        with m.If(now & last & ~level):
            m.d.sync += ready.eq(0)
        with m.Elif(level & ~inside):
            m.d.sync += ready.eq(1)
        which, bit = self.constant(m, 3, "which"), Signal()
        with m.If(now & (samples == which + 1)):
            m.d.sync += bit.eq(level)
        good, bad = Signal(), Signal()
        m.d.sync += [good.eq(now & last & level), bad.eq(now & Mux(last, ~level, (samples == 0) & level))]
        m.d.comb += [
            Assert(dut.valid == good, "whole bytes, once, and at their time"),
            Assert(~dut.valid | (dut.byte.bit_select(which, 1) == bit), "as they were on the wire"),
            Assert(dut.fault == bad, "a fault for the others"),
            Assert(~(dut.valid & dut.fault), "never both"),
        ]

        # Clocks for which the line has been high.
        high = Signal(9)
        bits = [10 * period, 20 * period + 2 * one]
        m.d.sync += high.eq(Mux(level, high + (high != 511), 0))
        nothing = ~inside & ~good & ~bad
        m.d.comb += [
            Assert(~dut.pause | nothing, "a pause comes after everything"),
            Assert(~dut.pause | ((high << f) > bits[0]), "and after ten idle bits"),
            Assert(((high << f) <= bits[1]) | dut.pause, "and after twenty at the latest"),
            Assert(dut.busy | nothing, "busy while anything is to come"),
        ]

        # How its numbers hang together.
        left, count = n["left"], n["count"]
        m.d.comb += [
            Assert(state("BYTE") == inside), Assert(state("HIGH") == (ready & ~inside)),
            Assert(state("LOW") == ~ready), Assert(~inside | ready),
            Assert(~inside | ((count == samples) & (samples <= 9) & (since != 0))),
            Assert(~inside | (middle == (period >> 1) + samples * period)),
            Assert(~inside | ((since <= middle >> f) & (left == middle - ((since - 1) << f)))),
            Assert(~inside | (samples <= which + 1)
                   | (dut.byte.bit_select((9 - samples + which)[:3], 1) == bit)),
            Assert(~inside | (high < since)), Assert(~(state("LOW")) | ((high == 0) & (count == 0))),
            Assert(left < period + 2 * one), Assert(state("LOW") | (left >= one)),
            Assert(~state("HIGH") | (count <= 9 + dut.pause)), Assert(~dut.pause | state("HIGH")),
            Assert(~state("HIGH") | dut.pause | ((high << f) + left >= (count + 1) * period + one)),
            Assert(~state("HIGH") | dut.pause | ((high << f) + left <= (count + 11) * period + one)),
            Assert(~state("HIGH") | (high != 0)),
        ]
