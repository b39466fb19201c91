"""Frame port: delivers the oldest frame, over the stream or word by word through FRAME_FIFO."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import Geometry, frame_words
from .frame_builder import frame_layout

__all__ = ["FramePort"]


class FramePort(wiring.Component):
    """Delivers the oldest frame to the stream or to the bus, never parts of it to both.

    Section 3.3: "the event frame can be accessed using a single frame FIFO address". If the stream is
    enabled after the bus has read part of a frame, the stream sends all of that frame. The choice between
    stream and bus changes only between blocks.

    Members
    -------
    i : from the frame FIFO.
    stream_enable : the stream drains; else the bus.
    hold : a FRAMES block is under way; the choice is kept.
    o : frames for the stream.
    streaming : the stream drains at present.
    word, position : the word of the oldest frame that the next read returns, 0 if there is none,
        settled three clocks after the last ``read``; its index.
    read : the bus took ``word`` one clock ago; reading the last word removes the frame. Reads are at least four clocks
        apart.
    begun : part of the oldest frame has been read.
    freed : a frame has left at the last edge.
    delivered : its strobe vector, one clock later; else 0.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        frame = stream.Signature(frame_layout(geometry))
        super().__init__({
            "i": In(frame), "stream_enable": In(1), "hold": In(1), "o": Out(frame), "streaming": Out(1),
            "word": Out(32), "position": Out(3), "read": In(1), "begun": Out(1),
            "delivered": Out(geometry.nodes), "freed": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        words, nodes = frame_words(self.geometry.nodes), self.geometry.nodes
        with m.If(~self.hold):
            m.d.sync += self.streaming.eq(self.stream_enable)
        frame = self.i.p.frame
        taken = Signal()  # the bus has read the last word
        m.d.comb += [
            self.o.p.eq(self.i.p),
            self.o.valid.eq(self.i.valid & self.streaming),
            self.i.ready.eq((self.o.ready & self.streaming) | taken),
            self.begun.eq(self.position != 0),
        ]
        # The bus is slow: its view may be clocks old, as long as it is consistent.
        # A read counts if the bus saw a word two clocks before, and not an empty answer.
        there = Signal()
        shown = Signal(2)
        # Of which the position's word.
        pairs = [Signal(32, name=f"pair{k}", reset_less=True) for k in range(words // 2)]
        domain = m.d.comb if self.geometry.narrow else m.d.sync
        domain += [pair.eq(frame[64 * k:].word_select(self.position[0], 32)) for k, pair in enumerate(pairs)]
        m.d.sync += [
            taken.eq(0), shown.eq(Cat(there, shown)), there.eq(self.i.valid & ~self.streaming & ~taken),
            self.word.eq(Mux(there, Array(pairs)[self.position[1:]], 0)),
        ]
        with m.If(self.streaming):
            m.d.sync += self.position.eq(0)
        with m.Elif(self.read & shown[1]):
            m.d.sync += self.position.eq(self.position + 1)
            with m.If(self.position == words - 1):
                m.d.sync += [self.position.eq(0), taken.eq(1)]
        vector = frame[32 * (words - 2):32 * (words - 2) + nodes]
        oldest = Signal(nodes)
        m.d.sync += [
            self.freed.eq(self.i.valid & self.i.ready), oldest.eq(vector),
            self.delivered.eq(oldest & self.freed.replicate(nodes)),
        ]
        return m
