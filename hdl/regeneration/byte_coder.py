"""Byte coder: converts moments (a time, and the nibbles of that clock) to the bytes of frames."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_ADVANCE, LINK_BYTES, LINK_LAG_BITS, LINK_MORE, LINK_NODES, LINK_SYNC, PORT_BITS
from .link_code import MOMENT

__all__ = ["ByteCoder"]

_ADVANCE_BITS = LINK_ADVANCE.bit_length() - 1
_STEP_BITS = LINK_MORE.bit_length() - 1
#: Slots in which the first and the last byte is coded, one before that in which it is sent.
_FIRST, _LAST = 2, 1 + LINK_BYTES
#: The lag of a frame that begins with nothing to send: more clocks than a moment needs to pass the FIFO.
_IDLE = 8


class ByteCoder(wiring.Component):
    """Codes one byte per slot of four clocks, for the next slot.

    A frame's first time is that of the oldest moment that has not been sent completely, or else 8 clocks before the
    frame's first clock: a moment that is not yet at the FIFO's end is younger than that. Its nibbles follow, first
    those that begin an item, then those that continue one. Bytes of time come between moments and before the first
    nibble that continues an item, and fill the frame.

    Members
    -------
    now : number of the clock; bits 1..0 are the phase, bits 6..2 the slot.
    side : side channel, taken in phase 2 of slot 1.
    i : moments. A moment's stamp is in the past, by less than 2**12 clocks.
    framed : some node has items of more than one nibble; the bytes that fill a frame report this to the receiver.
    byte : valid in phase 3: the byte of the next slot; not in slots 29 and 30, before the check.
    sent, node : in phase 3: that byte is the first nibble of an item of this node.
    """

    def __init__(self):
        super().__init__({
            "now": In(LINK_LAG_BITS), "side": In(4), "framed": In(1), "i": In(stream.Signature(MOMENT)),
            "byte": Out(8), "sent": Out(1), "node": Out(range(LINK_NODES)),
        })

    def elaborate(self, platform):
        m = Module()
        phase, slot = self.now[:2], self.now[2:7]
        moment = self.i.p
        begin = Cat(Const(0, 7), self.now[7:])
        cursor, lag, ahead = (Signal(LINK_LAG_BITS, name=name) for name in ("cursor", "lag", "ahead"))
        done, left, pick, lowest, first = (
            Signal(LINK_NODES, name=name) for name in ("done", "left", "pick", "lowest", "first"))
        # The nibble that is due continues an item; what the bytes before it say of it.
        more, told = Signal(), Signal()
        has, due, far, active = (Signal(name=name) for name in ("has", "due", "far", "active"))
        node, nibble = Signal(range(LINK_NODES)), Signal(PORT_BITS)
        event, final = Signal(), Signal()       # in phase 2: the byte is a nibble; the last one of its moment

        # Phase 0: the moment that is due; how far ahead it is; its lowest nibbles that have not been sent.
        rest = moment.mask & ~done
        begins = rest & ~moment.more
        with m.If(phase == 0):
            m.d.sync += [
                has.eq(self.i.valid), ahead.eq(moment.stamp - cursor), left.eq(rest), lowest.eq(rest & -rest),
                first.eq(begins & -begins), more.eq(~begins.any()),
                active.eq((slot >= _FIRST) & (slot <= _LAST))]
            with m.If(slot == 0):
                m.d.sync += [
                    cursor.eq(Mux(self.i.valid, moment.stamp, begin - _IDLE)),
                    lag.eq(Mux(self.i.valid, begin - moment.stamp, _IDLE)), told.eq(0),
                ]
        # Phase 1: the one that is sent. What takes the moment is a flip-flop, because the FIFO's logic follows it.
        m.d.comb += [
            pick.eq(Mux(more, lowest, first)),
            due.eq(active & has & (ahead == 0) & (told == more)),
        ]
        m.d.sync += [event.eq(0), final.eq(0)]
        with m.If(phase == 1):
            m.d.sync += [
                event.eq(due), far.eq(ahead[_STEP_BITS:].any()), final.eq(due & (left == pick)),
                node.eq(reduce(or_, (Mux(pick[n], n, 0) for n in range(LINK_NODES)))),
                nibble.eq(reduce(or_, (moment.nibbles.word_select(n, PORT_BITS) & pick[n].replicate(PORT_BITS)
                                       for n in range(LINK_NODES)))),
            ]
        # Phase 2: the byte.
        m.d.comb += self.i.ready.eq(final)
        with m.If(phase == 2):
            with m.If(active):
                with m.If(~has):
                    m.d.sync += [self.byte.eq(Mux(self.framed, LINK_MORE, 0)), told.eq(self.framed)]
                with m.Elif(event):
                    m.d.sync += [self.byte.eq(Cat(nibble, node, 1)), done.eq(Mux(final, 0, done | pick))]
                with m.Elif(far):
                    m.d.sync += [
                        self.byte.eq(Cat(Const(LINK_ADVANCE, _STEP_BITS), more)), told.eq(more),
                        cursor[_ADVANCE_BITS:].eq(cursor[_ADVANCE_BITS:] + 1)]
                with m.Else():
                    m.d.sync += [
                        self.byte.eq(Cat(ahead[:_STEP_BITS], more)), told.eq(more), cursor.eq(moment.stamp)]
            with m.Elif(slot == 0):
                m.d.sync += self.byte.eq(lag[:8])
            with m.Elif(slot == 1):
                m.d.sync += self.byte.eq(Cat(lag[8:], self.side))
            with m.Else():
                m.d.sync += self.byte.eq(LINK_SYNC)
        m.d.sync += self.sent.eq(event & ~more)
        m.d.comb += self.node.eq(node)
        return m
