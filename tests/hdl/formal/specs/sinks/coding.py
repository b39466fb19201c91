"""Specifications of the encoder, with small gaps: what is to be written is what came, and what is written says it."""

from amaranth.hdl import Array, Assert, Assume, Cat, Const, Module, Mux, Signal
from hypermon.hdl.layout import GROUP_BITS, Code, Geometry
from hypermon.hdl.sinks.extended.encoder import Encoder

from ...prover import Spec, exposing, opened, using
from ..order import watch_fifo

__all__ = ["ChoiceSpec", "CodeSpec"]


class _Encoding(Spec):
    """An encoder of two nodes whose blocks are soon full. Gaps have so many groups of three bits.

    The environment promises what expander and event mask give: windows with one time, which rises but for the late
    ones, a first nibble each that begins an item, and a last one, be it void.
    """

    GROUPS = 1
    #: Bits of a time that may be other than 0.
    TIME = 5

    def __init__(self, encoder=Encoder):
        super().__init__()
        encoder, self.signals = exposing(encoder)
        self.encoder = using(encoder, GAP_GROUPS=self.GROUPS, _GAP_BITS=3 * self.GROUPS, COMPACT_BEATS=1, _MARGIN=20,
                             window_groups=lambda nodes, single, port_bits: 0)

    def specify(self, m: Module) -> None:
        self.dut = dut = self.encoder(Geometry(nodes=2))
        m.submodules.dut = opened(dut)
        item = dut.i.p
        bits = {"node": 1, "nibble": 4, "first": 1, "last": 1, "begins": 1, "many": 1, "late": 1, "missing": 5,
                "vector": 2, "time": self.TIME, "void": 1}
        m.d.comb += [getattr(item, name).eq(self.free(n, name)) for name, n in bits.items()]
        m.d.comb += [dut.i.valid.eq(self.free(1, "valid")), dut.single.eq(0), dut.room.eq(self.free(1, "room")),
                     dut.flush.eq(self.free(1, "flush"))]
        self.come = come = dut.i.valid & dut.i.ready
        inside, time, late, many = (
            Signal(s, name=n) for s, n in ((1, "inside"), (self.TIME, "time"), (1, "late"), (1, "many")))
        newest = Signal(self.TIME)       # window that was not late
        some = Signal()
        with m.If(come):
            m.d.sync += inside.eq(~item.last)
            with m.If(~item.void):
                m.d.sync += [time.eq(item.time), late.eq(item.late), many.eq(item.many)]
                with m.If(~item.late):
                    m.d.sync += [newest.eq(item.time), some.eq(1)]
        low = 3 * self.GROUPS
        m.d.comb += [
            Assume(Mux(item.void, item.last & ~item.first, item.first == ~inside)), Assume(item.begins | ~item.first),
            Assume(~inside | ((item.time[:self.TIME] == time) & (item.late == late) & (item.many == many))),
            Assume(~(item.many & (item.late | (item.missing != 0) | ~item.begins))),
            Assume(~(item.first & ~item.late & some) | (item.time[low:self.TIME] != newest[low:])
                   | (item.time[:low] > newest[:low])),
        ]


class ChoiceSpec(_Encoding):
    """Every item is written, once and in order, and so is how much of it is missing; a block begins with the first of a
    window and has its time; and a window that counts from there, by the gaps that are to be written, is the item's
    own; of a late one, less its age."""

    def specify(self, m: Module) -> None:
        super().specify(m)
        dut, n, item = self.dut, self.signals, self.dut.i.p
        present, gap = n["present"], n["present_gap"]
        take, head, close, miss = (n[name] for name in ("take", "head", "close", "miss"))

        def whole(nibble):
            return Cat(nibble.node, nibble.nibble, nibble.begins, nibble.many, nibble.missing, nibble.vector,
                       nibble.time[:self.TIME])

        watch_fifo(m, self, name="items", depth=4, push=self.come & ~item.void, pop=take, first_in=whole(item),
                   first_out=whole(present), valid=take | head, patience=None)

        # Time, as who reads it counts it.
        window, counted = Signal(self.TIME), Signal()    # that of the present item has been counted
        opens = (take | head) & ~dut.open
        number = Mux(present.first & dut.open, gap, 0)
        signed = Cat(number[:3 * self.GROUPS], number[3 * self.GROUPS - 1].replicate(self.TIME - 3 * self.GROUPS))
        now = Mux(opens, present.time[:self.TIME], Mux(counted | present.late, window, (window + number)[:self.TIME]))
        with m.If(take | head):
            m.d.sync += window.eq(now)
        m.d.sync += counted.eq(head | (counted & ~take))
        was_late, passed_over = Signal(), Signal()      # the present window is a late item, not in a block of its own
        m.d.comb += passed_over.eq(Mux(present.first, present.late, was_late))
        with m.If(take):
            m.d.sync += was_late.eq(passed_over)
        owed = Signal()         # the last nibble of this item was written, and not what is missing of it
        with m.If(take):
            m.d.sync += owed.eq(present.missing != 0)
        with m.Elif(miss):
            m.d.sync += owed.eq(0)
        m.d.comb += [
            Assert(take + head + close + miss <= 1, "one code a clock"),
            Assert(dut.room | ~(take | head | close | miss), "none without room"),
            Assert(~take | ~present.late | dut.open, "no late item begins a block"),
            Assert(~take | passed_over | (now == present.time[:self.TIME]), "the item's window"),
            Assert(~(take & present.late & present.first) | ((window - signed)[:self.TIME] == present.time[:self.TIME]),
                   "less its age"),
            Assert(~opens | present.first, "a block begins with a window"),
            Assert(~(close & counted), "a window's head is not alone"),
            Assert(~head | (present.first & present.many & ~counted), "WINDOW in front of its items"),
            Assert(~take | ~(present.many & present.first) | counted, "and for all of them"),
            Assert(~close | dut.open, "closes what is open"),
            Assert(miss | ~owed | ~(take | head | close), "what is missing stands right behind"),
            Assert(~miss | (owed & dut.open)),
        ]


class CodeSpec(_Encoding):
    """What is written is what was to be written, as the document says: behind a code's groups is 0, its count is right,
    and none has more than a code can have."""

    GROUPS, TIME = 3, 11
    #: Clocks from the choice.
    LATE = 4

    def specify(self, m: Module) -> None:
        super().specify(m)
        dut, n = self.dut, self.signals
        present, gap = n["present"], n["present_gap"]
        names = ("take", "head", "close", "miss")
        number = Mux(present.first & dut.open, gap, 0)
        chosen = [*(n[name] for name in names), number, present.node, present.nibble, present.vector, present.missing,
                  present.many | ~present.begins, present.late, present.begins, ~dut.open, present.time[:self.TIME]]
        for k in range(self.LATE):
            later = [Signal(len(value), name=f"chosen{k}_{j}") for j, value in enumerate(chosen)]
            m.d.sync += [new.eq(old) for new, old in zip(later, chosen, strict=True)]
            chosen = later
        take, head, close, miss, number, node, nibble, vector, missing, bare, late, begins, shut, time = chosen

        # Read as the document says.
        out = dut.o
        groups = [out.groups.word_select(k, GROUP_BITS) for k in range(len(out.groups) // GROUP_BITS)]
        special = (groups[0] >= 8) & (groups[1] == 0)
        skip = Mux(special, 2, 0)
        digits = Mux(special, out.groups >> 2 * GROUP_BITS, out.groups)
        digit = [digits.word_select(k, GROUP_BITS) for k in range(self.GROUPS)]
        more = Mux(~digit[0][3], 0, Mux(~digit[1][3], 1, 2))    # groups before the number's last
        value = Cat(digit[k][:3] & (k <= more).replicate(3) for k in range(self.GROUPS))
        rest = Array(digits >> GROUP_BITS * (k + 1) for k in range(self.GROUPS))[more]
        m.d.comb += [
            Assert(dut.valid == (take | head | close | miss), "each code, once"),
            Assert(~dut.valid | (out.closes == close)), Assert(~dut.valid | (out.opens == ((take | head) & shut))),
            Assert(~dut.valid | (out.item == (take & begins))), Assert(~(dut.valid & out.item) | (out.node == node)),
            Assert(~(dut.valid & out.opens) | (out.time[:self.TIME] == time)),
            Assert(~dut.valid | (out.count <= len(groups)), "none is too long"),
            Assert(~(dut.valid & ~close) | ((out.groups >> GROUP_BITS * out.count) == 0), "0 behind it"),
            Assert(~close | (out.count == 0)),
        ]
        with m.If(miss):
            m.d.comb += Assert((groups[0] == 8 | Code.ABORTED) & special & (out.count == 4)
                               & (Cat(groups[2], groups[3]) == missing))
        with m.If(take & bare & ~late):
            m.d.comb += Assert((out.count == 1) & (groups[0] == nibble))
        with m.If((take & (~bare | late)) | head):
            m.d.comb += [
                Assert(value == number, "the gap, or the age"),
                Assert((more != self.GROUPS - 1) | ~digit[-1][3], "that ends"),
                Assert((more == 0) | (Array(digit)[more] != 0), "and is no longer than needed"),
                Assert(special == (head | late)),
                Assert(~special | (groups[0] == 8 | Mux(head, Code.WINDOW, Code.LATE))),
                Assert(out.count == skip + more + 1 + Mux(head, 4, 2)),
                Assert(Mux(head, rest[:16] == vector, rest[:8] == Cat(node, Const(0, 3), nibble)), "what is behind"),
            ]
