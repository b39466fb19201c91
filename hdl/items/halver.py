"""Halver: turns strobe vectors of one clock into vectors of half a clock, or those of half a clock into quarters."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.fifo import SmallFifo
from .lineup import lined_layout

__all__ = ["Halver"]

#: Vectors that wait for the expander; three slots are reserved for those on their way.
_PLACES = 8


class Halver(wiring.Component):
    """Splits each vector into the strobes of the first half of its interval and those of the second. Its interval is a
    clock; if another halver precedes it, half a clock.

    A vector whose strobes all came in one half passes as it is. Any other vector becomes two, the first half's
    before the second's. The stamp of each is twice that of its interval, plus one for the second half.
    Unless ``on`` is set, vectors and stamps pass unchanged.

    It accepts one vector per clock; a vector that becomes two takes two clocks.

    Parameters
    ----------
    nodes : number of nodes.
    further : halvers that follow.

    Members
    -------
    i : vectors with halves, none empty; the first ``nodes`` bits of the halves are this halver's, and the others pass.
    on : stamps count these halves. Must not change while anything is inside.
    o : vectors, none empty, at least three clocks after theirs came.
    busy : a vector was offered or inside one clock ago.
    """

    def __init__(self, nodes: int, further: int = 0):
        self.nodes, self.further = nodes, further
        super().__init__({
            "i": In(stream.Signature(lined_layout(nodes, further + 1))), "on": In(1),
            "o": Out(stream.Signature(lined_layout(nodes, further))), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.nodes
        m.submodules.places = places = SmallFifo(lined_layout(nodes, self.further), _PLACES)
        wiring.connect(m, places.o, wiring.flipped(self.o))

        # A vector as it came, then in two parts: the remaining ones.
        came = Signal(lined_layout(nodes, self.further + 1))
        has_come = Signal()
        parted = Signal(lined_layout(nodes, self.further))
        first = Signal(nodes)
        second = Signal(nodes)
        some_first = Signal()
        some_second = Signal()
        space = Signal()
        go = Signal()       # a part does
        move = Signal()     # the last part has left, or leaves
        halves = Signal(nodes)
        m.d.comb += [
            go.eq((some_first | some_second) & space),
            move.eq(Mux(some_first & some_second, 0, space | ~(some_first | some_second))),
            self.i.ready.eq(~has_come | move),
            halves.eq((came.halves[:nodes] if self.further else came.halves) & self.on.replicate(nodes)),
            places.i.valid.eq(go), places.i.p.eq(parted), places.i.p.vector.eq(Mux(some_first, first, second)),
        ]
        with m.If(self.on):
            m.d.comb += places.i.p.time.eq(Cat(~some_first, parted.time))
        m.d.sync += space.eq(places.level < _PLACES - 3)
        with m.If(self.i.ready):
            m.d.sync += [has_come.eq(self.i.valid), came.eq(self.i.p)]
        with m.If(move):
            m.d.sync += [
                some_first.eq(has_come & (came.vector & ~halves).any()),
                some_second.eq(has_come & (came.vector & halves).any()),
                first.eq(came.vector & ~halves), second.eq(came.vector & halves),
                parted.time.eq(came.time), parted.mixed.eq(came.mixed), parted.late.eq(came.late),
            ]
            if self.further:
                m.d.sync += parted.halves.eq(came.halves[nodes:])
        with m.Elif(go):
            m.d.sync += some_first.eq(0)
        m.d.sync += self.busy.eq(self.i.valid | has_come | some_first | some_second | (places.level != 0))
        return m
