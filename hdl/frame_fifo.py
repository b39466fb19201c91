"""Frame FIFO: 1024 event frames (section 5.1)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .fifo import SmallFifo, StreamFifo
from .frame_builder import frame_layout
from .layout import Geometry

__all__ = ["FrameFifo"]

#: Frames up to which the FIFO is in distributed memory.
DISTRIBUTED = 32


class FrameFifo(wiring.Component):
    """FIFO of event frames that knows how many frames at its head share the upper half of their
    time stamp.

    A frame carries 32 bits of time. They stay exact for a host that comes late, by any number of
    wraps, because a run of frames with one upper half is always known as such. When it is full it
    is not ready, and the builder does not start another frame.

    Members
    -------
    i, o : frames.
    level : frames inside, one that leaves counted for one clock more.
    run : frames at the head that share ``o.p.high``, three clocks after the last one left. Whoever
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
        # A few frames are not worth nine block RAMs.
        fifo = SmallFifo(shape, depth) if depth <= DISTRIBUTED else StreamFifo(shape, depth, self.ram)
        m.submodules.fifo = fifo
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        # Runs are counted a clock behind, from registers.
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
        with m.If(self.split & ~some_run):
            # What comes now belongs to the run that begins: a third one waits for `split`.
            m.d.sync += [self.run.eq(newer + came), some_run.eq(1), newer.eq(0), self.split.eq(0)]
        with m.Else():
            with m.If(joins ^ left):
                m.d.sync += [self.run.eq(self.run + Mux(left, -1, 1)), some_run.eq(joins | (self.run != 1))]
            with m.If(came & ~joins):
                m.d.sync += [newer.eq(newer + 1), self.split.eq(1)]
        return m
