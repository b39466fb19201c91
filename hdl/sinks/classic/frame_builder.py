"""Frame builder: the classic sink, section 3.2.1 and Figure 5.

The original needs eight cycles at 20 MHz for a frame (section 5.1); this one makes one frame per clock.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import PORT_BITS, Geometry, frame_words
from ...merge.window import vector_layout

__all__ = ["FrameBuilder", "frame_layout"]


def frame_layout(geometry: Geometry) -> data.StructLayout:
    """An entry of the frame FIFO: the event frame (word 0 lowest), the upper half of its time
    stamp, and whether it is the first of a new upper half."""
    return data.StructLayout({"frame": 32 * frame_words(geometry.nodes), "high": 32, "wrap": 1})


class FrameBuilder(wiring.Component):
    """Pops one nibble from each node FIFO whose vector bit is set and builds the event frame.

    It makes one frame per clock, four clocks from vector to frame. It holds one vector, and starts its frame only if
    the frame FIFO has a slot for it, counting frames under way, so it never has to stop in the middle. While there
    is no slot, the vectors wait.

    With narrow beats (see :class:`~.layout.Geometry`) it needs four clocks per frame: the vector waits at the
    strobe-vector FIFO, which saves the registers of four stages.

    Members
    -------
    i : entries of the strobe-vector FIFO.
    hold_wrap : an entry with ``wrap`` has to wait (see :class:`~.frame_fifo.FrameFifo`).
    freed : a frame has left the frame FIFO.
    pop, nibble : to and from the node FIFOs.
    o : frames; ``ready`` is ignored, because a slot has been reserved (proved).
    stuck : a vector waits for a slot in the frame FIFO.
    busy : a vector is held, or a frame is under way.
    done : the strobe-vector FIFO no longer counts a vector, because its frame has started.

    Attributes
    ----------
    held, holds, starts : the vector that waits for its slot; there is one; its frame starts in this clock. (With narrow
        beats the strobe-vector FIFO holds it.)
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        nodes = geometry.nodes
        self.held = Signal(vector_layout(nodes), reset_less=True)
        self.holds, self.starts = Signal(), Signal()
        super().__init__({
            "i": In(stream.Signature(vector_layout(nodes))),
            "hold_wrap": In(1), "freed": In(1),
            "pop": Out(nodes), "nibble": In(PORT_BITS * nodes),
            "o": Out(stream.Signature(frame_layout(geometry))),
            "stuck": Out(1), "busy": Out(1), "done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.geometry.nodes
        narrow = self.geometry.narrow
        slots = Signal(range(self.geometry.frame_depth + 1), init=self.geometry.frame_depth)
        slot = Signal(init=1)  # slots != 0
        start = self.starts
        no_wrap = Signal()
        started = Signal(3)
        wrap_started = Signal(6)  # until the frame FIFO reports it itself
        wrap_under_way = Signal()
        may = Signal()
        # A register holds the vector until it starts, so that no payload decides on a ``ready`` of the same clock.
        head = self.i.p if narrow else self.held
        waits = self.holds
        m.d.comb += [
            may.eq(slot & ~(head.wrap & (no_wrap | wrap_started[0]))), start.eq(waits & may),
            self.stuck.eq(waits & ~slot), self.busy.eq(started.any() | (0 if narrow else waits)),
        ]
        if narrow:
            m.d.comb += [waits.eq(self.i.valid & ~started.any()), self.i.ready.eq(started[2]), self.done.eq(started[2])]
        else:
            m.d.comb += [self.i.ready.eq(~waits | may), self.done.eq(start)]
            with m.If(self.i.ready):
                m.d.sync += waits.eq(self.i.valid)
            with m.If(self.i.ready & self.i.valid):
                m.d.sync += head.eq(self.i.p)
        m.d.sync += [
            wrap_under_way.eq(wrap_started.any()),
            no_wrap.eq(self.hold_wrap | wrap_under_way | wrap_started[0]),
        ]
        # A start comes late in its clock: it is counted in the next one, and whether it uses the last slot is known
        # beforehand.
        last = Signal()
        m.d.comb += last.eq(Mux(started[0], slots == 2, slots == 1))
        m.d.sync += slot.eq(self.freed | (slot & ~(start & last)))
        with m.If(started[0] ^ self.freed):
            m.d.sync += slots.eq(slots + Mux(self.freed, 1, -1))

        row = 16 if nodes <= 16 else 32
        if narrow:
            vector = self.i.p.vector
            m.d.sync += [
                started.eq(Cat(start, started[:2])), wrap_started.eq(Cat(start & self.i.p.wrap, wrap_started))]
            m.d.comb += [
                self.pop.eq(vector & started[0].replicate(nodes)), self.o.valid.eq(started[2]),
                self.o.p.frame.eq(Cat(*self._words(vector, row), vector, Const(0, 32 - nodes), self.i.p.time[:32])),
                self.o.p.high.eq(self.i.p.time[32:]), self.o.p.wrap.eq(self.i.p.wrap),
            ]
            return m

        # Four stages: accept the vector, pop the nibbles, register them, mask them.
        at_pop = Signal(nodes)
        at_mask = Signal(nodes)
        time_pop = Signal(64, reset_less=True)
        time_mask = Signal(64, reset_less=True)
        frame = Signal(frame_layout(self.geometry), reset_less=True)
        m.d.sync += [
            at_pop.eq(head.vector & start.replicate(nodes)), time_pop.eq(head.time),
            at_mask.eq(at_pop), time_mask.eq(time_pop),
            started.eq(Cat(start, started)), wrap_started.eq(Cat(start & head.wrap, wrap_started)),
        ]
        with m.If(started[1]):
            m.d.sync += [
                frame.frame.eq(Cat(*self._words(at_mask, row), at_mask, Const(0, 32 - nodes), time_mask[:32])),
                frame.high.eq(time_mask[32:]), frame.wrap.eq(wrap_started[1]),
            ]
        m.d.comb += [self.pop.eq(at_pop), self.o.p.eq(frame), self.o.valid.eq(started[2])]
        return m

    def _words(self, vector, row: int) -> list:
        """The words of nibbles, zero for nodes without a strobe; the row with the highest nodes is the first word."""
        nodes = self.geometry.nodes
        nibbles = Cat(*(self.nibble.word_select(i, PORT_BITS) & vector[i].replicate(PORT_BITS) for i in range(nodes)),
                      Const(0, PORT_BITS * (row - nodes)))
        return [nibbles[32 * k:32 * k + 32] for k in reversed(range(row * PORT_BITS // 32))]
