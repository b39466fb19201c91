"""Encoder: from items to codes of the COMPACT payload (``docs/frame-format.md``)."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .expander import item_layout
from .layout import BEAT_BYTES, COMPACT_BEATS, GAP_GROUPS, GROUP_BITS, Code, Geometry

__all__ = ["BEAT_GROUPS", "Encoder", "code_groups", "code_layout"]

#: Groups in a beat.
BEAT_GROUPS = 8 * BEAT_BYTES // GROUP_BITS
#: Bits of a group that count in a number.
_DIGIT = GROUP_BITS - 1
_GAP_BITS = _DIGIT * GAP_GROUPS
#: Groups that are kept free at the end of a block: the longest window, and what is not counted yet.
_MARGIN = 4 * BEAT_GROUPS


def code_groups(nodes: int) -> int:
    """Groups of the longest code: WINDOW, gap, strobe vector."""
    return 2 + GAP_GROUPS + (4 if nodes <= 16 else 8)


def code_layout(nodes: int) -> data.StructLayout:
    """Up to so many groups, lowest first. ``opens``: they are the first of a block, whose time is
    ``time``. ``closes``: there are none; the block is complete. ``item``: an item of ``node`` is
    complete with them."""
    return data.StructLayout({
        "groups": GROUP_BITS * code_groups(nodes), "count": code_groups(nodes).bit_length(),
        "opens": 1, "closes": 1, "item": 1, "node": max(1, (nodes - 1).bit_length()), "time": 64,
    })


class Encoder(wiring.Component):
    """Writes items as codes, one a clock, and says where blocks begin and end.

    A block ends between two windows: when it is nearly full, when the gap to the next window is
    too long for it, or when it is asked to (``flush``).

    Members
    -------
    i : items, windows in order.
    room : what stands behind takes eight codes more.
    flush : the open block is to be closed; high until it is.
    o : codes, four clocks after their item; never stopped, so there is no ``ready``.
    valid : ``o`` is one.
    open : a block has been begun and not closed, as of what has been taken from ``i``.
    busy : a code is on its way.
    """

    def __init__(self, geometry: Geometry):
        self.nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(item_layout(self.nodes))), "room": In(1), "flush": In(1),
            "o": Out(code_layout(self.nodes)), "valid": Out(1), "open": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.nodes

        # The item, with the gap before it. More than a gap can say: far.
        item = Signal(item_layout(nodes))
        there = Signal()
        take = Signal()
        refill = Signal()
        before = Signal(64)
        low = _GAP_BITS + 1             # bits that are subtracted; those above are compared
        above = Signal(64 - low)        # of `before`, one more
        gap = Signal(low)
        borrow = Signal()
        same = Signal()
        one_more = Signal()
        far = Signal()
        m.d.comb += [refill.eq(~there | take), self.i.ready.eq(refill)]
        with m.If(refill):
            m.d.sync += [
                there.eq(self.i.valid), item.eq(self.i.p),
                Cat(gap, borrow).eq(self.i.p.time[:low] - before[:low]),
                same.eq(self.i.p.time[low:] == before[low:]), one_more.eq(self.i.p.time[low:] == above),
            ]
            with m.If(self.i.valid):
                m.d.sync += [before.eq(self.i.p.time), above.eq(self.i.p.time[low:] + 1)]
        m.d.comb += far.eq(gap[-1] | ~(same | (one_more & borrow)))

        # What comes next.
        headed = Signal()        # code WINDOW of this window has been written
        between = Signal(init=1)  # windows are complete
        full = Signal()
        starts = Signal()        # the first item of a window
        ends = Signal()          # the block before it has to end
        head = Signal()
        close = Signal()
        m.d.comb += [
            starts.eq(item.first & ~headed),
            ends.eq(self.open & (self.flush | (there & starts & (full | far)))),
            close.eq(self.room & ends & Mux(there, starts, between)),
            head.eq(self.room & there & starts & item.many & ~close),
            take.eq(self.room & there & ~close & ~head),
        ]
        # Groups of the block; of the one before until the new one's first code has been counted.
        stale = Signal()
        written = Signal(BEAT_GROUPS.bit_length() + COMPACT_BEATS.bit_length() - 1)
        with m.If(close):
            m.d.sync += self.open.eq(0)
        with m.Elif(head | take):
            m.d.sync += self.open.eq(1)
        with m.If(head):
            m.d.sync += headed.eq(1)
        with m.Elif(take):
            m.d.sync += [headed.eq(0), between.eq(item.last)]

        # Stage 1: the choice.
        opens = ~self.open
        kinds = data.StructLayout({"head": 1, "bare": 1, "close": 1, "take": 1})
        kind1 = Signal(kinds)
        item1 = Signal(item_layout(nodes))
        gap1 = Signal(_GAP_BITS)
        opens1 = Signal()
        m.d.sync += [
            kind1.head.eq(head), kind1.close.eq(close), kind1.take.eq(take), kind1.bare.eq(take & item.many),
            item1.eq(item), opens1.eq(opens & (head | take)),
            gap1.eq(Mux(item.first & self.open, gap[:_GAP_BITS], 0)),
        ]

        # Stage 2: the number.
        kind2 = Signal(kinds)
        item2 = Signal(item_layout(nodes))
        opens2 = Signal()
        number = Signal(GROUP_BITS * GAP_GROUPS)
        last = Signal(GAP_GROUPS)     # the number's last group
        digits = [gap1[_DIGIT * k:_DIGIT * k + _DIGIT] for k in range(GAP_GROUPS)]
        beyond = [gap1[_DIGIT * (k + 1):].any() if k + 1 < GAP_GROUPS else 0 for k in range(GAP_GROUPS)]
        m.d.sync += [
            kind2.eq(kind1), item2.eq(item1), opens2.eq(opens1),
            number.eq(Cat(Cat(digit, more) for digit, more in zip(digits, beyond, strict=True))),
            last.eq(Cat((digits[k].any() if k else 1) & ~beyond[k] for k in range(GAP_GROUPS))),
        ]

        # Stage 3: what stands behind it.
        node_groups = 1 if nodes <= 16 else 2
        vector_groups = 4 if nodes <= 16 else 8
        out = self.o
        tail = Signal(GROUP_BITS * vector_groups)
        behind = Signal(GROUP_BITS * (GAP_GROUPS + vector_groups))
        m.d.comb += [
            tail.eq(Mux(kind2.head, item2.vector,
                        item2.node | item2.nibble << GROUP_BITS * node_groups)),
            behind.eq(number | reduce(or_, (
                Mux(last[k], tail << GROUP_BITS * (k + 1), 0) for k in range(GAP_GROUPS)))),
        ]
        length = Signal(range(GAP_GROUPS + 1))
        m.d.comb += length.eq(reduce(or_, (Mux(last[k], k + 1, 0) for k in range(GAP_GROUPS))))
        code = Cat(Const(8 | Code.WINDOW, GROUP_BITS), Const(0, GROUP_BITS), behind)
        m.d.sync += [
            out.groups.eq(Mux(kind2.head, code, Mux(kind2.bare, item2.nibble, behind))),
            out.count.eq(Mux(kind2.close, 0, Mux(
                kind2.head, 2 + vector_groups + length, Mux(kind2.bare, 1, node_groups + 1 + length)))),
            out.opens.eq(opens2), out.closes.eq(kind2.close), out.item.eq(kind2.take),
            out.node.eq(item2.node), out.time.eq(item2.time),
            self.valid.eq(kind2.head | kind2.close | kind2.take),
        ]
        with m.If(close):
            m.d.sync += stale.eq(1)
        with m.If(self.valid):
            m.d.sync += written.eq(Mux(out.opens, 0, written) + out.count)
            with m.If(out.opens):
                m.d.sync += stale.eq(0)
        m.d.sync += full.eq((written > COMPACT_BEATS * BEAT_GROUPS - _MARGIN) & ~stale)
        m.d.comb += self.busy.eq(there | kind1.as_value().any() | kind2.as_value().any() | self.valid)
        return m
