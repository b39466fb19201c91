"""Specifications of the stream FIFOs, at reduced depth, and of the skid."""

from amaranth.hdl import Assert, Assume, Signal
from hypermon.hdl.lib.fifo import SmallFifo, StreamFifo
from hypermon.hdl.lib.skid import Skid

from ..prover import Spec, using
from .memory import WatchedRam
from .order import watch_fifo

__all__ = ["SkidSpec", "SmallFifoSpec", "StreamFifoSpec"]


class SmallFifoSpec(Spec):
    """Level exact, order kept, ready unless full, an item at the output one clock after it entered;
    an item that leaves is counted for one clock more."""

    def __init__(self, fifo=SmallFifo, depth=4):
        super().__init__()
        self.fifo, self.depth = fifo, depth

    def specify(self, m):
        m.submodules.fifo = fifo = self.fifo(1, self.depth)
        m.d.comb += [
            fifo.i.valid.eq(self.free(1, "valid")), fifo.i.p.eq(self.free(1, "item")),
            fifo.o.ready.eq(self.free(1, "ready")),
        ]
        pop = fifo.o.valid & fifo.o.ready
        count = watch_fifo(
            m, self, name="fifo", depth=self.depth, push=fifo.i.valid & fifo.i.ready, pop=pop,
            first_in=fifo.i.p, first_out=fifo.o.p, valid=fifo.o.valid, patience=0)
        left = Signal()
        m.d.sync += left.eq(pop)
        m.d.comb += [
            Assert(fifo.level == count + left, "level is exact"),
            Assert(fifo.i.ready == (fifo.level != self.depth), "ready unless full"),
        ]


class StreamFifoSpec(Spec):
    """The same for the deep one, whose items take three clocks through an empty one, four with a skid; and it reads no
    word of its memory at the clock at which it is written.
    With ``held``, the consumer keeps one item at most, which counts."""

    def __init__(self, fifo=StreamFifo, depth=4, skid=False, held=False):
        super().__init__()
        self.fifo, self.depth, self.skid, self.held = using(fifo, Ram=WatchedRam), depth, skid, held

    def specify(self, m):
        m.submodules.fifo = fifo = self.fifo(1, self.depth, skid=self.skid, held=self.held)
        m.d.comb += [
            fifo.i.valid.eq(self.free(1, "valid")), fifo.i.p.eq(self.free(1, "item")),
            fifo.o.ready.eq(self.free(1, "ready")),
        ]
        pop = fifo.o.valid & fifo.o.ready
        count = watch_fifo(
            m, self, name="fifo", depth=self.depth, push=fifo.i.valid & fifo.i.ready, pop=pop,
            first_in=fifo.i.p, first_out=fifo.o.p, valid=fifo.o.valid, patience=2 + self.skid)
        left, keeps, done = Signal(), Signal(), Signal()
        m.d.comb += done.eq(pop)
        if self.held:
            m.d.comb += [done.eq(keeps & self.free(1, "done")), fifo.done.eq(done), Assume(~pop | ~keeps | done)]
            m.d.sync += keeps.eq(pop | (keeps & ~done))
        m.d.sync += left.eq(done)
        m.d.comb += [
            Assert(fifo.level == count + keeps + left, "level is exact"),
            Assert(fifo.i.ready == (fifo.level != self.depth), "ready unless full"),
        ]


class SkidSpec(Spec):
    """Behind a register that offers an item until it is taken: order kept, and an item is at the output as soon as it
    is offered."""

    def __init__(self, skid=Skid):
        super().__init__()
        self.skid = skid

    def specify(self, m):
        m.submodules.skid = skid = self.skid(1)
        item, push = self.free(1, "item"), Signal()
        m.d.comb += [
            push.eq(self.free(1, "valid") & (~skid.i.valid | skid.i.ready)), skid.o.ready.eq(self.free(1, "ready")),
        ]
        with m.If(~skid.i.valid | skid.i.ready):
            m.d.sync += [skid.i.valid.eq(push), skid.i.p.eq(item)]
        watch_fifo(
            m, self, name="skid", depth=2, push=push, pop=skid.o.valid & skid.o.ready,
            first_in=item, first_out=skid.o.p, valid=skid.o.valid, patience=0)
