"""Specification of the frame FIFO: there is a slot for every frame, and runs are known for what they are."""

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.layout import Geometry
from hypermon.hdl.sinks.classic.frame_builder import FrameBuilder
from hypermon.hdl.sinks.classic.frame_fifo import FrameFifo

from .prover import Spec, using

__all__ = ["RunsSpec"]


def _counted(spec: Spec):
    """What a FIFO does to the number of its items: class to stand for
    both FIFOs of :mod:`hypermon.hdl.lib.fifo`, of which :mod:`.fifos` proves the level, the order and when they are
    ready. Items come out after any time."""
    shows = spec.free(1, "shows")

    class Counted(wiring.Component):
        def __init__(self, shape, depth, ram="portable"):
            self.depth = depth
            super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                              "level": Out(range(depth + 1))})

        def elaborate(self, platform):
            m = Module()
            inside, left = Signal(range(2 * self.depth)), Signal()
            push, pop = self.i.valid & self.i.ready, self.o.valid & self.o.ready
            m.d.sync += [inside.eq(inside + push - pop), left.eq(pop)]
            m.d.comb += [
                self.level.eq(inside + left), self.i.ready.eq(self.level != self.depth),
                self.o.valid.eq(shows & (inside != 0)),
            ]
            return m

    return Counted


class RunsSpec(Spec):
    """Frame builder and frame FIFO: vectors at any time, the first after a wrap of the stamp marked.

    Frames are taken as :class:`~hypermon.hdl.sinks.classic.frame_fifo.FrameFifo` asks for: up to as many in a row as
    ``run`` once was, when none had left for three clocks; or one at a time, with such a pause before it.
    """

    #: Clocks without a frame that leaves, after which ``run`` counts.
    PAUSE = 3
    #: Clocks after which a frame that came is counted.
    SETTLES = 1

    def __init__(self, fifo=FrameFifo, builder=FrameBuilder, depth=4):
        super().__init__()
        counted = _counted(self)
        self.fifo, self.builder, self.depth = using(fifo, SmallFifo=counted, StreamFifo=counted), builder, depth

    def specify(self, m: Module) -> None:
        depth = self.depth
        geometry = Geometry(nodes=1, node_depth=4, vector_depth=16, frame_depth=depth)
        m.submodules.builder = builder = self.builder(geometry)
        m.submodules.fifo = fifo = self.fifo(geometry)
        push, wrap = fifo.i.valid & fifo.i.ready, fifo.i.p.wrap
        pop, freed = fifo.o.valid & fifo.o.ready, Signal()
        came, left = Signal(2), Signal(2)      # clocks without one, as far as they matter
        calm, settled = left == self.PAUSE, came == self.SETTLES
        m.d.comb += [
            builder.i.valid.eq(self.free(1, "vector")), builder.i.p.wrap.eq(self.free(1, "wrap")),
            builder.i.p.vector.eq(1), builder.hold_wrap.eq(fifo.split), builder.freed.eq(freed),
            fifo.i.valid.eq(builder.o.valid), fifo.i.p.wrap.eq(builder.o.p.wrap),
            Assert(~builder.o.valid | fifo.i.ready, "a slot for every frame"),
        ]
        m.d.sync += [
            freed.eq(pop), left.eq(Mux(pop, 0, left + ~calm)), came.eq(Mux(push, 0, came + ~settled))]

        # Frames at the head that share the upper half of their time, and those of the next run.
        head, others = Signal(range(2 * depth)), Signal(range(2 * depth))
        joins = Signal()   # the head's run
        last = pop & (head == 1)
        m.d.comb += joins.eq((others == 0) & (~wrap | (head == 0) | last))
        with m.If(last & (others != 0)):
            m.d.sync += [head.eq(others + push), others.eq(0)]
        with m.Else():
            m.d.sync += [head.eq(head - pop + (push & joins)), others.eq(others + (push & ~joins))]
        m.d.comb += [
            Assert(~(push & wrap) | (others == 0), "no third run"),
            Assert(~calm | (fifo.run <= head), "run never says too much"),
            Assert(~(calm & settled) | (fifo.run == head), "and in the end all"),
            Assert(~(calm & settled) | (fifo.split == (others != 0)), "split if there is another run"),
        ]

        # Who takes them.
        owed = Signal(range(2 * depth))
        starts = self.free(1, "starts") & (owed == 0) & calm
        m.d.comb += fifo.o.ready.eq(self.free(1, "takes") & ((owed != 0) | calm))
        with m.If(starts & ~pop):
            m.d.sync += owed.eq(fifo.run)
        with m.Elif(pop & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        m.d.comb += Assert(owed <= head, "all frames of a block share the upper half of their time")
