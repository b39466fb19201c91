"""Replay: the strobes of a regeneration board's nodes again, all of them equally late."""

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

    Members
    -------
    now : the receiver's time.
    i : moments, in the order of their times, each at least three clocks before it is due.
    toggles : one bit per node.
    strobe, data : levels, as after the first flip-flop of a pad.
    """

    def __init__(self):
        super().__init__({
            "now": In(TIME_BITS), "i": In(stream.Signature(TIMED_MOMENT)), "toggles": In(LINK_NODES),
            "strobe": Out(LINK_NODES), "data": Out(PORT_BITS * LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        age, fires = Signal(TIME_BITS), Signal(LINK_NODES)
        due = Signal()
        m.d.comb += [
            age.eq(self.now - self.i.p.time), due.eq(self.i.valid & age[LINK_LAG_BITS]), self.i.ready.eq(due)]
        m.d.sync += [
            fires.eq(Mux(due, self.i.p.mask, 0)),
            self.strobe.eq((self.strobe & self.toggles) ^ fires),
        ]
        for n in range(LINK_NODES):
            with m.If(due & self.i.p.mask[n]):
                m.d.sync += self.data.word_select(n, PORT_BITS).eq(self.i.p.nibbles.word_select(n, PORT_BITS))
        return m
