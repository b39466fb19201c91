"""Specifications of the PCIe link: where its ring writes, and what its completer owes."""

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.transport.pcie.completer import Completer
from hypermon.hdl.transport.pcie.ring import Ring
from hypermon.hdl.transport.pcie.tlp import Kind

from ..prover import Spec, using

__all__ = ["CompleterSpec", "RingSpec"]

#: Beats in a page and bits of a position, log2; bits of an address; beats in the longest write.
PAGE_LOG, POSITION_BITS, ADDRESS_BITS, LONGEST = 1, 4, 5, 2


def _any_fifo(spec: Spec):
    """Class of a FIFO that accepts and delivers whatever it likes: where the ring writes must not depend on it."""
    ready, valid, last = (spec.free(1, f"fifo_{name}") for name in ("ready", "valid", "last"))

    class AnyFifo(wiring.Component):
        def __init__(self, shape, depth, ram="portable"):
            super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                              "level": Out(range(depth + 1))})

        def elaborate(self, platform):
            m = Module()
            m.d.comb += [self.i.ready.eq(ready), self.o.valid.eq(valid), self.o.p.last.eq(last)]
            return m

    return AnyFifo


class RingSpec(Spec):
    """Data go to the next address of the ring and nowhere else, never over what was not consumed; reports to the beat
    after the ring. What was reported was written. Whatever host and block do at any time."""

    def __init__(self, ring=Ring):
        super().__init__()
        self.ring = using(
            ring, PAGE_LOG=PAGE_LOG, POSITION_BITS=POSITION_BITS, RING_LOG=PAGE_LOG + 1, ADDRESS_BITS=ADDRESS_BITS,
            FLUSH_BITS=2, FLUSH=3, REPORT_PART=0, MPS_BEATS_MAX=LONGEST,
            mps_beats=lambda code: Mux(code == 0, 1, LONGEST),
            StreamFifo=_any_fifo(self), beat_layout=lambda: data.StructLayout({"data": 1, "last": 1}))

    def specify(self, m: Module) -> None:
        m.submodules.ring = ring = self.ring(4)
        settings, state, out = ring.settings, ring.state, ring.o
        page, pages = self.constant(m, ADDRESS_BITS - PAGE_LOG, "page"), self.constant(m, 1, "pages")
        down, moved = self.free(1, "down"), self.free(POSITION_BITS, "moved")
        tail, position, size = (Signal(POSITION_BITS, name=name) for name in ("tail", "position", "size"))
        m.d.comb += [
            settings.enable.eq(self.free(1, "enable")), settings.page.eq(page), settings.pages.eq(pages),
            settings.tail.eq(tail), settings.flush.eq(self.free(2, "flush")), ring.mps.eq(self.free(1, "mps")),
            ring.permitted.eq(self.free(1, "permitted")), ring.room.eq(self.free(1, "room")),
            ring.down.eq(down), out.ready.eq(self.free(1, "ready")),
            ring.i.valid.eq(self.free(1, "came")), ring.i.p.eq(self.free(2, "item")),
            size.eq(Mux(pages, 4, 2)),
        ]
        # The host consumes what is in complete writes: see RingRegisters.
        with m.If((moved - tail)[:POSITION_BITS] <= (state.written - tail)[:POSITION_BITS]):
            m.d.sync += tail.eq(moved)
        with m.If(state.start):
            m.d.sync += [tail.eq(0), position.eq(0)]

        base = Signal(ADDRESS_BITS)
        sends, report = Signal(), Signal()
        m.d.comb += [
            base.eq(page << PAGE_LOG), sends.eq(out.valid & out.ready),
            report.eq(out.p.address == (base + size)[:ADDRESS_BITS]),
        ]
        before, within = Signal(range(LONGEST + 1)), Signal()     # beats of the write so far, and whether there is one
        with m.If(sends):
            m.d.sync += [before.eq(Mux(out.p.last, 0, before + 1)), position.eq(position + ~report)]
        with m.If(down):     # the write is cut, and what follows is another start
            m.d.sync += [within.eq(1), before.eq(0)]
        with m.If(state.start):
            m.d.sync += [before.eq(0), within.eq(0)]
        at = (base + (position & (size - 1)))[:ADDRESS_BITS]
        m.d.comb += [
            Assert(~(out.valid & ~report) | within | ((out.p.address + before)[:ADDRESS_BITS] == at), "the next one"),
            Assert(~(out.valid & ~report) | within | ((position - tail)[:POSITION_BITS] < size), "is free"),
            Assert(~(out.valid & report) | (out.p.beats == 1), "a report is one beat"),
            Assert(~out.valid | (out.p.last == (before + 1 == out.p.beats)), "ends when it says"),
            Assert(~(out.valid & report) | within | (state.written == position), "all that was written"),
        ]


class CompleterSpec(Spec):
    """One completion for each non-posted request and none for any other, soon, even if the board never answers."""

    #: Clocks from a request to its completion, if the block takes it.
    SOON = 16

    def __init__(self, completer=Completer):
        super().__init__()
        self.completer = using(completer, PATIENCE=3)

    def specify(self, m: Module) -> None:
        m.submodules.completer = dut = self.completer()
        kind, first = self.free(3, "kind"), Signal(init=1)
        kept, is_kind = Signal(3), Signal(3)       # the header is the same in all beats
        m.d.comb += is_kind.eq(Mux(first, Mux(kind > max(Kind), Kind.READ, kind), kept))
        m.d.comb += [
            dut.i.valid.eq(self.free(1, "valid")), dut.i.p.kind.eq(is_kind),
            dut.i.p.length.eq(self.free(11, "length")), dut.i.p.first_be.eq(self.free(4, "first_be")),
            dut.i.p.dwords.eq(self.free(3, "dwords")), dut.i.p.bad.eq(self.free(1, "bad")),
            dut.i.p.last.eq(self.free(1, "last")),
            dut.o.ready.eq(1), dut.command.ready.eq(self.free(1, "command")),
            dut.reply.valid.eq(self.free(1, "reply")), dut.own.eq(self.free(1, "own")),
            dut.i.p.offset.eq(self.free(11, "offset")), dut.closed.eq(self.free(1, "closed")),
        ]
        owed, waits = Signal(), Signal(range(self.SOON + 1))
        takes, sends = Signal(), Signal()
        m.d.comb += [takes.eq(dut.i.valid & dut.i.ready), sends.eq(dut.o.valid & dut.o.ready)]
        with m.If(takes):
            m.d.sync += [first.eq(dut.i.p.last), kept.eq(is_kind)]
        with m.If(takes & dut.i.p.last):
            m.d.sync += [owed.eq((is_kind != Kind.WRITE) & (is_kind != Kind.POSTED)), waits.eq(0)]
        with m.Elif(sends):
            m.d.sync += owed.eq(0)
        with m.Elif(owed):
            m.d.sync += waits.eq(waits + 1)
        m.d.comb += [
            Assert(~dut.o.valid | owed, "none that is not owed"), Assert(~(dut.i.ready & owed), "one at a time"),
            Assert(waits < self.SOON, "soon"),
        ]
