"""The classic sink: event frames, over the bus as in 1990 (section 3.3) or in blocks."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import COUNTER_BITS, Geometry
from ...merge.window import vector_layout
from ...stream.block_source import block_source
from .frame_builder import FrameBuilder
from .frame_fifo import FrameFifo
from .frame_port import FramePort
from .frames_source import FrameSource

__all__ = ["ClassicSink", "frame_access"]


def frame_access(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's access to frames over the bus, as seen from the registers.

    read, word, position : see :class:`~.frame_port.FramePort`.
    ready : a frame waits of which no word has been read.
    high : bits 63..32 of the time of the frame that waits, 0 if none does.
    run, level : of the frame FIFO.
    generated : number of frames since the reset.
    """
    return wiring.Signature({
        "read": Out(1), "word": In(32), "position": In(3), "ready": In(1), "high": In(32), "run": In(16),
        "level": In(16), "generated": In(COUNTER_BITS if geometry.narrow else 64),
    })


class ClassicSink(wiring.Component):
    """Frame builder, frame FIFO, frame port and the source of FRAMES blocks, in a row.

    When full: the builder stops, vectors wait, and the gate refuses (cause: the frame FIFO).

    Members
    -------
    i : strobe vectors.
    nibble, pop : from and to the node FIFOs.
    access : see :func:`frame_access`.
    streaming : frames leave in blocks, not over the bus.
    now, flush, ending, source, horizon : see :class:`~.frames_source.FrameSource`.
    stuck, busy, done : see :class:`~.frame_builder.FrameBuilder`.
    delivered : nodes whose nibble leaves in a frame.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(vector_layout(nodes))),
            "nibble": In(geometry.port_bits * nodes), "pop": Out(nodes),
            "access": In(frame_access(geometry)), "streaming": In(1), "now": In(32), "flush": In(32), "ending": In(1),
            "source": Out(block_source(geometry.beat_bytes)), "horizon": Out(32),
            "stuck": Out(1), "busy": Out(1), "done": Out(1), "delivered": Out(nodes),
        })

    def elaborate(self, platform):
        m = Module()
        access = self.access
        m.submodules.builder = builder = FrameBuilder(self.geometry)
        m.submodules.fifo = fifo = FrameFifo(self.geometry, self.ram)
        m.submodules.port = port = FramePort(self.geometry)
        m.submodules.source = blocks = FrameSource(self.geometry)
        wiring.connect(m, wiring.flipped(self.i), builder.i)
        wiring.connect(m, builder.o, fifo.i)
        wiring.connect(m, fifo.o, port.i)
        wiring.connect(m, port.o, blocks.i)
        wiring.connect(m, blocks.source, wiring.flipped(self.source))
        generated = Signal.like(access.generated)
        with m.If(builder.o.valid):
            m.d.sync += generated.eq(generated + 1)
        m.d.comb += [
            builder.nibble.eq(self.nibble), self.pop.eq(builder.pop), self.stuck.eq(builder.stuck),
            self.busy.eq(builder.busy), self.done.eq(builder.done),
            builder.hold_wrap.eq(fifo.split), builder.freed.eq(port.freed),

            port.stream_enable.eq(self.streaming), port.hold.eq(blocks.hold), self.delivered.eq(port.delivered),
            port.read.eq(access.read), access.word.eq(port.word), access.position.eq(port.position),
            access.ready.eq(fifo.o.valid & ~port.begun), access.high.eq(Mux(fifo.o.valid, fifo.o.p.high, 0)),
            access.run.eq(fifo.run), access.level.eq(fifo.level), access.generated.eq(generated),

            blocks.level.eq(fifo.level), blocks.run.eq(fifo.run), blocks.split.eq(fifo.split),
            # A block may be requested only if the stream will still drain at the next clock.
            blocks.streaming.eq(port.streaming & self.streaming),
            blocks.now.eq(self.now), blocks.flush.eq(self.flush), blocks.ending.eq(self.ending),
            self.horizon.eq(blocks.horizon),
        ]
        return m
