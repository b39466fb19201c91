"""Event mask: discards unwanted events before they reach the link."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..items.expander import item_layout
from ..layout import EVENT_IDS, EVENT_MASK_ROW, PORT_BITS, Geometry
from ..lib.fifo import SmallFifo

__all__ = ["EventMask", "mask_entry", "masked_layout"]

#: Nibbles (or bytes) that wait until the id of their event is known, and slots reserved for those on their way.
_WAITING, _MARGIN = 16, 4


def masked_layout(nodes: int, port_bits: int = PORT_BITS) -> data.StructLayout:
    """A nibble of an item, or, if ``void``, the remainder of an item that was the last of its window: no nibble,
    only the end of the window."""
    return data.StructLayout({**item_layout(nodes, port_bits).members, "void": 1})


def mask_entry() -> data.StructLayout:
    """Eight ids with the same upper bits, ``row``: those whose bit is set are filtered out."""
    return data.StructLayout({
        "out": EVENT_MASK_ROW, "row": (EVENT_IDS // EVENT_MASK_ROW - 1).bit_length()})


class EventMask(wiring.Component):
    """Looks the id of every event up in a mask, and discards the events that the mask filters out.

    An event's id is its second and third nibble, or with 8-bit ports its second byte: the part before it
    waits for it. Items of other nodes pass,
    and so do all items until the mask is set. The id of an event that was aborted is used as it is,
    with nibbles of 0 in place of the missing ones.

    Members
    -------
    i : nibbles of items.
    o : nibbles that are kept, the first remaining one of a window marked ``first``; see :func:`masked_layout`. At least
        six clocks later.
    events : nodes in event mode.
    load, entry : a pulse sets eight bits of the mask, see :func:`mask_entry`; not while items pass.
    dropped : an item was discarded, one clock ago.
    busy : something is inside.
    """

    def __init__(self, geometry: Geometry):
        self.nodes, self.port_bits = geometry.nodes, geometry.port_bits
        super().__init__({
            "i": In(stream.Signature(item_layout(self.nodes, self.port_bits))),
            "o": Out(stream.Signature(masked_layout(self.nodes, self.port_bits))),
            "events": In(self.nodes), "load": In(1), "entry": In(mask_entry()), "dropped": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        shape = item_layout(self.nodes, self.port_bits)
        m.submodules.items = items = SmallFifo(shape, _WAITING)
        m.submodules.verdicts = verdicts = SmallFifo(1, _WAITING)
        m.submodules.mask = mask = memory.Memory(
            shape=EVENT_MASK_ROW, depth=EVENT_IDS // EVENT_MASK_ROW, init=[])
        write, read = mask.write_port(), mask.read_port(domain="comb")
        m.d.comb += [write.addr.eq(self.entry.row), write.data.eq(self.entry.out), write.en.eq(self.load)]

        # Input: a nibble as it comes; whether the item is judged by it; its row of the mask; its bit.
        came = Signal(shape, reset_less=True)
        has_come = Signal()
        of_event = Signal()
        place = Signal(2)           # position in its item: 0, 1, 2, more
        lower = Signal(self.port_bits)  # the nibble before
        judged = Signal(3)
        is_event = Signal(2)
        identity = Signal(2 * PORT_BITS)
        row = Signal(EVENT_MASK_ROW)
        column = Signal(3)
        out = Signal()
        id_place, event_id = 2, Cat(lower, came.nibble)
        if self.port_bits != PORT_BITS:
            id_place, event_id = 1, came.nibble
        m.d.comb += [
            items.i.valid.eq(has_come), items.i.p.eq(came), of_event.eq(self.events.bit_select(came.node, 1)),
            read.addr.eq(identity[3:]), verdicts.i.valid.eq(judged[2]), verdicts.i.p.eq(out),
        ]
        m.d.sync += [
            self.i.ready.eq(items.level < _WAITING - _MARGIN), has_come.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += came.eq(self.i.p)
        with m.If(has_come):
            m.d.sync += [lower.eq(came.nibble), place.eq(Mux(came.begins, 1, place + ~place.all()))]
        m.d.sync += [
            judged.eq(Cat(has_come & Mux(of_event, (place == id_place) & ~came.begins, came.begins), judged)),
            identity.eq(event_id), is_event.eq(Cat(of_event, is_event)),
            row.eq(read.data), column.eq(identity[:3]),
            out.eq(is_event[1] & row.bit_select(column, 1)),
        ]

        # Output, when the verdict is known. A window that loses its first item begins with its next one, and
        # one that loses its last ends with a void entry.
        head = items.o.p
        kept = Signal(self.o.p.shape(), reset_less=True)
        gone = Signal()         # the item under way is discarded
        drop = Signal()
        take = Signal()         # nothing advances unless `o` does
        owed = Signal()         # the next nibble that is kept is the first
        m.d.comb += [
            drop.eq(Mux(head.begins, verdicts.o.p, gone)),
            take.eq(items.o.valid & (~head.begins | verdicts.o.valid) & self.o.ready),
            items.o.ready.eq(take), verdicts.o.ready.eq(take & head.begins),
        ]
        m.d.sync += self.dropped.eq(take & drop & head.begins)
        with m.If(take):
            m.d.sync += [gone.eq(drop), owed.eq(drop & (owed | head.first) & ~head.last)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(take & (~drop | head.last))
        with m.If(take):
            m.d.sync += [
                *(kept[name].eq(head[name]) for name in shape.members),
                kept.first.eq(~drop & (owed | head.first)), kept.void.eq(drop),
            ]
        m.d.comb += self.o.p.eq(kept)
        m.d.comb += self.busy.eq(has_come | judged.any() | items.o.valid | (items.level != 0) | self.o.valid)
        return m
