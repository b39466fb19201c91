"""Specifications of what waits for the host: store and external memory, at reduced depth."""

from itertools import pairwise

from amaranth.hdl import Assert, Cat, Module, Mux, Signal
from amaranth.lib import data
from hypermon.hdl.stream.external_fifo import ExternalFifo
from hypermon.hdl.stream.store import Store

from ..prover import Spec, exposing, opened, using
from ..standins import Wires, marked_fifos

__all__ = ["BlockEndsSpec", "ExternalFifoSpec", "StoreSpec"]

#: Beats of a burst, of head and of tail, of the memory.
BURST, AHEAD, DEPTH = 4, 8, 8
#: Clocks without a beat at the external FIFO's output, if nobody is slow.
PATIENCE = 12


def _beat(bits: int):
    return lambda: data.StructLayout({"data": bits, "last": 1})


class StoreSpec(Spec):
    """Beats leave as they came, with their marks, none lost, doubled or swapped; level and high-water mark exact.

    One beat, any one, has a bit that is 1, and a mark or none; all others are 0.
    """

    def __init__(self, store=Store, depth=8):
        super().__init__()
        self.marked = marked_fifos(self)
        self.store, self.depth = using(store, SEGMENT=4, StreamFifo=self.marked, beat_layout=_beat(1)), depth

    def specify(self, m: Module) -> None:
        m.submodules.store = store = self.store(self.depth)
        parts = self.marked.made
        clear, chosen, seen = self.free(1, "clear"), self.free(1, "chosen"), Signal()
        m.d.comb += [
            store.i.valid.eq(self.free(1, "valid")), store.i.p.data.eq(chosen & ~seen),
            store.i.p.last.eq(store.i.p.data & self.free(1, "last")),
            store.o.ready.eq(self.free(1, "ready")), store.clear.eq(clear),
        ]
        came, left = store.i.valid & store.i.ready, store.o.valid & store.o.ready
        m.d.sync += seen.eq(seen | (came & chosen))
        count, followed, before, value = _follow(m, came, left, store.i.p, store.o, list(reversed(parts)))
        high = Signal(range(self.depth + 2))
        with m.If(clear | (count > high)):
            m.d.sync += high.eq(count)
        m.d.comb += [
            Assert(~(store.o.valid & followed & (before == 0)) | (store.o.p.last == value.last), "with its mark"),
            Assert(store.level == count, "level is exact"), Assert(store.high == high, "the highest level"),
            Assert(store.i.ready == (parts[0].level != parts[0].depth), "ready unless its first part is full"),
            *(Assert(~(this.shows & (this.count != 0)) | (after.level == after.depth) | this.o.ready,
                     "keeps nothing back that there is room for") for this, after in pairwise(parts)),
        ]


def _follow(m: Module, came, left, item, out, parts: list):
    """Asserts that the beat that is not 0 leaves as it came, in its turn. ``parts`` are the FIFOs that beats pass,
    the last one first. Returns the number of beats inside."""
    most = sum(part.depth for part in parts)
    count, before = Signal(range(most + 2)), Signal(range(most + 2))
    followed, value = Signal(), Signal(item.shape())
    m.d.sync += count.eq(count + came - left)
    with m.If(came & item.data.any()):
        m.d.sync += [followed.eq(1), before.eq(count - left), value.eq(item)]
    with m.Elif(followed & left):
        m.d.sync += [before.eq(before - 1), followed.eq(before != 0)]
    m.d.comb += [
        Assert(~out.valid | (count != 0), "gives nothing it has not got"),
        Assert(~out.valid | (out.p.data == Mux(followed & (before == 0), value.data, 0)), "as they came, in order"),
        Assert(count == sum(part.count for part in parts), "every beat is somewhere"),
        Assert(followed == Cat(part.has for part in parts).any(), "so is the one that is not 0"),
        Assert(sum(part.has for part in parts) <= 1), Assert(~followed | value.data.any()),
    ]
    ahead = 0
    for part in parts:
        m.d.comb += Assert(~part.has | (followed & (before == ahead + part.before)), "in its place")
        ahead = ahead + part.count
    return count, followed, before, value


class ExternalFifoSpec(Spec):
    """Beats leave as they came, none lost, doubled or swapped; level exact; commands go round the memory, and no
    burst is written over one that is not read, or read before it is written; neither head nor tail overflows;
    beats that nobody holds back leave soon.

    One beat, any one, is 1, all others 0. Head and tail are :func:`~.standins.marked_fifos`. The memory takes
    commands and beats when it likes, and gives what is read when it likes. As its bursts are written and read in
    turn, which is proved of the commands, what comes out of it is what went in, in order: so it is one, too.
    """

    induction = 2

    def __init__(self, fifo=ExternalFifo):
        super().__init__()
        self.marked = marked_fifos(self)
        fifo, self.signals = exposing(fifo)
        self.fifo = using(fifo, StreamFifo=self.marked, BEAT_BITS=1, _LENGTH=slice(0, 1), beat_layout=_beat(1))

    def specify(self, m: Module) -> None:
        dut = self.fifo(DEPTH, BURST, AHEAD)
        m.submodules.dut = opened(dut)
        bursts = DEPTH // BURST
        head, tail = self.marked.made
        m.submodules.inside = inside = self.marked(1, 4 * DEPTH)    # the memory
        command, write, read = dut.memory.command, dut.memory.write, dut.memory.read
        chosen = self.free(1, "chosen")
        seen = Signal()
        gives = Signal(range(4 * DEPTH))     # beats of read commands that it has taken and not given
        takes = command.valid & command.ready
        m.d.comb += [
            dut.i.valid.eq(self.free(1, "valid")), dut.i.p.data.eq(chosen & ~seen),
            dut.o.ready.eq(self.free(1, "ready")),
            command.ready.eq(self.free(1, "command_ready")), write.ready.eq(self.free(1, "write_ready")),
            inside.i.valid.eq(write.valid & write.ready), inside.i.p.eq(write.p), read.p.eq(inside.o.p),
            inside.o.ready.eq(gives != 0), read.valid.eq(inside.o.valid & (gives != 0)),
            Assert(inside.i.ready | ~inside.i.valid),
        ]
        came, left = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.comb += Assert(seen | ~(head.has | inside.has | tail.has))
        m.d.sync += [
            seen.eq(seen | (came & chosen)),
            gives.eq(gives + Mux(takes & ~command.p.write, BURST, 0) - read.valid),
        ]

        # The commands.
        at = [Signal(range(bursts), name=name) for name in ("read_next", "write_next")]
        stored = Signal(range(bursts + 2))
        given, is_write = command.valid, command.valid & command.p.write
        m.d.comb += [
            Assert(~given | (command.p.burst == Mux(is_write, at[1], at[0])), "bursts in turn"),
            Assert(~is_write | (stored < bursts), "writes none over another"),
            Assert(~given | is_write | (stored != 0), "reads none that has not been written"),
            Assert(stored <= bursts),
        ]
        with m.If(takes):
            m.d.sync += stored.eq(Mux(is_write, stored + 1, stored - 1))
            with m.If(is_write):
                m.d.sync += at[1].eq(at[1] + 1)
            with m.Else():
                m.d.sync += at[0].eq(at[0] + 1)

        # The beats.
        count, *_ = _follow(m, came, left, dut.i.p, dut.o, [tail, inside, head])
        m.d.comb += [
            Assert(dut.level == count, "level is exact"),
            Assert(~read.valid | tail.i.ready, "reads only what there is room for"),
        ]

        # How its numbers hang together.
        n = self.signals
        m.d.comb += [
            Assert(n["loose"] + n["owed"] == head.count), Assert(n["some_owed"] == (n["owed"] != 0)),
            Assert(n["taken"] == tail.count + n["coming"]), Assert(n["taken"] <= AHEAD),
            Assert(n["coming"] == gives + Mux(given & ~is_write, BURST, 0)),
            Assert(inside.count + n["owed"] == n["stored"] * BURST + n["coming"]),
            Assert(n["stored"] + (given & ~is_write) == stored + is_write),
            Assert(n["write_at"] == (at[1] + is_write)[:len(at[1])]),
            Assert(n["read_at"] == (at[0] + (given & ~is_write))[:len(at[0])]),
            Assert(n["stored"] <= bursts), Assert(~n["space"] | (n["stored"] < bursts) | n["follow"]),
            Assert(~n["direct"] | ((n["stored"] == 0) & (n["owed"] == 0) & (n["coming"] == 0) & ~given)),
        ]


class BlockEndsSpec(Spec):
    """The mark that ends a block, which external memory does not keep, is made anew where it was.

    Head and tail are :class:`~.standins.Wires`. Promised are whole blocks: a header of two beats, of which the
    first says how many bytes of payload there are, as many beats as those need, a trailer, which is marked.
    """

    BITS = 7

    def __init__(self, fifo=ExternalFifo):
        super().__init__()
        self.fifo = using(fifo, StreamFifo=Wires, BEAT_BITS=self.BITS, _LENGTH=slice(0, self.BITS),
                          beat_layout=_beat(self.BITS))

    def specify(self, m: Module) -> None:
        m.submodules.dut = dut = self.fifo(DEPTH, BURST, AHEAD)
        beat = self.free(self.BITS, "beat")
        part = Signal(2)     # of the block: header, its other half, payload, trailer
        size = Signal(self.BITS)
        last = part == 3
        m.d.comb += [
            dut.i.valid.eq(self.free(1, "valid")), dut.i.p.data.eq(beat), dut.i.p.last.eq(last),
            dut.o.ready.eq(self.free(1, "ready")),
        ]
        with m.If(dut.i.valid & dut.i.ready):
            m.d.sync += part.eq(part + 1)
            with m.If(part == 0):
                m.d.sync += size.eq(beat)
            with m.If((part == 1) & (size == 0)):
                m.d.sync += part.eq(3)
            with m.If(part == 2):
                m.d.sync += size.eq(size - 16)
                with m.If(size > 16):
                    m.d.sync += part.eq(2)
        m.d.comb += [
            Assert(dut.o.valid == dut.i.valid), Assert(dut.i.ready == dut.o.ready),
            Assert(~dut.o.valid | (dut.o.p.last == last), "a block ends where it ended"),
        ]
