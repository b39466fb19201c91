"""Specification of the extended sink's head, at reduced size."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.items.expander import Expander
from hypermon.hdl.items.lineup import Lineup
from hypermon.hdl.layout import PORT_BITS, WORD_NIBBLES, Geometry

from ...prover import Spec, exposing, opened, state_of, using
from ...standins import passing_fifos
from ..order import watch_fifo

__all__ = ["ExpanderSpec", "ExpandedItemsSpec", "ExpandedVectorsSpec", "LineupSpec"]

#: Clocks in which one of what is inside is popped if items leave.
PATIENCE = 15


class ExpanderSpec(Spec):
    """Every nibble of a vector is popped once, no other ever, and one a clock; and the stage says that
    it is busy from the clock after a vector has come until its last nibble is popped, which it is.

    The environment promises that vectors are not empty.
    """

    def __init__(self, expander=Expander, nodes=3):
        super().__init__()
        self.expander, self.nodes = expander, nodes

    def specify(self, m):
        nodes = self.nodes
        m.submodules.dut = dut = self.expander(Geometry(nodes=nodes))
        vector = self.free(nodes, "vector")
        m.d.comb += [
            dut.i.valid.eq(self.free(1, "valid")), dut.i.p.vector.eq(vector),
            dut.nibble.eq(self.free(PORT_BITS * nodes, "nibble")), dut.o.ready.eq(self.free(1, "ready")),
            Assume(vector != 0),
        ]
        come = dut.i.valid & dut.i.ready
        inside = Signal(nodes)
        late = Signal(range(PATIENCE + 2))
        for n in range(nodes):
            # Vectors with this node that have come, less those that have been popped.
            owed = Signal(3, name=f"owed{n}")
            m.d.sync += owed.eq(owed + (come & vector[n]) - dut.pop[n])
            m.d.comb += [
                Assert(~(dut.pop[n] & (owed == 0)), "pops what has come"),
                Assert(owed <= 4, "holds a few vectors"),
            ]
            m.d.comb += inside[n].eq(owed != 0)
        with m.If(dut.pop.any() | ~inside.any() | ~dut.o.ready):
            m.d.sync += late.eq(0)
        with m.Elif(late <= PATIENCE):
            m.d.sync += late.eq(late + 1)
        m.d.comb += [
            Assert(late <= PATIENCE, "keeps nothing back while items leave"),
            Assert((dut.pop & (dut.pop - 1)) == 0, "pops one at a time"),
            Assert(~inside.any() | dut.busy, "says that something is inside"),
        ]


class _Expanded(Spec):
    """An expander for items of any length, whose landing is one of :func:`~.standins.passing_fifos`; two nodes are
    many.

    The environment promises that vectors are not empty, that they are said to be ``mixed`` if some of their items may
    be of more than one nibble (and maybe if not), and that no event begins with 0.

    Parameters
    ----------
    short : words have three nibbles, and events too.
    """

    def __init__(self, expander=Expander, nodes=2, short=True):
        super().__init__()
        self.nodes, self.short, self.word = nodes, short, 3 if short else WORD_NIBBLES
        expander, self.signals = exposing(expander)
        self.landing = passing_fifos(self)
        self.expander = using(expander, SmallFifo=self.landing, MANY=2, word_writes=lambda port_bits: self.word)

    def specify(self, m):
        nodes = self.nodes
        self.dut = dut = self.expander(Geometry(nodes=nodes))
        m.submodules.dut = module = opened(dut)
        self.state = state_of(module)
        self.words, self.events = self.constant(m, nodes, "words"), self.constant(m, nodes, "events")
        self.vector, self.nibbles = self.free(nodes, "vector"), self.free(PORT_BITS * nodes, "nibbles")
        self.cut = self.free(nodes, "cut")
        self.popped, self.fresh = Signal(nodes), Signal()
        m.d.comb += [
            dut.words.eq(self.words & ~self.events), dut.events.eq(self.events), dut.nibble.eq(self.nibbles),
            dut.cut.eq(self.cut), dut.i.valid.eq(self.free(1, "valid")), dut.i.p.vector.eq(self.vector),
            dut.i.p.time.eq(self.free(1, "time")), dut.i.p.late.eq(self.free(1, "late")),
            dut.i.p.mixed.eq((self.vector & (self.words | self.events)).any() | self.free(1, "mixed")),
            Assume(self.vector != 0),
        ]
        m.d.sync += [self.popped.eq(dut.pop), self.fresh.eq(dut.fresh)]
        for n in range(nodes):
            first = self.nibbles.word_select(n, PORT_BITS)
            m.d.comb += Assume(~(self.popped[n] & self.fresh & self.events[n])
                               | ((first == 1) if self.short else (first != 0)))
        (landing,) = self.landing.made
        valid, room = self.signals["valid"], self.signals["room"]
        m.d.comb += [
            Assert(landing.level + sum(valid) <= landing.depth // 2 + 5),
            Assert(~room | (landing.level <= landing.depth // 2)),
        ]
        self._lemmas(m)

    def _lemmas(self, m):
        """How what is inside hangs together."""
        n, state, mode = self.signals, self.state, self.words | self.events
        some, left, valid, counted = n["some"], n["left"], n["valid"], n["counted"]
        plain, came, of_quad = n["plain"], n["came"], n["of_quad0"]
        ended = Signal()     # all nibbles of the vector that is taken apart have been popped
        with m.If(n["step"] | n["load"]):
            m.d.sync += ended.eq(0)
        with m.Elif(n["go"] & n["single"] & n["ends"]):
            m.d.sync += ended.eq(1)
        self.inside = ((some & ~ended, n["present"]), (n["is_counted"], counted), (n["has_come"], n["came"]))
        for there, vector in self.inside:
            m.d.comb += Assert(~there | ((vector.vector != 0) & (vector.mixed | ~(vector.vector & mode).any())))
        for k in range(4):
            after = valid[:k].any() | (some & ~ended)
            m.d.comb += Assert(~valid[k] | n[f"moved{k}"].last | after, "the rest of it follows")
        m.d.comb += [
            Assert(~n["is_counted"] | (counted.rest == counted.vector & (counted.vector - 1))),
            Assert(~some | ((left != 0) & (n["rest"] == left & (left - 1)) & ((left & ~n["present"].vector) == 0))),
            Assert(~some | (n["single"] == (n["rest"] == 0))), Assert(plain == (some & ~n["present"].mixed)),
            Assert(n["ended"] == state("DONE")),
            Assert(~n["has_come"] | (of_quad == Cat(came.vector.any(), came.vector.all()))),
            Assert(state("NODE") | (some & n["present"].mixed)), Assert(ended == (state("DONE") & n["single"])),
        ]


class ExpandedItemsSpec(_Expanded):
    """Each set bit of a vector gives one item, lowest node first: as many nibbles as its node's mode and its first
    nibble say, which are those that were popped for it; and how many of them were missing."""

    #: Clocks from a pop to what it gave.
    LATE = 3

    def specify(self, m):
        super().specify(m)
        dut, out = self.dut, self.dut.o.p
        several = self.words | self.events

        # What was popped comes out, after so many clocks.
        one = Signal(PORT_BITS)
        number, gone = Signal.like(out.node), Signal()
        for n in range(self.nodes):
            with m.If(self.popped[n]):
                m.d.comb += [one.eq(self.nibbles.word_select(n, PORT_BITS)), number.eq(n), gone.eq(self.cut[n])]
        given = [self.popped.any(), one, number, self.fresh, gone]
        for _ in range(self.LATE - 1):
            later = [Signal.like(value) for value in given]
            m.d.sync += [new.eq(old) for new, old in zip(later, given, strict=True)]
            given = later
        m.d.comb += [
            Assert((dut.pop & (dut.pop - 1)) == 0, "pops one at a time"),
            Assert(dut.o.valid == given[0], "gives what was popped, in order"),
            Assert(~dut.o.valid | (Cat(out.nibble, out.node, out.begins) == Cat(*given[1:4])), "as it was"),
        ]

        # Where in its vector and its item that is.
        left = Signal(range(31))            # nibbles of the present item that are to come
        rest = Signal(self.nodes)           # nodes of the present vector whose items have not ended
        missing = Signal(range(32))         # nibbles of this item that were, until now
        nodes_left = Mux(rest == 0, out.vector, rest)
        length = Mux(self.events.bit_select(out.node, 1), out.nibble << 1,
                     Mux(self.words.bit_select(out.node, 1), self.word - 1, 0))
        behind = Mux(left == 0, length, left - 1)
        after = Mux(behind == 0, nodes_left & (nodes_left - 1), nodes_left)
        lost = Mux(left == 0, 0, missing) + given[4]
        with m.If(dut.o.valid):
            m.d.sync += [left.eq(behind), rest.eq(after), missing.eq(lost)]
            m.d.comb += [
                Assert(out.begins == (left == 0), "an item begins when the one before it has ended"),
                Assert(out.first == ((left == 0) & (rest == 0)), "so does a window"),
                Assert(nodes_left & ~(nodes_left - 1) == (1 << out.node)[:self.nodes], "lowest node first"),
                Assert(out.last == (after == 0), "and all of them"),
                Assert(out.missing == Mux(behind == 0, lost, 0), "what is missing of it"),
                Assert(~out.many | ~(out.vector & several).any(), "many single nibbles"),
            ]


class ExpandedVectorsSpec(_Expanded):
    """Vectors are taken apart in their order, and what comes of each has its bits, its stamp and its marks."""

    induction = 2
    #: Vectors inside at most.
    INSIDE = 8

    def specify(self, m):
        super().specify(m)
        dut, out = self.dut, self.dut.o.p
        come, gone = Signal(), Signal()
        m.d.comb += [come.eq(dut.i.valid & dut.i.ready), gone.eq(dut.o.valid & out.last)]

        def whole(vector, many=None):
            many = (vector.vector & (vector.vector - 1)).any() & ~vector.mixed if many is None else many
            return Cat(vector.vector, vector.time[0], vector.late, many)

        count, followed, before, item = watch_fifo(
            m, self, name="vectors", depth=self.INSIDE, push=come, pop=gone, first_in=whole(dut.i.p),
            first_out=whole(out, out.many), valid=dut.o.valid, patience=None, more=True)
        m.d.comb += Assert((count == 0) | dut.busy, "says that something is inside")

        # Where they are: on their way, taken apart, counted, come.
        n, place = self.signals, 0
        for k in reversed(range(4)):
            moved = n[f"moved{k}"]
            m.d.comb += Assert(~(n["valid"][k] & followed & (before == place)) | (item == whole(moved, moved.many)))
            place = place + (n["valid"][k] & moved.last)
        for there, vector in self.inside:
            many = vector.many if "many" in vector.shape().members else None
            m.d.comb += Assert(~(there & followed & (before == place)) | (item == whole(vector, many)))
            place = place + there
        m.d.comb += [Assert(count == place), Assert(~followed | (before < count))]


class LineupSpec(Spec):
    """Every item of a vector leaves once, when it has ended and not before; those of a node in order, each with the
    stamp of its vector; no empty vector leaves, and none for which there is no place.

    Items begin and end at any time, a node has one open item at most, and of what has ended the line-up's counters
    hold no more than they can (the node FIFOs hold no more). A vector announces what has begun. One vector has a stamp
    of 1, the others of 0. At the output is one of :func:`~.standins.passing_fifos`; a deadline comes at any time.
    """

    def __init__(self, lineup=Lineup, nodes=2):
        super().__init__()
        self.nodes, self.places = nodes, passing_fifos(self)
        self.lineup = using(lineup, Deadline=_FreeDeadline, SmallFifo=self.places)

    def specify(self, m):
        nodes = self.nodes
        m.submodules.dut = dut = self.lineup(Geometry(nodes=nodes, node_depth=8, vector_depth=32))
        vector, items = self.free(nodes, "vector"), self.constant(m, nodes, "items")
        marked, seen, come, gone = self.free(1, "marked"), Signal(), Signal(), Signal()
        m.d.comb += [
            dut.i.valid.eq(self.free(1, "valid")), dut.i.p.vector.eq(vector), dut.i.p.time.eq(marked & ~seen),
            dut.items.eq(items), dut.pressed.eq(self.free(1, "pressed")), dut.now.eq(self.free(1, "due")),
            come.eq(dut.i.valid & dut.i.ready), gone.eq(dut.o.valid), Assume(vector != 0),
        ]
        m.d.sync += seen.eq(seen | (come & marked))
        for n in range(nodes):
            def new(shape, name, n=n):
                return Signal(shape, name=f"{name}{n}")
            is_open, queue, inside, ahead = new(1, "open"), new(2, "queue"), new(3, "inside"), new(3, "ahead")
            whole = new(2, "whole")
            comes, goes = new(1, "comes"), new(1, "goes")
            begins, ends = self.free(1, f"begins{n}"), self.free(1, f"ends{n}")
            m.d.comb += [
                dut.ended[n].eq(ends), comes.eq(come & vector[n]), goes.eq(gone & dut.o.p.vector[n]),
                Assume(~begins | (items[n] & ~is_open & (queue + inside < 3))), Assume(~ends | is_open),
                Assume(~(dut.i.valid & vector[n]) | Mux(items[n], queue != 0, inside < 3)),
                Assert(~goes | (inside != 0), "an item that has been announced"),
                Assert(~(goes & items[n]) | (whole != 0), "a whole one"),
                Assert(~goes | (dut.o.p.time == (ahead == 1)), "with its own stamp, in order"),
                Assert(~(goes & dut.o.p.late) | items[n], "no single nibble is late"),
                Assert(~(goes & items[n]) | dut.o.p.mixed, "and it is said that it is of more than one nibble"),
                Assert(~items[n] | (queue + inside == whole + is_open)),
            ]
            m.d.sync += [
                is_open.eq((is_open & ~ends) | begins), queue.eq(queue + begins - (comes & items[n])),
                inside.eq(inside + comes - goes), whole.eq(whole + ends - (goes & items[n])),
                ahead.eq(Mux(comes & marked & ~seen, inside + 1 - goes, ahead - (goes & (ahead != 0)))),
            ]
        m.d.comb += Assert(~gone | dut.o.p.vector.any(), "no empty vector")


class _FreeDeadline(wiring.Component):
    """A deadline that comes whenever the environment says so (by ``now``)."""

    def __init__(self):
        super().__init__({"now": In(32), "limit": In(32), "idle": In(1), "due": Out(1), "horizon": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.due.eq(self.now[0])
        return m
