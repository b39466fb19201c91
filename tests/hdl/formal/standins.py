"""What stands for a neighbour in a proof: all that it may do, by what another proof says of it, and nothing of how."""

from itertools import count

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .prover import Spec

__all__ = ["Wires", "marked_fifos", "one_word_rams", "passing_fifos"]


def marked_fifos(spec: Spec):
    """Class to stand for :class:`~hypermon.hdl.lib.fifo.StreamFifo` where one item at most of all that ever enter is
    not 0. Of what is inside it knows the number of items, and how many are in front of that one; they come out
    after any time. (:class:`~.fifos.StreamFifoSpec` proves level, order, and when it is ready.)

    The class has a list ``made`` of all that were made, in order, which say their ``count``, ``has`` and ``before``
    (that one is inside, behind so many), and ``shows`` (it would give an item, if it has one).
    """
    number = count()
    all_made = []

    class MarkedFifo(wiring.Component):
        made = all_made

        def __init__(self, shape, depth, ram="portable"):
            self.depth = depth
            self.name = f"marked{next(number)}"
            self.shows = spec.free(1, f"{self.name}_shows")
            self.count = Signal(range(depth + 1), name=f"{self.name}_count")
            self.has = Signal(name=f"{self.name}_has")
            self.before = Signal(range(depth + 1), name=f"{self.name}_before")
            self.made.append(self)
            super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                              "level": Out(range(depth + 1))})

        def elaborate(self, platform):
            m = Module()
            left = Signal()
            push, pop = Signal(), Signal()
            item = self.i.p if isinstance(self.i.p, Signal) else self.i.p.as_value()
            out = self.o.p if isinstance(self.o.p, Signal) else self.o.p.as_value()
            value = Signal.like(item)
            m.d.comb += [
                push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready),
                self.level.eq(self.count + left), self.i.ready.eq(self.level != self.depth),
                self.o.valid.eq(self.shows & (self.count != 0)),
                out.eq(Mux(self.has & (self.before == 0), value, 0)),
                Assert(~(push & (item != 0) & self.has), "one at most is not 0"),
                Assert(self.count + left <= self.depth),
                Assert(~self.has | ((self.before < self.count) & (value != 0))),
            ]
            m.d.sync += [self.count.eq(self.count + push - pop), left.eq(pop)]
            with m.If(push & (item != 0)):
                m.d.sync += [self.has.eq(1), self.before.eq(self.count - pop), value.eq(item)]
            with m.Elif(pop & self.has):
                m.d.sync += [self.before.eq(self.before - 1), self.has.eq(self.before != 0)]
            return m

    return MarkedFifo


class Wires(wiring.Component):
    """Stands for a stream FIFO that is always empty: what it is given leaves at once."""

    def __init__(self, shape, depth, ram="portable"):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                          "level": Out(range(depth + 1))})

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


def passing_fifos(spec: Spec):
    """Class to stand for :class:`~hypermon.hdl.lib.fifo.SmallFifo` where what enters is of interest, and not when it
    leaves: that shows at its output at once, whatever ``ready`` says; the level is as if it left at any time later.
    (:class:`~.fifos.SmallFifoSpec` proves level and order.) Asserts that it is given nothing when it is full. The
    class has a list ``made`` of all that were made."""
    leaves = spec.free(1, "leaves")
    all_made = []

    class PassingFifo(wiring.Component):
        made = all_made

        def __init__(self, shape, depth):
            self.depth = depth
            self.made.append(self)
            super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                              "level": Out(range(depth + 1))})

        def elaborate(self, platform):
            m = Module()
            inside, pop, left = Signal(range(self.depth + 1)), Signal(), Signal()
            m.d.comb += [
                pop.eq(leaves & (inside != 0)), self.level.eq(inside + left), self.i.ready.eq(self.level != self.depth),
                self.o.valid.eq(self.i.valid), self.o.p.eq(self.i.p),
                Assert(~self.i.valid | self.i.ready, "room for what is given"), Assert(inside + left <= self.depth),
            ]
            m.d.sync += [inside.eq(inside + self.i.valid - pop), left.eq(pop)]
            return m

    return PassingFifo


def one_word_rams(spec: Spec, address):
    """Class to stand for :class:`~hypermon.hdl.lib.ram.Ram` where one word, any one, is of interest: the others may be
    anything whenever they are read, and so may that one in the clock in which it is written. The class has a list
    ``made`` of all that were made, which say their ``word``."""
    number = count()
    all_made = []

    class OneWordRam(wiring.Component):
        made = all_made

        def __init__(self, width, depth, kind="portable", register=True):
            bits = (depth - 1).bit_length()
            self.name = f"one_word{next(number)}"
            self.word = Signal(width, name=f"{self.name}_word")
            self.any = spec.free(width, f"{self.name}_any")
            self.made.append(self)
            super().__init__({
                "w_en": In(1), "w_addr": In(bits), "w_data": In(width),
                "r_en": In(1), "r_addr": In(bits), "r_next": In(1), "r_data": Out(width),
            })

        def elaborate(self, platform):
            m = Module()
            written, latch = Signal(), Signal.like(self.word)
            m.d.comb += written.eq(self.w_en & (self.w_addr == address))
            with m.If(written):
                m.d.sync += self.word.eq(self.w_data)
            with m.If(self.r_en):
                m.d.sync += latch.eq(Mux((self.r_addr == address) & ~written, self.word, self.any))
            with m.If(self.r_next):
                m.d.sync += self.r_data.eq(latch)
            return m

    return OneWordRam
