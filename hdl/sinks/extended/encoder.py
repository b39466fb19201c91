"""Encoder: turns items into codes of the COMPACT payload (``docs/frame-format.md``)."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import BEAT_BYTES, COMPACT_BEATS, GAP_GROUPS, GROUP_BITS, PORT_BITS, SLIM_BYTES, Code, Geometry
from ...trigger.event_mask import masked_layout

__all__ = ["BEAT_GROUPS", "CLOSING", "Encoder", "WORD_GROUPS", "code_groups", "code_layout"]

#: Groups in a beat.
BEAT_GROUPS = 8 * BEAT_BYTES // GROUP_BITS
#: Groups in a beat of 4 bytes, and clocks without a code after the end of a block then, see
#: :class:`~.word_packer.WordPacker`.
WORD_GROUPS = 8 * SLIM_BYTES // GROUP_BITS
CLOSING = 4
#: Bits of a group that belong to the number.
_DIGIT = GROUP_BITS - 1
_GAP_BITS = _DIGIT * GAP_GROUPS
#: Groups that are reserved at the end of a block for codes that are not counted yet.
_MARGIN = 3 * BEAT_GROUPS
#: Groups of the longest item without its node, with a gap of 0 before it and the number of missing nibbles after
# it.
_ITEM_GROUPS = {PORT_BITS: 1 + 31 + 4, 8: 1 + 2 * 16 + 4}


def code_groups(nodes: int) -> int:
    """Groups of the longest code: WINDOW, gap, strobe vector."""
    return 2 + GAP_GROUPS + (4 if nodes <= 16 else 8)


def window_groups(nodes: int, single: bool, port_bits: int = PORT_BITS) -> int:
    """Groups of the longest window: of single nibbles (or bytes), or of any items."""
    if single:
        return code_groups(nodes) + nodes * port_bits // GROUP_BITS
    return GAP_GROUPS + nodes * (_ITEM_GROUPS[port_bits] + (1 if nodes <= 16 else 2))


def code_layout(nodes: int) -> data.StructLayout:
    """Up to the given number of groups, lowest first. ``opens``: they are the first of a block, whose time is
    ``time``. ``closes``: there are none; the block is complete. ``item``: an item of ``node`` begins
    with them."""
    return data.StructLayout({
        "groups": GROUP_BITS * code_groups(nodes), "count": code_groups(nodes).bit_length(),
        "opens": 1, "closes": 1, "item": 1, "node": max(1, (nodes - 1).bit_length()), "time": 64,
    })


class _Arriving:
    """Two stages of items before the present one; between them a gap, or an age, is computed."""

    def __init__(self, layout):
        self.came = Signal(layout, reset_less=True)
        self.has_come = Signal()
        self.item = Signal(layout, reset_less=True)
        self.there = Signal()       # `item` is one
        self.held = Signal()        # ... and waits for another one, which needs a code at least
        self.blocked = Signal()     # ... and the next has come
        self.gap = Signal(_GAP_BITS, reset_less=True)
        self.far = Signal(3)
        self.move = Signal()        # `came` becomes `item`


class _Present:
    """The present item, and which of its codes is written in this clock."""

    def __init__(self, layout):
        self.present = Signal(layout, reset_less=True)
        self.present_gap = Signal(_GAP_BITS, reset_less=True)
        self.none = Signal(init=1)      # of its codes is left
        self.load = Signal()            # the next item becomes the present one
        self.one = Signal()             # it needs one more code only
        self.close = Signal()           # written: the end of the block before it,
        self.head = Signal()            # ... the head of its window,
        self.take = Signal()            # ... the item itself,
        self.miss = Signal()            # ... the number of missing nibbles
        self.full = Signal()            # the block is nearly full
        self.stale = Signal()           # that is of the block before
        self.far = Signal()             # with short beats: its number is long


class _Written:
    """A code on its way through the first three of four stages, and the numbers at the first."""

    def __init__(self, present):
        kinds = data.StructLayout({"head": 1, "bare": 1, "late": 1, "missing": 1, "close": 1, "item": 1, "take": 1})
        self.kind = [Signal(kinds, name=f"kind{k}") for k in range(1, 4)]
        self.loaded = Signal(3)     # stages with contents; only those load
        self.opens = [Signal(name=f"opens{k}") for k in range(1, 4)]
        self.node = [Signal.like(present.node, name=f"node{k}", reset_less=True) for k in range(1, 4)]
        self.nibble = [Signal.like(present.nibble, name=f"nibble{k}", reset_less=True) for k in range(1, 4)]
        self.time = [Signal(64, name=f"time{k}", reset_less=True) for k in range(1, 4)]
        self.vector = Signal.like(present.vector, reset_less=True)
        self.missing = Signal.like(present.missing, reset_less=True)
        self.gap1 = Signal(_GAP_BITS, reset_less=True)


class Encoder(wiring.Component):
    """Writes items as codes, one per clock, and marks where blocks begin and end.

    A block ends between two windows: when it is nearly full, when the next window's number
    differs in more bits than a gap has, or when a flush is requested (``flush``). A late item is written with its
    age. If its age is too large, it gets a block of its own, as if it were not late.

    Members
    -------
    i : nibbles of items, windows in order except for late ones; a void entry writes nothing.
    single : all items are single nibbles.
    room : the downstream stage accepts eight more codes.
    flush : the open block is to be closed; high until it is, and one clock longer.
    o : codes, at least seven clocks after their item; never stopped, so there is no ``ready``. With beats of 4 bytes
        with the pauses that :class:`~.word_packer.WordPacker` needs.
    valid : ``o`` is a code.
    open : a block has been begun and not closed, by the nibbles that were accepted from ``i`` so far.
    busy : a code is on its way.
    """

    def __init__(self, geometry: Geometry):
        self.nodes, self.port_bits, self.slim = geometry.nodes, geometry.port_bits, geometry.slim
        super().__init__({
            "i": In(stream.Signature(masked_layout(self.nodes, self.port_bits))),
            "single": In(1), "room": In(1), "flush": In(1),
            "o": Out(code_layout(self.nodes)), "valid": Out(1), "open": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        layout = masked_layout(self.nodes, self.port_bits)
        arriving, present = _Arriving(layout), _Present(layout)
        self._pace(m, arriving, present)
        written = _Written(present.present)
        self._arrive(m, arriving, present)
        self._choose(m, arriving, present)
        self._enter(m, present, written)
        both, length = self._spell(m, written)
        self._write(m, written, both, length)
        self._fill_block(m, present)
        m.d.comb += self.busy.eq(
            arriving.has_come | arriving.there | ~present.none | Cat(written.kind).any() | self.valid)
        return m

    @property
    def _groups(self) -> tuple[int, int, int]:
        """Groups of a write, of a node's number, of a strobe vector."""
        return (self.port_bits // GROUP_BITS, *((1, 4) if self.nodes <= 16 else (2, 8)))

    def _pace(self, m, arriving, now):
        """`may`: a code may be written. Short beats need pauses after long codes, and after the end of a block."""
        if not self.slim:
            self.may = self.room
            return
        write_groups, node_groups, _ = self._groups
        self.may = may = Signal()
        pauses = Signal(CLOSING)
        after = Signal(CLOSING)
        pause = (1 << (code_groups(self.nodes) - 1) // WORD_GROUPS) - 1     # after the longest code
        with m.If(now.close):
            m.d.comb += after.eq(-1)
        with m.Elif(now.head | (now.take & (now.present.late | now.far))):
            m.d.comb += after.eq(pause)
        with m.Else():
            m.d.comb += after.eq(pauses)
        m.d.sync += [pauses.eq(after >> 1), may.eq(self.room & ~after[0])]
        with m.If(now.load):
            m.d.sync += now.far.eq(arriving.gap[_DIGIT * (WORD_GROUPS - node_groups - write_groups):].any())

    def _arrive(self, m, arriving, present):
        """Items advance to `item`, with their gap or age.

        If the bits above those of a gap (or of an age, which has a sign) change, the window is too far away.
        """
        came, has_come, item, there = arriving.came, arriving.has_come, arriving.item, arriving.there
        held, blocked, move = arriving.held, arriving.blocked, arriving.move
        gap, far, one = arriving.gap, arriving.far, present.one
        counts = Signal()           # `came` is an item whose window begins the gap after it
        window = Signal(64)         # of the last item that was not late
        m.d.comb += [move.eq(~held | (self.may & one)), self.i.ready.eq(~blocked | (self.may & one))]
        with m.If(self.i.ready):
            m.d.sync += [
                has_come.eq(self.i.valid), counts.eq(self.i.valid & ~self.i.p.late & ~self.i.p.void),
            ]
        with m.If(self.i.ready & self.i.valid):
            m.d.sync += came.eq(self.i.p)
        newer = came.time[:_GAP_BITS]
        older = window[:_GAP_BITS]
        beyond = came.time[_GAP_BITS:] ^ window[_GAP_BITS:]
        with m.If(move):
            m.d.sync += there.eq(has_come)
            with m.If(has_come):
                m.d.sync += [
                    item.eq(came), gap.eq(Mux(came.late, older, newer) - Mux(came.late, newer, older)),
                    far.eq(Cat(beyond[:15].any(), beyond[15:30].any(),
                               beyond[30:].any() | (came.late & (newer[-1] != older[-1])))),
                ]
            with m.If(counts):
                m.d.sync += window.eq(came.time)

    def _choose(self, m, arriving, now):
        """The codes that the present item needs, one after the other.

        They are the end of the block before it, the head of its window, the item itself, the number of missing nibbles.
        A block that has to end while nothing comes needs only the first.
        """
        has_come, item, there, move = arriving.has_come, arriving.item, arriving.there, arriving.move
        held, blocked, gap, far = arriving.held, arriving.blocked, arriving.gap, arriving.far
        present, present_gap, none, load, one = now.present, now.present_gap, now.none, now.load, now.one
        close, head, take, miss, full, stale = now.close, now.head, now.take, now.miss, now.full, now.stale
        codes = data.StructLayout({"close": 1, "head": 1, "item": 1, "missing": 1})
        needs = Signal(codes)
        new = Signal(codes)         # that `item` needs
        holds = Signal()            # `held` in the next clock
        between = Signal(init=1)    # the windows that have left are complete
        astray = Signal()           # the block is that of a late item, and for others too far away
        goes_on = Signal()          # the block is open, or will be
        flush = Signal()            # not of the block before, which has just been closed
        ends = Signal()             # the block ends, before `item`
        m.d.comb += [
            close.eq(self.may & needs.close), head.eq(self.may & needs.head & ~needs.close),
            take.eq(self.may & needs.item & ~needs.close & ~needs.head),
            miss.eq(self.may & needs.missing & ~needs.item),
            load.eq(none | (self.may & one)),
            goes_on.eq(Mux(none, self.open, ~needs.close)), flush.eq(self.flush & self.open),
            ends.eq(item.first & (far.any() | (full & ~stale) | flush | astray)),
            new.item.eq(there & ~item.void), new.head.eq(there & item.first & item.many),
            new.missing.eq(there & (item.missing != 0) & ~item.void),
            new.close.eq(goes_on & Mux(there, ends, between & flush)),
        ]
        m.d.comb += holds.eq(Mux(move, has_come, there) & Mux(load, new.close | new.item, ~none))
        m.d.sync += [held.eq(holds), blocked.eq(holds & Mux(self.i.ready, self.i.valid, has_come))]
        with m.If(load):
            m.d.sync += [
                needs.eq(new), none.eq(~(new.close | new.item)),
                one.eq((new.close ^ new.item) & ~(new.head | new.missing)),
                present.eq(item), present.late.eq(item.late & item.first & goes_on & ~ends), present_gap.eq(gap),
            ]
            with m.If(there):
                m.d.sync += between.eq(item.last)
            with m.If(there & item.first):
                m.d.sync += astray.eq(item.late & ~(goes_on & ~ends))
        with m.Else():
            with m.If(close):
                m.d.sync += [needs.close.eq(0), one.eq(~(needs.head | needs.missing))]
            with m.If(head):
                m.d.sync += [needs.head.eq(0), one.eq(~needs.missing)]
            with m.If(take):
                m.d.sync += [needs.item.eq(0), one.eq(1)]
        with m.If(close):
            m.d.sync += self.open.eq(0)
        with m.Elif(head | take):
            m.d.sync += self.open.eq(1)

    def _enter(self, m, now, written):
        """Stage 1: the choice. What comes with it moves on to stages 2 and 3."""
        present, present_gap = now.present, now.present_gap
        close, head, take, miss = now.close, now.head, now.take, now.miss
        kind, opens, node, nibble, time = written.kind, written.opens, written.node, written.nibble, written.time
        vector, missing, gap1 = written.vector, written.missing, written.gap1
        for stages in (kind, opens):
            m.d.sync += [new.eq(old) for old, new in pairwise(stages)]
        for stages in (node, nibble, time):
            for k, (old, new) in enumerate(pairwise(stages)):
                with m.If(written.loaded[k]):
                    m.d.sync += new.eq(old)
        m.d.sync += [
            kind[0].head.eq(head), kind[0].close.eq(close), kind[0].take.eq(take), kind[0].missing.eq(miss),
            kind[0].bare.eq(take & (present.many | ~present.begins)), kind[0].late.eq(take & present.late),
            kind[0].item.eq(take & present.begins),
            opens[0].eq(~self.open & (head | take)), written.loaded.eq(Cat(~now.none, written.loaded)),
        ]
        with m.If(~now.none):
            m.d.sync += [
                node[0].eq(present.node), nibble[0].eq(present.nibble),
                time[0].eq(present.time), vector.eq(present.vector), missing.eq(present.missing),
                gap1.eq(Mux(present.first & self.open, present_gap, 0)),
            ]

    def _spell(self, m, written):
        """The number, the groups after it, and both together. Returns these, and the groups of the number."""
        kind, node, nibble = written.kind, written.node, written.nibble
        vector, missing, gap1 = written.vector, written.missing, written.gap1
        _, node_groups, vector_groups = self._groups
        # Stage 2: the number, and the groups after it.
        number = Signal(GROUP_BITS * GAP_GROUPS, reset_less=True)
        last = Signal(GAP_GROUPS, reset_less=True)     # the number's last group
        tail = Signal(GROUP_BITS * vector_groups, reset_less=True)
        digits = [gap1[_DIGIT * k:_DIGIT * k + _DIGIT] for k in range(GAP_GROUPS)]
        beyond = [gap1[_DIGIT * (k + 1):].any() if k + 1 < GAP_GROUPS else 0 for k in range(GAP_GROUPS)]
        with m.If(written.loaded[0]):
            m.d.sync += [
                number.eq(Mux(kind[0].missing, missing,
                              Cat(Cat(digit, more) for digit, more in zip(digits, beyond, strict=True)))),
                last.eq(Mux(kind[0].missing, 0, Cat(
                    (digits[k].any() if k else 1) & ~beyond[k] for k in range(GAP_GROUPS)))),
                tail.eq(Mux(kind[0].head, vector, node[0] | nibble[0] << GROUP_BITS * node_groups)),
            ]

        # Stage 3: both together.
        both = Signal(GROUP_BITS * (GAP_GROUPS + vector_groups), reset_less=True)
        length = Signal(range(GAP_GROUPS + 1), reset_less=True)
        with m.If(written.loaded[1]):
            m.d.sync += [
                both.eq(number | reduce(or_, (
                    Mux(last[k], tail << GROUP_BITS * (k + 1), 0) for k in range(GAP_GROUPS)))),
                length.eq(reduce(or_, (Mux(last[k], k + 1, 0) for k in range(GAP_GROUPS)))),
            ]
        return both, length

    def _write(self, m, written, both, length):
        """Stage 4: the code. After its two groups comes `both`."""
        kind, opens, node, nibble, time = written.kind, written.opens, written.node, written.nibble, written.time
        write_groups, node_groups, vector_groups = self._groups
        out = self.o
        name = Signal(GROUP_BITS)
        coded = Signal()
        m.d.comb += [
            name.eq(1 << _DIGIT | Mux(kind[2].head, Code.WINDOW, Mux(kind[2].missing, Code.ABORTED, Code.LATE))),
            coded.eq(kind[2].head | kind[2].missing | kind[2].late),
        ]
        m.d.sync += self.valid.eq(kind[2].head | kind[2].close | kind[2].take | kind[2].missing)
        with m.If(written.loaded[2]):
            m.d.sync += [
                out.groups.eq(Mux(coded, Cat(name, Const(0, GROUP_BITS), both), Mux(kind[2].bare, nibble[2], both))),
                out.count.eq(Mux(kind[2].close, 0, Mux(kind[2].bare, write_groups, Mux(
                    kind[2].missing, 4, length + Mux(
                        kind[2].head, 2 + vector_groups,
                        Mux(kind[2].late, 2 + node_groups + write_groups, node_groups + write_groups)))))),
                out.opens.eq(opens[2]), out.closes.eq(kind[2].close), out.item.eq(kind[2].item),
                out.node.eq(node[2]), out.time.eq(time[2]),
            ]

    def _fill_block(self, m, now):
        """Counts the groups of the block: those of the block before until the new one's first code has been counted."""
        close, full, stale, out = now.close, now.full, now.stale, self.o
        written = Signal(range(COMPACT_BEATS * BEAT_GROUPS + 1))
        with m.If(close):
            m.d.sync += stale.eq(1)
        with m.If(self.valid):
            m.d.sync += written.eq(Mux(out.opens, 0, written) + out.count)
            with m.If(out.opens):
                m.d.sync += stale.eq(0)
        most = [COMPACT_BEATS * BEAT_GROUPS - _MARGIN - window_groups(self.nodes, single, self.port_bits)
                for single in (False, True)]
        above = Signal(range(COMPACT_BEATS * BEAT_GROUPS))
        m.d.sync += [above.eq(Mux(self.single, most[1], most[0])), full.eq((written > above) & ~stale)]
