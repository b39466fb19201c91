"""Frame FIFO: 1024 event frames (section 5.1)."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .fifo import StreamFifo
from .frame_builder import frame_layout
from .layout import Geometry

__all__ = ["FrameFifo"]


class FrameFifo(wiring.Component):
    """FIFO of event frames that knows how many frames at its head share the upper half of their
    time stamp.

    A frame carries 32 bits of time. They stay exact for a host that comes late, by any number of
    wraps, because a run of frames with one upper half is always known as such. When it is full it
    is not ready, and the builder does not start another frame.

    Members
    -------
    i, o : frames.
    level : frames inside.
    run : frames at the head that share ``o.p.high``.
    split : a frame with another upper half is inside; a second such frame must not enter yet.
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
        m.submodules.fifo = fifo = StreamFifo(frame_layout(self.geometry), self.geometry.frame_depth, self.ram)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        older = Signal.like(self.run)  # frames before the one that wrapped
        push = Signal()
        pop = Signal()
        m.d.comb += [
            push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready),
            self.level.eq(fifo.level),
            self.run.eq(fifo.level),
        ]
        with m.If(self.split):
            m.d.comb += self.run.eq(older)
            with m.If(pop):
                m.d.sync += [older.eq(older - 1), self.split.eq(older != 1)]
        with m.Elif(push & self.i.p.wrap):
            m.d.sync += [older.eq(fifo.level - pop), self.split.eq(fifo.level != pop)]
        return m
