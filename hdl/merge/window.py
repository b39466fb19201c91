"""Synchronization window and event strobe vector.

Section 3.2.1: strobes are sampled in successive windows; those valid within one are marked in an
event strobe vector, which goes to the strobe-vector FIFO with its time stamp. Stamps are attached
here and nowhere else.
"""

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import counted, planes, stepped

__all__ = ["Window", "vector_layout"]


def vector_layout(nodes: int, halvings: int = 0) -> data.StructLayout:
    """An entry of the strobe-vector FIFO: strobe vector, 64-bit stamp, and whether it is the first after a wrap of the
    stamp's lower half; with ``halvings`` also, for each node, whether its strobe came in the second half
    of its clock, then for each node, whether it came in the second half of that half; these are meaningful only with
    windows of one clock."""
    return data.StructLayout(
        {"vector": nodes, "time": 64, "wrap": 1} | ({"halves": nodes * halvings} if halvings else {}))


class Window(wiring.Component):
    """Collects admitted nibbles and makes one strobe vector of each window that has any.

    The paper does not define two strobes of one node in one window. Here pending is a count, kept
    in parallel with the node FIFO's write side: at the end of a window, bit i of the vector is set if node i
    has nibbles that no vector has announced yet, and one of them is announced. The second nibble
    goes into the next window. Nothing is lost or swapped. Nibbles that are carried over in this way are counted,
    because their stamps are late.

    Parameters
    ----------
    nodes : number of nodes.
    depth : number of nibbles that a node FIFO holds.
    halvings : see :attr:`~.layout.Geometry.halvings`.
    direct : entries leave at the end of their window, which saves two registers.

    Members
    -------
    admitted : a nibble entered the node FIFO at the last edge, one bit per node. It belongs to the
        window of the next clock.
    half : only with ``halvings``, valid with ``admitted``: the part of the clock in which the strobe came, in the form
        of :func:`vector_layout`. With a window of one clock nothing is carried, so it belongs to the nibble of the same
        vector.
    end, now, wrap : from :class:`~.timebase.Timebase`.
    o : entries of the strobe-vector FIFO, two clocks after the end of their window, or at its end if ``direct``.
        ``ready`` must be high: the gate admits nothing without a slot (proved).
    carried : nibbles that go into a later window than their own, one bit per node, three clocks
        after ``admitted``.
    beyond : per node, two more than the largest number of windows a nibble was carried, as
        ``bits`` planes.
    pending : some nibble or vector was on its way to ``o`` one clock ago.
    held : one clock ago, some nibble waited for the end of its window.
    moving : one clock ago, some nibble or vector on its way did not wait for the end of its window.
    """

    def __init__(self, nodes: int, depth: int, halvings: int = 0, direct: bool = False):
        self.nodes, self.depth, self.halvings, self.direct = nodes, depth, halvings, direct
        self.bits = depth.bit_length()
        super().__init__({
            "admitted": In(nodes), "end": In(1), "now": In(64), "wrap": In(1),
            "o": Out(stream.Signature(vector_layout(nodes, halvings))),
            "carried": Out(nodes), "beyond": Out(nodes).array(self.bits), "pending": Out(1),
            "held": Out(1), "moving": Out(1),
        } | ({"half": In(nodes * halvings)} if halvings else {}))

    def elaborate(self, platform):
        m = Module()
        waiting = planes(self.bits, self.nodes, "waiting")
        some = Signal(self.nodes)
        take = Signal(self.nodes)
        entered = Signal(self.nodes)
        taken = Signal(self.nodes)
        # The number waiting is updated one clock late, in registers; "some are waiting", which starts
        # everything at a window's end, is computed ahead from the nibbles on their way.
        at_least = [reduce(or_, waiting), reduce(or_, waiting[1:]),
                    reduce(or_, waiting[2:]) | (waiting[0] & waiting[1])]
        m.d.comb += take.eq(Mux(self.end, some, 0))
        m.d.sync += [
            entered.eq(self.admitted), taken.eq(take),
            some.eq(self.admitted
                    | (entered & ~taken & (~take | at_least[0]))
                    | (~(entered ^ taken) & ((~take & at_least[0]) | at_least[1]))
                    | (~entered & taken & ((~take & at_least[1]) | at_least[2]))),
        ]

        with m.If((entered ^ taken).any()):
            m.d.sync += [plane.eq(new) for plane, new in zip(waiting, stepped(waiting, entered, taken), strict=True)]

        # The stamp's lower half may wrap while no vector is made; the next vector reports it.
        vector = Signal(self.nodes)
        entry = Signal(self.o.p.shape(), reset_less=True)
        time = Signal(64, reset_less=True)
        wrapped = Signal()
        unsaid = Signal()
        first = Signal()
        m.d.comb += wrapped.eq(self.wrap | unsaid)
        m.d.sync += unsaid.eq(wrapped & ~take.any())
        stage = m.d.comb if self.direct else m.d.sync
        stage += [
            first.eq(wrapped), vector.eq(take), time.eq(self.now),
            self.o.valid.eq(vector.any()), entry.vector.eq(vector), entry.time.eq(time), entry.wrap.eq(first),
        ]
        m.d.comb += self.o.p.eq(entry)
        if self.halvings:
            half = [Signal(self.nodes * self.halvings, name=f"half{k}") for k in range(2)]
            m.d.sync += [half[0].eq(self.half), half[1].eq(half[0]), entry.halves.eq(half[1])]

        # When it has just been counted, a nibble is the last of those waiting. It is carried if it
        # is not the first of them, by as many windows as there are nibbles waiting before it. The largest lag grows by
        # one at a time, so a comparison with one more than the previous maximum is enough to keep it.
        counted_now = Signal(self.nodes)
        record = Signal(self.nodes)
        beyond = [Signal(self.nodes, name=f"beyond{b}", init=-(b == 1) % (1 << self.nodes)) for b in range(self.bits)]
        m.d.sync += [counted_now.eq(entered), self.carried.eq(counted_now & reduce(or_, waiting[1:]))]
        m.d.comb += [
            *(self.beyond[b].eq(plane) for b, plane in enumerate(beyond)),
            record.eq(counted_now & reduce(and_, (~(w ^ b) for w, b in zip(waiting, beyond, strict=True)))),
        ]
        with m.If(counted_now.any()):
            m.d.sync += [plane.eq(new) for plane, new in zip(beyond, counted(beyond, record), strict=True)]
        on_its_way = Signal(4)
        m.d.sync += on_its_way.eq(Cat(self.admitted.any(), some.any(), vector.any(), self.o.valid))
        m.d.comb += [
            self.pending.eq(on_its_way.any()), self.held.eq(on_its_way[1]),
            self.moving.eq(on_its_way[0] | on_its_way[2:].any()),
        ]
        return m
