"""Expander: from strobe vectors to single items, the head of the extended sink.

Section 6 of the paper ("Lessons Learned") wishes for a format that spends less than a whole frame
on what is mostly one nibble: it begins by taking the windows apart.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .fifo import SmallFifo
from .layout import PORT_BITS, Geometry
from .window import vector_layout

__all__ = ["MANY", "Expander", "item_layout"]

#: Nodes in a window from which on code WINDOW is shorter than single items.
MANY = 4
#: Items that wait behind the nibbles' way; half of them are room for those on their way.
_LANDING = 16


def item_layout(nodes: int) -> data.StructLayout:
    """An item: node and nibble, first and last of its window, the window's strobe vector and stamp,
    and whether the vector has at least :data:`MANY` nodes."""
    return data.StructLayout({
        "node": max(1, (nodes - 1).bit_length()), "nibble": PORT_BITS, "first": 1, "last": 1,
        "many": 1, "vector": nodes, "time": 64,
    })


class Expander(wiring.Component):
    """Gives the nibbles of a strobe vector one by one, lowest node first, one every clock.

    Members
    -------
    i : entries of the strobe-vector FIFO.
    pop, nibble : to and from the node FIFOs; ``nibble`` is what was popped a clock ago.
    o : items, seven clocks after their vector came at the earliest.
    busy : a vector is offered, or a vector or an item is inside, a clock ago.
    """

    def __init__(self, geometry: Geometry):
        self.nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(vector_layout(self.nodes))),
            "pop": Out(self.nodes), "nibble": In(PORT_BITS * self.nodes),
            "o": Out(stream.Signature(item_layout(self.nodes))), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.nodes
        m.submodules.landing = landing = SmallFifo(item_layout(nodes), _LANDING)
        wiring.connect(m, landing.o, wiring.flipped(self.o))

        # A vector as it comes, then counted, then taken apart.
        came = Signal(data.StructLayout({"vector": nodes, "time": 64}))
        has_come = Signal()
        counted = Signal(data.StructLayout({"vector": nodes, "rest": nodes, "time": 64, "many": 1}))
        is_counted = Signal()
        present = Signal.like(counted)
        left = Signal(nodes)
        rest = Signal(nodes)    # left but the lowest
        some = Signal()         # left != 0
        first = Signal()
        room = Signal()

        lowest = Signal(nodes)
        single = Signal()
        go = Signal()
        load = Signal()
        count = Signal()
        m.d.comb += [
            lowest.eq(left & ~rest), single.eq(rest == 0),
            go.eq(some & room), load.eq(is_counted & (~some | (go & single))),
            count.eq(has_come & (~is_counted | load)), self.i.ready.eq(~has_come | count),
        ]
        m.d.sync += room.eq(landing.level < _LANDING // 2)
        with m.If(self.i.ready):
            m.d.sync += [has_come.eq(self.i.valid), came.vector.eq(self.i.p.vector), came.time.eq(self.i.p.time)]
        with m.If(load):
            m.d.sync += is_counted.eq(0)
        with m.If(count):
            m.d.sync += [
                is_counted.eq(1), counted.vector.eq(came.vector), counted.time.eq(came.time),
                counted.rest.eq(came.vector & (came.vector - 1)),
                counted.many.eq(_at_least(list(came.vector), MANY)[MANY]),
            ]
        with m.If(load):
            m.d.sync += [some.eq(1), first.eq(1), present.eq(counted), left.eq(counted.vector), rest.eq(counted.rest)]
        with m.Elif(go):
            m.d.sync += [some.eq(~single), first.eq(0), left.eq(rest), rest.eq(rest & (rest - 1))]

        # Pop, take, choose.
        popped = Signal(nodes)
        moved = [Signal(item_layout(nodes), name=f"moved{k}") for k in range(3)]
        valid = Signal(3)
        m.d.sync += [
            self.pop.eq(Mux(go, lowest, 0)), popped.eq(self.pop), valid.eq(Cat(go, valid)),
            moved[0].first.eq(first), moved[0].last.eq(single), moved[0].many.eq(present.many),
            moved[0].vector.eq(present.vector), moved[0].time.eq(present.time),
            moved[1].eq(moved[0]), moved[2].eq(moved[1]),
            moved[2].nibble.eq(reduce(or_, (
                self.nibble.word_select(n, PORT_BITS) & popped[n].replicate(PORT_BITS) for n in range(nodes)))),
            moved[2].node.eq(Cat(
                reduce(or_, (popped[n] for n in range(nodes) if n >> b & 1), 0)
                for b in range(len(moved[2].node)))),
        ]
        m.d.comb += [landing.i.valid.eq(valid[2]), landing.i.p.eq(moved[2])]
        m.d.sync += self.busy.eq(self.i.valid | has_come | is_counted | some | valid.any() | (landing.level != 0))
        return m


def _at_least(bits: list, most: int) -> list:
    """``result[k]``: at least k of ``bits`` are set, for k up to ``most``."""
    if len(bits) == 1:
        return [1, bits[0], *[0] * (most - 1)]
    half = len(bits) // 2
    low = _at_least(bits[:half], most)
    high = _at_least(bits[half:], most)
    return [1, *(reduce(or_, (low[j] & high[k - j] for j in range(k + 1))) for k in range(1, most + 1))]
