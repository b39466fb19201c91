"""Line-up: passes on strobe vectors whose items are complete, so that fast nodes do not wait for slow ones.

An 80386 needs 230 us to write an event; a fast node fills a node FIFO in 2.6 us.
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry, event_writes
from ..lib.bit_sliced import planes, stepped
from ..lib.deadline import Deadline
from ..lib.fifo import SmallFifo
from ..merge.window import vector_layout

__all__ = ["Lineup", "lined_layout"]

#: Vectors that wait for the expander; three slots are reserved for those on their way.
_PLACES = 8


def lined_layout(nodes: int, halvings: int = 0) -> data.StructLayout:
    """A vector whose items are complete: vector, stamp, whether some items are longer than one nibble
    (``mixed``), whether it was passed over at its turn (``late``); with ``halvings`` halves as in
    :func:`~.window.vector_layout`."""
    return data.StructLayout({"vector": nodes, "time": 64, "mixed": 1, "late": 1}
                             | ({"halves": nodes * halvings} if halvings else {}))


class Lineup(wiring.Component):
    """Holds a vector back until all its items have ended, or until that takes too long.

    A vector whose items are single nibbles passes at once. Another one waits for the items that are
    still open, unless other FIFOs fill up meanwhile (``pressed``) or it has waited ``limit`` windows. Then
    the items that have ended leave, and the open ones are passed over. Each of them follows when it has
    ended, alone, marked ``late``, with the stamp of its own window, and before any later item of its node.
    A node has at most one open item, so its stamp, with its part of the clock, is all that is kept.

    Members
    -------
    i : entries of the strobe-vector FIFO.
    items : nodes whose items are more than one nibble.
    ended : an item of this node has ended and will be in its FIFO in the next clock.
    pressed : the FIFOs of waiting items fill up.
    now, limit : window number; maximum number of windows a vector waits.
    o : vectors in order except for late ones, none empty; all nibbles of their items can be popped.
    busy : a vector was offered or inside one clock ago.
    awaited, owing : nodes whose item has been passed over and not followed yet; there are any.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(vector_layout(nodes, geometry.halvings))),
            "items": In(nodes), "ended": In(nodes),
            "pressed": In(1), "now": In(32), "limit": In(32),
            "o": Out(stream.Signature(lined_layout(nodes, geometry.halvings))), "busy": Out(1),
            "awaited": Out(nodes), "owing": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes, halvings = self.geometry.nodes, self.geometry.halvings
        m.submodules.places = places = SmallFifo(lined_layout(nodes, halvings), _PLACES)
        m.submodules.deadline = deadline = Deadline()
        m.submodules.stamps = stamps = memory.Memory(shape=64 + halvings, depth=max(2, nodes), init=[])
        write, read = stamps.write_port(), stamps.read_port(domain="comb")
        wiring.connect(m, places.o, wiring.flipped(self.o))

        # Items that have ended, minus those that have left; in registers, so `whole` is three clocks old.
        shortest = event_writes(self.geometry.port_bits, 1)    # of those of more than one nibble
        ended = planes((self.geometry.node_depth // shortest).bit_length(), nodes, "ended")
        just = Signal(nodes)
        goes = Signal(nodes)
        whole = Signal(nodes, init=-1 % (1 << nodes))
        m.d.sync += [plane.eq(new) for plane, new in zip(ended, stepped(ended, just, goes), strict=True)]
        m.d.sync += just.eq(self.ended & self.items)
        m.d.sync += whole.eq(reduce(or_, ended) | ~self.items)

        came = Signal(data.StructLayout(
            {"vector": nodes, "time": 64} | ({"halves": nodes * halvings} if halvings else {})), reset_less=True)
        has_come = Signal()
        plain = Signal()            # it has, and all its items are single nibbles
        mixed = Signal()            # it has, and they are not
        passed = Signal(nodes)      # passed over, and not followed yet
        some_late = Signal()        # one of them has ended, a clock ago
        missing = Signal(nodes)     # items of the vector that have not ended
        waits = Signal()            # there are any ...
        sends = Signal()            # ... others
        todo = Signal(nodes)        # just passed over, their stamps not kept yet
        chosen = Signal(nodes)      # one bit
        found = Signal()            # ... is set
        choosing = Signal()         # among those that have ended
        follows = Signal()          # a late item is sent
        late_time = Signal(64, reset_less=True)
        late_half = Signal(max(halvings, 1))
        space = Signal()
        sending = Signal()          # the rest of the vector leaves, or a late item
        settled = Signal()          # ended items may leave, and nothing is to be waited for, one clock ago
        enough = Signal()           # waited long enough
        straight = Signal(init=1)   # vectors go straight on if they can
        leaves = Signal()           # ... and the one that has come does
        out = places.i.p
        m.d.comb += [
            leaves.eq(plain & straight & space), self.i.ready.eq(~has_come | leaves),
            places.i.valid.eq(leaves | sending),
            deadline.now.eq(self.now), deadline.limit.eq(self.limit), deadline.idle.eq(~mixed),
            out.vector.eq(came.vector), out.time.eq(came.time), out.mixed.eq(mixed), out.late.eq(0),
        ]
        m.d.sync += [
            space.eq(places.level < _PLACES - 3), some_late.eq((passed & whole).any()),
            settled.eq(space & (enough | ~waits)), goes.eq(0), sending.eq(0),
            enough.eq(self.pressed | deadline.due),
        ]
        with m.If(mixed):
            m.d.sync += [
                missing.eq(came.vector & ~whole), waits.eq((came.vector & ~whole).any()),
                sends.eq((came.vector & whole).any()),
            ]
        with m.If(self.i.ready & self.i.valid):
            m.d.sync += [came.vector.eq(self.i.p.vector), came.time.eq(self.i.p.time)]
        with m.If(self.i.ready):
            m.d.sync += [
                has_come.eq(self.i.valid),
                plain.eq(self.i.valid & ~(self.i.p.vector & self.items).any()),
                mixed.eq(self.i.valid & (self.i.p.vector & self.items).any()),
            ]
        number = Cat(reduce(or_, (chosen[n] for n in range(nodes) if n >> b & 1), 0)
                     for b in range(len(write.addr)))
        m.d.comb += [write.addr.eq(number), read.addr.eq(number), write.data.eq(came.time)]
        if halvings:
            for k in range(halvings):
                m.d.comb += write.data[64 + k].eq((came.halves.word_select(k, nodes) & chosen).any())
            m.d.comb += out.halves.eq(came.halves)
            with m.If(self.i.ready):
                m.d.sync += came.halves.eq(self.i.p.halves)

        with m.If(follows):
            m.d.comb += [out.vector.eq(chosen), out.time.eq(late_time), out.mixed.eq(1), out.late.eq(1)]
            if halvings:
                m.d.comb += out.halves.eq(Cat(bit.replicate(nodes) for bit in late_half))

        pool = Signal(nodes)
        m.d.comb += pool.eq(Mux(choosing, passed & whole, todo))
        m.d.sync += choosing.eq(0)
        with m.FSM():
            with m.State("STRAIGHT"):
                with m.If(some_late):
                    m.d.sync += [choosing.eq(1), straight.eq(0)]
                    m.next = "CHOOSE"
                with m.Elif(mixed):
                    m.d.sync += straight.eq(0)
                    m.next = "LOOK"
            with m.State("LOOK"):    # find the missing items
                m.next = "DECIDE"
            with m.State("DECIDE"):
                m.next = "LOOK"
                with m.If(some_late):
                    m.d.sync += choosing.eq(1)
                    m.next = "CHOOSE"
                with m.Elif(settled):
                    # An item that ends from here on is passed over all the same.
                    m.d.sync += [
                        came.vector.eq(came.vector & ~missing), passed.eq(passed | missing), todo.eq(missing),
                        sending.eq(sends),
                    ]
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.sync += goes.eq(came.vector & self.items)
                m.next = "PASS"
            with m.State("PASS"):
                m.d.sync += chosen.eq(pool & -pool)
                m.next = "KEEP"
                with m.If(~todo.any()):
                    m.d.sync += [has_come.eq(0), mixed.eq(0), straight.eq(1)]
                    m.next = "STRAIGHT"
            with m.State("KEEP"):
                m.d.comb += write.en.eq(1)
                m.d.sync += todo.eq(todo & ~chosen)
                m.next = "PASS"
            with m.State("CHOOSE"):
                m.d.sync += chosen.eq(pool & -pool)
                m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += [found.eq(chosen.any()), follows.eq(1), late_time.eq(read.data)]
                if halvings:
                    m.d.sync += late_half.eq(read.data[64:])
                m.next = "FOLLOW"
            with m.State("FOLLOW"):
                with m.If(space):
                    m.d.sync += [sending.eq(found), goes.eq(chosen), passed.eq(passed & ~chosen)]
                    m.next = "LEAVE"
            with m.State("LEAVE"):
                m.d.sync += follows.eq(0)
                m.next = "SETTLE"
            with m.State("SETTLE"):     # until `whole` is without it
                m.d.sync += straight.eq(1)
                m.next = "STRAIGHT"
        m.d.comb += [self.awaited.eq(passed), self.owing.eq(passed.any())]
        m.d.sync += self.busy.eq(self.i.valid | has_come | ~straight | (places.level != 0))
        return m
