"""Frame FIFO: 1,024 event frames by default (section 5.1)."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import PORT_BITS, Geometry
from ...lib.fifo import SmallFifo, StreamFifo
from .frame_builder import frame_layout

__all__ = ["FrameFifo"]

#: Largest number of frames for which the FIFO is in distributed memory.
DISTRIBUTED = 32


class FrameFifo(wiring.Component):
    """FIFO of event frames that tracks how many frames at its head share the upper half of their
    time stamp.

    A frame carries 32 bits of time. They remain exact for a host that reads late, after any number of
    wraps, because a run of frames with one upper half is always known as such. When the FIFO is full it
    is not ready, and the builder does not start another frame.

    Members
    -------
    i, o : frames; with narrow beats ``o.p.wrap`` is not kept, no two frames enter within three clocks, and ``o.p.high``
        is that of the head three clocks after the last frame left.
    level : frames inside; one that leaves is counted for one more clock.
    run : frames at the head that share ``o.p.high``, three clocks after the last one left. A consumer that
        takes more than ``run`` frames in a row must pause for three clocks in between.
    split : a frame with another upper half is inside, two clocks after it entered; a second such
        frame must not enter before ``split`` is low again.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        frame = stream.Signature(frame_layout(geometry))
        count = range(geometry.frame_depth + 1)
        super().__init__({
            "i": In(frame), "o": Out(frame), "level": Out(count), "run": Out(count), "split": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        shape, depth = frame_layout(self.geometry), self.geometry.frame_depth
        if self.geometry.narrow:
            # Block RAMs are few: only the bits that a frame of this number of nodes can use are kept, see
            # `frame_words`.
            nodes = self.geometry.nodes
            upper = max(0, nodes - 8)
            shape = PORT_BITS * nodes + nodes + 32
            frame, kept = self.i.p.frame, Signal(shape)
            m.d.comb += kept.eq(Cat(
                frame[:PORT_BITS * upper], frame[32:32 + PORT_BITS * (nodes - upper)], frame[64:64 + nodes],
                frame[96:]))
        # A few frames are not worth nine block RAMs.
        if depth <= DISTRIBUTED:
            fifo = SmallFifo(shape, depth)
        else:
            fifo = StreamFifo(shape, depth, self.ram, skid=not self.geometry.narrow)
        m.submodules.fifo = fifo
        if self.geometry.narrow:
            out, fields = fifo.o.p, [0]
            for bits in (PORT_BITS * upper, PORT_BITS * (nodes - upper), nodes, 32):
                fields.append(fields[-1] + bits)
            words = [Cat(out[low:high], Const(0, 32))[:32] for low, high in pairwise(fields)]
            m.d.comb += [
                fifo.i.valid.eq(self.i.valid), fifo.i.p.eq(kept), self.i.ready.eq(fifo.i.ready),
                self.o.valid.eq(fifo.o.valid), self.o.p.frame.eq(Cat(words)),
                fifo.o.ready.eq(self.o.ready),
            ]
        else:
            wiring.connect(m, wiring.flipped(self.i), fifo.i)
            wiring.connect(m, fifo.o, wiring.flipped(self.o))
        # Runs are counted one clock late, from registers.
        came = Signal()                    # a frame entered ...
        wrapped = Signal()                 # ... with another upper half
        left = Signal()
        some_run = Signal()                # run != 0
        newer = Signal.like(self.run)      # frames of the next run
        joins = Signal()
        m.d.sync += [
            came.eq(self.i.valid & self.i.ready), wrapped.eq(self.i.p.wrap),
            left.eq(self.o.valid & self.o.ready),
        ]
        m.d.comb += [
            self.level.eq(fifo.level),
            joins.eq(came & ~self.split & ~(wrapped & some_run)),
        ]
        if self.geometry.narrow:
            # There are at most two runs: their upper halves are kept here, not with every frame.
            head, last = Signal(32), Signal(32)
            m.d.comb += self.o.p.high.eq(head)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += last.eq(self.i.p.high)
            with m.If(~some_run & (self.split | came)):
                m.d.sync += head.eq(last)
        with m.If(self.split & ~some_run):
            # Frames that come now belong to the run that begins: a third run waits for `split`.
            m.d.sync += [self.run.eq(newer + came), some_run.eq(1), newer.eq(0), self.split.eq(0)]
        with m.Else():
            with m.If(joins ^ left):
                m.d.sync += [self.run.eq(self.run + Mux(left, -1, 1)), some_run.eq(joins | (self.run != 1))]
            with m.If(came & ~joins):
                m.d.sync += [newer.eq(newer + 1), self.split.eq(1)]
        return m
