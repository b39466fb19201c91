"""Specifications of the time of several boards: a board's own clock, marks, echoes, and trigger out."""

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.accounts.marks import Marks
from hypermon.hdl.layout import TRIGGER_OUT_WINDOWS, Extra, Geometry, Sink
from hypermon.hdl.time.board_sync import BoardSync
from hypermon.hdl.time.echo import Echo
from hypermon.hdl.trigger.trigger_out import TriggerOut

from ..prover import Spec, exposing, opened, using

__all__ = ["EchoSpec", "MarksSpec", "OwnClockSpec", "TriggerOutSpec"]

#: The wave's period with windows of a clock.
_PERIOD = 1024


class OwnClockSpec(Spec):
    """A rise is reported if, and only if, it is a clock off the period and none was for the given clocks; and the time
    base is never asked for another window. The line and ``follow`` may do anything at any time.
    """

    induction = 5

    def __init__(self, sync=BoardSync, spacing=5):
        super().__init__()
        self.sync, self.made = exposing(sync)
        self.spacing = spacing

    def specify(self, m: Module) -> None:
        geometry = Geometry(1, node_depth=4, vector_depth=16, frame_depth=4, sinks=(Sink.EXTENDED,),
                            extras=(Extra.DRIFT,))
        dut = self.sync(geometry, self.spacing)
        m.submodules.dut = opened(dut)
        line, told = Signal(3, init=7), Signal(2)
        counts = Signal()
        m.d.comb += [
            dut.sync_in.eq(self.free(1, "sync_in")), dut.window.eq(3), dut.own.eq(1), dut.enable.eq(1),
            dut.follow.eq(self.free(1, "follow")), dut.running.eq(self.free(1, "running")),
            dut.now.eq(self.free(11, "now")), dut.corrected.eq(self.free(1, "corrected")),
        ]
        m.d.sync += [line.eq(Cat(dut.sync_in, line)), told.eq(told << 1 | 1)]
        # `line[1]` is what two flip-flops make of the line, `line[2]` the same a clock before.
        rise = line[1] & ~line[2]
        since, silent = Signal(12), Signal(range(self.spacing + 1), init=self.spacing)
        m.d.sync += since.eq(Mux(rise, 1, Mux(since.all(), since, since + 1)))
        off = rise & ((since == _PERIOD + 1) | (since == _PERIOD - 1)) & dut.running & dut.follow
        m.d.comb += counts.eq(off & (silent == self.spacing))
        with m.If(counts):
            m.d.sync += silent.eq(1)
        with m.Elif(silent != self.spacing):
            m.d.sync += silent.eq(silent + 1)
        reported, was_early = Signal(), Signal()
        m.d.sync += [reported.eq(counts), was_early.eq(since == _PERIOD - 1)]
        m.d.comb += [
            Assert(~told[1] | (dut.off == reported), "exactly these rises"),
            Assert(~dut.off | (dut.early == was_early), "in this direction"),
            Assert(~(dut.longer | dut.shorter), "its windows stay as they are"),
            Assert(self.made["since"] == since, "lemma"),
            Assert(~rise | (self.made["is_late"] == (since == _PERIOD + 1)) | ~told[1], "lemma"),
            Assert(~rise | (self.made["is_early"] == (since == _PERIOD - 1)) | ~told[1], "lemma"),
            Assert(self.made["pause"] == self.spacing - silent, "lemma"),
        ]


class _One(wiring.Component):
    """Replaces the queue by one of a single mark. :mod:`.fifos` proves that a longer one keeps the order."""

    def __init__(self, shape, depth):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "level": Out(2)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.i.ready.eq(~self.o.valid), self.level.eq(self.o.valid)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [self.o.valid.eq(1), self.o.p.eq(self.i.p)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class MarksSpec(Spec):
    """A chosen rise of a chosen pin leaves as a record at most once, after it came and with its time; numbers of a pin
    only rise.

    The pin is ``pps_in``, or the drift. The blocker grants and takes when it likes. Of time two bits are looked at.
    """

    def __init__(self, drift, marks=Marks, bits=2):
        super().__init__()
        self.drift, self.bits = drift, bits
        self.marks = using(marks, SmallFifo=_One)

    def specify(self, m: Module) -> None:
        geometry = Geometry(1, node_depth=4, vector_depth=16, frame_depth=4, sinks=(Sink.EXTENDED,),
                            extras=(Extra.PPS, Extra.DRIFT))
        m.submodules.dut = dut = self.marks(geometry, 1)
        drift, chosen = self.drift, self.constant(m, self.bits, "chosen")
        now, source = self.free(2, "now"), dut.source
        m.d.comb += [
            dut.pps_in.eq(self.free(1, "pps_in")), dut.off.eq(self.free(1, "off")), dut.early.eq(self.free(1, "early")),
            dut.now.eq(now), dut.enable.eq(1), dut.running.eq(1), dut.follows.eq(0),
            source.grant.eq(self.free(1, "grant") & source.request), source.beats.ready.eq(self.free(1, "ready")),
        ]
        line, told = Signal(3, init=7), Signal(3)
        m.d.sync += [line.eq(Cat(dut.pps_in, line)), told.eq(told << 1 | 1)]
        rise = dut.off if drift else line[1] & ~line[2]
        # `off` comes a clock after a rise does.
        late = Signal(4)
        m.d.sync += late.eq(Cat(rise, late))
        stated = late[2] if drift else late[3]
        count, stamp, known = Signal(self.bits + 1), Signal(2), Signal()
        with m.If(stated):
            m.d.sync += count.eq(count + ~count.all())
            with m.If(count == chosen):
                m.d.sync += [stamp.eq(now), known.eq(1)]
        leaves = source.beats.valid & source.beats.ready
        beat = source.beats.p
        kind, number = beat[:8], beat[32:64]
        mine = leaves & (kind >= 2 if drift else kind == 0)
        was, last, some = Signal(), Signal(32), Signal()
        with m.If(mine):
            m.d.sync += [last.eq(number), some.eq(1)]
            with m.If(number == chosen):
                m.d.sync += was.eq(1)
        m.d.comb += [
            Assume(count < (1 << self.bits)),
            Assert(~(mine & (number == chosen)) | (known & ~was), "a rise leaves once, after it came"),
            Assert(~(mine & (number == chosen)) | (beat[64:66] == stamp), "with its time"),
            Assert(~(mine & some) | (number > last), "numbers rise"),
            Assert(~mine | (number < count), "no rise that never came"),
            Assert(~(leaves & (kind > 3)), "of a pin"),
            Assert(beat[66:] == Const(0, 62), "time as it is"),
        ]


#: Sets of a few echoes, and of few clocks.
_SMALL = {"ECHOES": 4, "ECHO_CLOCKS": 8, "ECHO_SUM_BITS": 5}


class EchoSpec(Spec):
    """The result is the sum of a set of echoes, each from a rise of the own wave to the first rise of the line.

    A rise of the line without one of the own wave before it, a second one, and one that comes too late do not count.
    """

    def __init__(self, echo=Echo):
        super().__init__()
        self.echo = using(echo, **_SMALL)

    def specify(self, m: Module) -> None:
        echoes, longest, bits = _SMALL.values()
        m.submodules.dut = dut = self.echo()
        out, rise = self.free(1, "out"), self.free(1, "rise")
        m.d.comb += [dut.out.eq(out), dut.rise.eq(rise)]
        before, asked = Signal(), Signal()
        clocks = Signal(range(longest + 1))
        begins = out & ~before
        # An echo in the very clock of the own rise takes no time: it is none.
        counts = asked & rise & ~begins & (clocks < longest)
        m.d.sync += before.eq(out)
        with m.If(begins):
            m.d.sync += [clocks.eq(1), asked.eq(~rise)]
        with m.Else():
            m.d.sync += clocks.eq(clocks + (clocks != longest))
            with m.If(counts):
                m.d.sync += asked.eq(0)
        sum_, number, sets, last = (Signal(n) for n in (bits, range(echoes), 32 - bits, bits))
        full = Signal()
        m.d.sync += full.eq(counts & (number == echoes - 1))
        with m.If(counts):
            m.d.sync += [sum_.eq(sum_ + clocks), number.eq(number + 1)]
        with m.If(full):
            m.d.sync += [last.eq(sum_), sum_.eq(0), sets.eq(sets + 1)]
        m.d.comb += [
            Assert(dut.result[:bits] == last, "the sum of the last set"),
            Assert(dut.result[bits:] == sets, "the number of sets"),
        ]


class TriggerOutSpec(Spec):
    """The pin rises once, at the time that was asked for or, if that has passed, at once; and says which it was.

    Windows end when they like, one a clock at most.
    """

    induction = 3

    def __init__(self, trigger_out=TriggerOut):
        super().__init__()
        self.trigger_out, self.made = exposing(trigger_out)

    def specify(self, m: Module) -> None:
        dut = self.trigger_out()
        m.submodules.dut = opened(dut)
        window = self.constant(m, 2, "window")
        now, age = Signal(16), self.free(9, "age")
        fires = self.free(1, "fired")
        m.d.sync += now.eq(now + self.free(1, "end"))
        m.d.comb += [dut.now.eq(now), dut.window.eq(window), dut.fired.eq(fires), dut.time.eq(now - age)]
        wait = Signal(range(max(TRIGGER_OUT_WINDOWS) + 1))
        with m.Switch(window):
            for setting, windows in enumerate(TRIGGER_OUT_WINDOWS):
                with m.Case(setting):
                    m.d.comb += wait.eq(windows)
        fired, overdue, risen, level = Signal(), Signal(), Signal(), Signal()
        m.d.sync += level.eq(dut.pin)
        due, was_due = Signal(), Signal()
        at = Signal(16)
        with m.If(fires & ~fired):
            m.d.sync += [fired.eq(1), at.eq(now - age + wait)]
        late = Signal(16)
        m.d.comb += [late.eq(now - at), due.eq(fired & ~risen & (late < 0x8000))]
        m.d.sync += [was_due.eq(due), overdue.eq(late != 0)]
        with m.If(due):
            m.d.sync += risen.eq(1)
        rises = dut.pin & ~level
        m.d.comb += [
            Assert(rises == was_due, "at its time, and once"),
            Assert(~rises | (dut.late == overdue) | ~overdue, "not late without saying so"),
            Assert(~(dut.late & ~dut.done), "late only when it has risen"),
            Assert(dut.done == risen, "it says that it has risen"),
            Assert(~(fired & ~risen) | dut.busy, "and that it is about to"),
            Assert(self.made["waits"] == (fired & ~risen), "lemma"), Assert(~fired | (self.made["at"] == at), "lemma"),
            Assert(fired | ~risen, "lemma"), Assert(risen | ~dut.pin, "lemma"),
        ]
