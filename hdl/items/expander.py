"""Expander: turns strobe vectors into single nibbles, each with its position in item and window.

Section 6 of the paper ("Lessons Learned") wishes for a format that spends less than a whole frame
on what is mostly one nibble. The expander begins that by taking the windows apart.
"""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import EVENT_SIZE_BITS, PORT_BITS, Geometry, word_writes
from ..lib.fifo import SmallFifo
from .lineup import lined_layout

__all__ = ["MANY", "Expander", "item_layout"]

#: Number of nodes in a window from which on code WINDOW is shorter than single items.
MANY = 4
#: Items that wait at the output; half of the slots are reserved for those on their way.
_LANDING = 16
#: Clocks from a pop to the nibble in a register.
_POP = 3
#: Bits of the number of nibbles after an item's first, two for each byte of an event.
_REST_BITS = EVENT_SIZE_BITS + 1


def item_layout(nodes: int, port_bits: int = PORT_BITS) -> data.StructLayout:
    """A nibble of an item: its node; whether it is the first and the last of its window, and of its item;
    whether the window has at least :data:`MANY` nodes, all with single nibbles; whether its item was
    passed over; the window's strobe vector and stamp; and with the last nibble of an item that was
    aborted, how many of its nibbles are missing. With 8-bit ports a byte takes the place of a nibble."""
    return data.StructLayout({
        "node": max(1, (nodes - 1).bit_length()), "nibble": port_bits, "first": 1, "last": 1, "begins": 1,
        "many": 1, "late": 1, "missing": _REST_BITS, "vector": nodes, "time": 64,
    })


class Expander(wiring.Component):
    """Outputs the nibbles of a strobe vector one by one, lowest node first.

    If all items of a vector are single nibbles, it outputs one per clock. Otherwise an item takes three clocks
    more than it has nibbles, and an event six more: the length is in the first nibble, which has to leave the
    FIFO first.

    Members
    -------
    i : vectors whose items are complete.
    words, events : nodes in word mode; nodes in event mode, which takes precedence.
    pop : to the node FIFOs, one bit per node.
    fresh : the pop begins an item; an item that was cut short returns nothing more until then.
    nibble : the nibble popped one clock ago.
    cut : the nibble is missing: the item was cut short, one bit per node.
    o : nibbles, at least eight clocks after their vector came.
    busy : a vector was offered, or a vector or an item was inside, one clock ago.
    """

    def __init__(self, geometry: Geometry):
        self.nodes, self.port_bits = geometry.nodes, geometry.port_bits
        super().__init__({
            "i": In(stream.Signature(lined_layout(self.nodes))),
            "words": In(self.nodes), "events": In(self.nodes),
            "pop": Out(self.nodes), "fresh": Out(1),
            "nibble": In(self.port_bits * self.nodes), "cut": In(self.nodes),
            "o": Out(stream.Signature(item_layout(self.nodes, self.port_bits))), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes, port_bits = self.nodes, self.port_bits
        layout = item_layout(nodes, port_bits)
        m.submodules.landing = landing = SmallFifo(layout, _LANDING)
        wiring.connect(m, landing.o, wiring.flipped(self.o))

        # A vector as it comes, then counted, then taken apart.
        came = Signal(lined_layout(nodes), reset_less=True)
        has_come = Signal()
        # Bit j: more than j of these four nodes.
        of_quad = [Signal(MANY, name=f"of_quad{k}", reset_less=True) for k in range(-(-nodes // 4))]
        counted = Signal(data.StructLayout({
            "vector": nodes, "rest": nodes, "time": 64, "many": 1, "mixed": 1, "late": 1}), reset_less=True)
        is_counted = Signal()
        present = Signal.like(counted, reset_less=True)
        left = Signal(nodes)
        rest = Signal(nodes)    # left without the lowest
        some = Signal()         # left != 0
        single = Signal()       # rest == 0
        plain = Signal()        # all items are single nibbles
        first = Signal()
        room = Signal()

        lowest = Signal(nodes)
        go = Signal()           # a nibble is popped ...
        owner = Signal(nodes)   # ... of this node
        begins = Signal()
        ends = Signal()
        ended = Signal()        # all nibbles of a longer item are popped
        step = Signal()         # on to the next node
        load = Signal()
        count = Signal()
        m.d.comb += [
            lowest.eq(left & ~rest), step.eq((plain & room) | ended),
            load.eq(is_counted & (~some | (step & single))),
            count.eq(has_come & (~is_counted | load)), self.i.ready.eq(~has_come | count),
        ]
        m.d.sync += room.eq(landing.level < _LANDING // 2)
        with m.If(self.i.ready):
            m.d.sync += has_come.eq(self.i.valid)
        with m.If(self.i.ready & self.i.valid):
            m.d.sync += [
                came.eq(self.i.p),
                *(quad.eq(Cat(_at_least(_each(self.i.p.vector[4 * k:4 * k + 4]), MANY)[1:]))
                  for k, quad in enumerate(of_quad)),
            ]
        with m.If(load):
            m.d.sync += is_counted.eq(0)
        with m.If(count):
            m.d.sync += [
                is_counted.eq(1), counted.vector.eq(came.vector), counted.time.eq(came.time),
                counted.rest.eq(came.vector & (came.vector - 1)), counted.mixed.eq(came.mixed),
                counted.many.eq(_at_least([[1, *quad] for quad in of_quad], MANY)[MANY] & ~came.mixed),
                counted.late.eq(came.late),
            ]
        with m.If(load):
            m.d.sync += [
                some.eq(1), plain.eq(~counted.mixed), present.eq(counted), left.eq(counted.vector),
                rest.eq(counted.rest), single.eq(counted.rest == 0),
            ]
        with m.Elif(step):
            m.d.sync += [
                some.eq(~single), plain.eq(plain & ~single), left.eq(rest), rest.eq(rest & (rest - 1)),
                single.eq(~_at_least(_each(rest), 2)[2]),
            ]
        with m.If(load):
            m.d.sync += first.eq(1)
        with m.Elif(go):
            m.d.sync += first.eq(0)

        # Single nibbles leave at once; for another vector the type of each node's item is looked up.
        slow = Signal(nodes)
        is_event = Signal()
        is_word = Signal()
        behind = Signal(_REST_BITS)
        to_come = Signal(_POP)
        moved = [Signal(layout, name=f"moved{k}", reset_less=True) for k in range(4)]
        m.d.sync += ended.eq(0)
        with m.FSM() as fsm:
            with m.State("NODE"):
                m.d.comb += [begins.eq(1), ends.eq(1), go.eq(plain & room)]
                m.d.sync += slow.eq(lowest)
                with m.If(some & present.mixed):
                    m.next = "KIND"
            with m.State("KIND"):
                m.d.sync += [is_event.eq((slow & self.events).any()), is_word.eq((slow & self.words).any())]
                m.next = "FIRST"
            with m.State("FIRST"):
                m.d.comb += [begins.eq(1), ends.eq(~is_event & ~is_word), go.eq(room)]
                m.d.sync += [behind.eq(word_writes(port_bits) - 1), to_come.eq(1)]
                with m.If(room):
                    with m.If(is_event):
                        m.next = "LENGTH"
                    with m.Elif(is_word):
                        m.next = "REST"
                    with m.Else():
                        m.d.sync += ended.eq(1)
                        m.next = "DONE"
            with m.State("LENGTH"):
                m.d.sync += [
                    to_come.eq(to_come << 1),
                    behind.eq(moved[2].nibble[:EVENT_SIZE_BITS] << (8 // port_bits - 1)),
                ]
                with m.If(to_come[-1]):
                    m.next = "REST"
            with m.State("REST"):
                m.d.comb += [go.eq(room), ends.eq(behind == 1)]
                with m.If(room):
                    m.d.sync += behind.eq(behind - 1)
                    with m.If(ends):
                        m.d.sync += ended.eq(1)
                        m.next = "DONE"
            with m.State("DONE"):
                m.next = "NODE"
        m.d.comb += owner.eq(Mux(present.mixed, slow, lowest))

        # Pop, take, choose. A stage loads only what is valid.
        popped = Signal(nodes)
        valid = Signal(4)
        absent = Signal()
        missing = Signal(_REST_BITS)
        final = Signal(3)       # ends an item
        m.d.sync += [
            self.pop.eq(Mux(go, owner, 0)), self.fresh.eq(begins), popped.eq(self.pop), valid.eq(Cat(go, valid)),
            final.eq(Cat(ends, final)), absent.eq((popped & self.cut).any()),
        ]
        with m.If(go):
            m.d.sync += [
                moved[0].first.eq(first), moved[0].last.eq(single & ends), moved[0].time.eq(present.time),
                *(moved[0][name].eq(present[name]) for name in ("many", "late", "vector")), moved[0].begins.eq(begins),
            ]
        for k, (old, new) in enumerate(pairwise(moved)):
            with m.If(valid[k]):
                m.d.sync += new.eq(old)
        with m.If(valid[1]):
            m.d.sync += [
                moved[2].nibble.eq(reduce(or_, (
                    self.nibble.word_select(n, port_bits) & popped[n].replicate(port_bits) for n in range(nodes)))),
                moved[2].node.eq(Cat(
                    reduce(or_, (popped[n] for n in range(nodes) if n >> b & 1), 0)
                    for b in range(len(moved[2].node)))),
            ]
        with m.If(valid[2]):
            m.d.sync += missing.eq(Mux(moved[2].begins, 0, missing) + absent)
        m.d.sync += moved[3].missing.eq(Mux(final[2], Mux(moved[2].begins, 0, missing) + absent, 0))
        m.d.comb += [landing.i.valid.eq(valid[3]), landing.i.p.eq(moved[3])]
        m.d.sync += self.busy.eq(
            self.i.valid | has_come | is_counted | some | ~fsm.ongoing("NODE") | valid.any() | (landing.level != 0))
        return m


def _each(bits) -> list:
    """Input of :func:`_at_least` for single bits."""
    return [[1, bit] for bit in bits]


def _at_least(counts: list, most: int) -> list:
    """``result[k]``: at least k bits are set in all parts of ``counts`` together, for k up to ``most``."""
    if len(counts) == 1:
        return [*counts[0], *[0] * (most + 1 - len(counts[0]))]
    half = len(counts) // 2
    low = _at_least(counts[:half], most)
    high = _at_least(counts[half:], most)
    return [1, *(reduce(or_, (low[j] & high[k - j] for j in range(k + 1))) for k in range(1, most + 1))]
