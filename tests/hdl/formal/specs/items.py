"""Specifications of items of more than one nibble: framed, admitted and kept whole."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.input.item_framer import ItemFramer
from hypermon.hdl.layout import PORT_BITS, WORD_NIBBLES

from ..prover import Spec
from .order import watch_fifo

__all__ = ["FramedFifosSpec", "FramerSpec", "ItemPathSpec", "WholeItemsSpec"]

#: Nibbles behind the first of an item at most.
LONGEST = 30


class FramerSpec(Spec):
    """Items begin and end where the document says, be they admitted or not; of one that was admitted every
    nibble is pushed, of another one none; one that is aborted ends in one nibble that is marked.

    Strobes, time-outs, changes of mode and resets come at any time. Promised is that the gate admits
    nothing that is not offered.
    """

    def __init__(self, framer=ItemFramer, nodes=2):
        super().__init__()
        self.framer, self.nodes = framer, nodes

    def specify(self, m: Module) -> None:
        nodes = self.nodes
        m.submodules.dut = dut = self.framer(nodes)
        clear = self.free(1, "clear")
        m.d.comb += dut.clear.eq(clear)
        for name in ("pulse", "words", "events", "expired"):
            m.d.comb += getattr(dut, name).eq(self.free(nodes, name))
        m.d.comb += [
            dut.data.eq(self.free(PORT_BITS * nodes, "data")), dut.admit.eq(self.free(nodes, "admit")),
            Assume((dut.admit & ~dut.start) == 0),
        ]
        for i in range(nodes):
            def new(shape, name, i=i):
                return Signal(shape, name=f"{name}{i}")
            digit = dut.data.word_select(i, PORT_BITS)
            asked = Mux(dut.events[i], 2, dut.words[i])      # 0 nibbles, 1 words, 2 events
            mode, left = new(2, "mode"), new(range(LONGEST + 1), "left")
            pulse, expired, changed = dut.pulse[i], dut.expired[i], asked != mode
            behind = Mux(mode == 2, digit << 1, Mux(mode == 1, WORD_NIBBLES - 1, 0))
            begins = pulse & (left == 0) & ((mode != 2) | (digit != 0))
            aborted = expired & ~pulse & (left != 0)
            m.d.sync += mode.eq(asked)
            with m.If(aborted | changed):
                m.d.sync += left.eq(0)
            with m.Elif(begins):
                m.d.sync += left.eq(behind)
            with m.Elif(pulse & (left != 0)):
                m.d.sync += left.eq(left - 1)
            # A clock later: what of this is pushed.
            start, more, cut, ends, nibble, ours = (
                new(s, n) for s, n in ((1, "start"), (1, "more"), (1, "cut"), (1, "ends"), (4, "nibble"), (1, "ours")))
            m.d.sync += [
                start.eq(begins), more.eq((pulse & (left != 0)) | aborted), cut.eq(aborted),
                ends.eq(Mux(begins, mode == 0, (pulse & (left == 1)) | aborted)),
                nibble.eq(Mux(aborted, 0, digit)),
            ]
            with m.If(changed | clear):
                m.d.sync += ours.eq(0)
            with m.Elif(start):
                m.d.sync += ours.eq(dut.admit[i])
            m.d.comb += [
                Assert(dut.open[i] == (left != 0), "open in the middle of an item"),
                Assert(dut.start[i] == start, "every item begins once"),
                Assert(~(start | more) | (dut.nibble.word_select(i, PORT_BITS) == nibble), "with its nibbles"),
                Assert(dut.push[i] == Mux(start, dut.admit[i], more & ours), "all of an item admitted, or none"),
                Assert(dut.cut[i] == cut, "marked if and only if aborted"),
                Assert(dut.ends[i] == ends, "every item ends once"),
                Assert(~begins | (Cat(n[i] for n in dut.need) == (behind + 1) >> 1), "the room it needs"),
            ]


class WholeItemsSpec(Spec):
    """What is pushed is whole items, one behind the other, as long as their first nibble says, but for one that is
    cut short, which ends in a nibble that is marked.

    Strobes, time-outs and the gate's word come at any time; promised is that the mode stays, as from one reset to the
    next one, and stands a clock before the first strobe.
    """

    def __init__(self, framer=ItemFramer):
        super().__init__()
        self.framer = framer

    def specify(self, m: Module) -> None:
        m.submodules.dut = dut = self.framer(1)
        words, events = self.constant(m, 1, "words"), self.constant(m, 1, "events")
        ready, owed = Signal(), Signal(range(LONGEST + 1))
        m.d.sync += ready.eq(1)
        m.d.comb += [
            dut.pulse.eq(self.free(1, "pulse") & ready), dut.data.eq(self.free(PORT_BITS, "data")),
            dut.expired.eq(self.free(1, "expired")), dut.words.eq(words), dut.events.eq(events),
            dut.admit.eq(self.free(1, "admit") & dut.start),
        ]
        first = Mux(events, dut.nibble << 1, Mux(words, WORD_NIBBLES - 1, 0))   # nibbles behind it
        left = Mux(owed == 0, first, owed - 1)
        with m.If(dut.push):
            m.d.sync += owed.eq(Mux(dut.cut, 0, left))
            m.d.comb += [
                Assert(dut.start == (owed == 0), "an item begins if and only if none is open"),
                Assert(~dut.cut | (dut.nibble == 0), "a nibble that is made up is 0"),
                Assert(dut.ends == (dut.cut | (left == 0)), "it ends with its last nibble"),
                Assert(~dut.start | ~events | (dut.nibble != 0), "no event without a byte"),
                Assert(~(dut.cut & dut.start), "the first one is never made up"),
            ]


class FramedFifosSpec(Spec):
    """A node FIFO for items of many nibbles: nibbles and marks leave as they came; behind a mark nothing leaves but
    the mark, again, until an item begins; full exact, ``half`` less than half.

    The environment promises that nothing is admitted when it is full, and nothing popped that does not stand there.
    """

    def __init__(self, fifos=NodeFifos, depth=4):
        super().__init__()
        self.fifos, self.depth = fifos, depth

    def specify(self, m: Module) -> None:
        depth = self.depth
        m.submodules.fifos = fifos = self.fifos(1, depth, framed=True)
        admit, asks, fresh = (self.free(1, name) for name in ("admit", "asks", "fresh"))
        nibble, cut = self.free(1, "nibble"), self.free(1, "cut")
        items = self.constant(m, 1, "items")
        inside, stands = Signal(range(depth + 2)), Signal(range(depth + 2))
        # What is popped, by the last nibble that left.
        marked, gone, pop, popped, asked, pushed = (
            Signal(name=n) for n in ("marked", "gone", "pop", "popped", "asked", "pushed"))
        m.d.comb += [
            fifos.admit.eq(admit), fifos.data.eq(nibble), fifos.cut.eq(cut), fifos.pop.eq(asks),
            fifos.fresh.eq(fresh), fifos.items.eq(items), pop.eq(asks & (fresh | ~marked)),
        ]
        m.d.sync += [
            inside.eq(inside + admit - pop), stands.eq(stands + pushed - pop), pushed.eq(admit),
            popped.eq(pop), asked.eq(asks), gone.eq(gone | pop),
        ]
        left = Cat(fifos.nibble[0], fifos.mark)
        before = Signal(2)      # what left last
        m.d.sync += before.eq(left)
        m.d.comb += [
            Assume(~(admit & fifos.full)), Assume(~(pop & (stands == 0))), marked.eq(gone & fifos.mark),
            Assert(gone | ~fifos.mark), Assert(popped | (left == before), "what has left stays until the next pop"),
            Assert(fifos.full == (inside == depth), "full is exact, the newcomer included"),
            Assert(fifos.half == Mux(items, stands < depth // 2, stands <= depth // 2), "half is exact"),
            Assert(inside <= depth, "holds no more than its depth"),
        ]
        watch_fifo(m, self, name="fifo", depth=depth + 1, push=admit, pop=popped, first_in=Cat(nibble, cut),
                   first_out=left, valid=popped, patience=None)


class ItemPathSpec(Spec):
    """Framer, gate and node FIFO, connected: an item that is admitted finds room for all its nibbles.

    Strobes come at any time; the gate may think of all else what it likes; nibbles leave at any time.
    """

    def __init__(self, depth=16, *, framer=ItemFramer, gate=DropGate, fifos=NodeFifos):
        super().__init__()
        self.depth, self.framer, self.gate, self.fifos = depth, framer, gate, fifos

    def specify(self, m: Module) -> None:
        depth = self.depth
        m.submodules.framer = framer = self.framer(1)
        m.submodules.gate = gate = self.gate(1)
        m.submodules.fifos = fifos = self.fifos(1, depth, framed=True)
        stands, inside, pushed = Signal(range(depth + 2)), Signal(range(depth + 2)), Signal()
        words, events = self.constant(m, 1, "words"), self.constant(m, 1, "events")
        pop = self.free(1, "pop") & (stands != 0)
        m.d.comb += [
            framer.pulse.eq(self.free(1, "pulse")), framer.data.eq(self.free(PORT_BITS, "data")),
            framer.expired.eq(self.free(1, "expired")), framer.clear.eq(self.free(1, "clear")),
            framer.words.eq(words), framer.events.eq(events), framer.admit.eq(gate.admit),
            gate.pulse.eq(framer.start), gate.live.eq(self.free(1, "live")),
            gate.node_full.eq(fifos.full), gate.node_half.eq(fifos.half), gate.node_misfit.eq(fifos.misfit),
            gate.vector_room.eq(self.free(1, "room")), gate.vector_half.eq(self.free(1, "half")),
            fifos.admit.eq(framer.push), fifos.items.eq(words | events), fifos.fresh.eq(1),
            *(n.eq(its) for n, its in zip(fifos.need, framer.need, strict=True)), fifos.pop.eq(pop),
            Assert(~(framer.push & fifos.full), "pushes nothing into a full FIFO"),
            Assert(inside <= depth), Assert(fifos.full == (inside == depth), "full is exact"),
        ]
        m.d.sync += [
            inside.eq(inside + framer.push - pop), stands.eq(stands + pushed - pop), pushed.eq(framer.push)]
