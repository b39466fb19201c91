"""Moment parser: converts the bytes of checked frames back to moments."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_BYTES, LINK_LAG_BITS, LINK_NODES, PORT_BITS
from .link_code import TIME_BITS, TIMED_MOMENT

__all__ = ["MomentParser"]


class MomentParser(wiring.Component):
    """Reads one byte per clock.

    A moment may go on in the next frame. It is therefore kept until another time comes, or a frame's time has passed
    without one. The moment after such a gap is ``torn``.

    Members
    -------
    begin : a frame can be read. Not again for 40 clocks.
    missed : a frame's time has passed without one. Not within 40 clocks after ``begin``.
    start, lag : with ``begin``: time of the frame's first clock; its lag.
    slot, byte : see :class:`~.frame_checker.FrameChecker`.
    o : moments, in the order of their times. The consumer has room for it.
    delivered, node : the first nibble of an item of this node was read.
    framed : the transmitter knows which nibbles begin an item, according to the last byte that shows it: one that
        advances no time, or one before nibbles that continue an item. Before the first such byte it is set: no nibble
        has been read that continues an item, and each of the nibbles that were read begins one.
    """

    def __init__(self):
        super().__init__({
            "begin": In(1), "missed": In(1), "start": In(TIME_BITS), "lag": In(LINK_LAG_BITS),
            "slot": Out(5), "byte": In(8), "o": Out(stream.Signature(TIMED_MOMENT)),
            "delivered": Out(1), "node": Out(range(LINK_NODES)), "framed": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        cursor, mask, nibbles = Signal(TIME_BITS), Signal(LINK_NODES), Signal(PORT_BITS * LINK_NODES)
        continues, more, torn = Signal(), Signal(LINK_NODES), Signal()
        reads, first, passes = Signal(), Signal(TIME_BITS), Signal()
        event, node, step = self.byte[7], self.byte[4:7], self.byte[:6]
        m.d.comb += first.eq(self.start - self.lag)
        with m.If(self.begin):
            m.d.comb += passes.eq(first != cursor)
            m.d.sync += [cursor.eq(first), reads.eq(1), self.slot.eq(3), continues.eq(0)]
        with m.Elif(self.missed):
            m.d.comb += passes.eq(1)
        with m.Elif(reads):
            m.d.sync += [self.slot.eq(self.slot + 1), reads.eq(self.slot != 2 + LINK_BYTES)]
            with m.If(event):
                m.d.sync += [
                    mask.eq(mask | (1 << node)), nibbles.word_select(node, PORT_BITS).eq(self.byte[:PORT_BITS]),
                    more.bit_select(node, 1).eq(continues)]
            with m.Else():
                m.d.comb += passes.eq(step.any())
                m.d.sync += [cursor.eq(cursor + step), continues.eq(self.byte[6])]
                with m.If((step == 0) | self.byte[6]):
                    m.d.sync += self.framed.eq(self.byte[6])
        m.d.comb += [
            self.o.valid.eq(passes & mask.any()), self.o.p.mask.eq(mask), self.o.p.nibbles.eq(nibbles),
            self.o.p.time.eq(cursor), self.o.p.more.eq(more), self.o.p.torn.eq(torn),
            self.delivered.eq(reads & ~self.begin & event & ~continues), self.node.eq(node),
        ]
        m.d.sync += torn.eq((torn & ~self.o.valid) | self.missed)
        with m.If(passes):
            m.d.sync += mask.eq(0)
        return m
