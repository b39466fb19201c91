"""Replay: repeats the strobes of a regeneration board's nodes, all with the same delay."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_LAG_BITS, LINK_NODES, PORT_BITS
from .link_code import TIME_BITS, TIMED_MOMENT

__all__ = ["Replay"]


class Replay(wiring.Component):
    """Replays each moment ``LINK_REPLAY_CLOCKS`` clocks after its time.

    Data change with the moment, and the strobe follows one clock later: it is high for one clock, or changes its level
    if it ``toggles``, as it must if both edges of the node's strobe are active. The intake samples before the edge.

    With a transmitter that knows which nibbles begin an item (``framed``), two levels per node change with the data.
    ``further``: the nibble continues an item. ``torn``: it does not continue the item that may be open: it begins
    another one, or nibbles before it may have been lost.

    Members
    -------
    now : the receiver's time.
    i : moments, in the order of their times, each at least three clocks before it is due.
    toggles : one bit per node.
    framed : see :class:`~.moment_parser.MomentParser`.
    strobe, data, further, torn : levels, as after the first flip-flop of a pad.
    """

    def __init__(self):
        super().__init__({
            "now": In(TIME_BITS), "i": In(stream.Signature(TIMED_MOMENT)), "toggles": In(LINK_NODES),
            "framed": In(1), "strobe": Out(LINK_NODES), "data": Out(PORT_BITS * LINK_NODES),
            "further": Out(LINK_NODES), "torn": Out(LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        age, fires = Signal(TIME_BITS), Signal(LINK_NODES)
        due, gap = Signal(), Signal(LINK_NODES)     # nodes whose next nibble follows a gap
        m.d.comb += [
            age.eq(self.now - self.i.p.time), due.eq(self.i.valid & age[LINK_LAG_BITS]), self.i.ready.eq(due)]
        m.d.sync += [
            fires.eq(Mux(due, self.i.p.mask, 0)),
            self.strobe.eq((self.strobe & self.toggles) ^ fires),
        ]
        for n in range(LINK_NODES):
            lost = gap[n] | self.i.p.torn
            with m.If(due & self.i.p.mask[n]):
                m.d.sync += [
                    self.data.word_select(n, PORT_BITS).eq(self.i.p.nibbles.word_select(n, PORT_BITS)),
                    self.further[n].eq(self.framed & self.i.p.more[n]),
                    self.torn[n].eq(self.framed & (lost | ~self.i.p.more[n])), gap[n].eq(0),
                ]
            with m.Elif(due):
                m.d.sync += gap[n].eq(lost)
        return m
