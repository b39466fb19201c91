"""Specification of the tally: any one count and its copy, with counts of three bits."""

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from hypermon.hdl.accounts.tally import Tally

from ..prover import Spec, exposing, opened, using
from ..standins import one_word_rams

__all__ = ["TallySpec"]


class TallySpec(Spec):
    """Any one count grows with each increase that is for it, whatever stands next to it; a latch copies it as of one
    clock, and needs no more clocks without an increase than there are counts.

    In both memories one word stands for all: the others may be anything whenever they are read, as may be what is read
    in the clock in which it is written. Promised is that ``clear`` is held while it has to be, and that a latch comes
    neither with it nor while another goes on.
    """

    DEPTH, FREE, BITS = 4, 4, 3
    #: What is on its way to the memory is there within eight clocks, and what goes wrong shows in a few more.
    induction = 12
    #: Clocks from the last that a latch needed until it is over; and so many more than it has counts takes ``clear``.
    ENDS, MORE = 9, 2

    def __init__(self, tally=Tally):
        super().__init__()
        self.one = Signal(range(self.DEPTH), name="one")
        self.rams = one_word_rams(self, self.one)
        tally, self.signals = exposing(tally)
        self.tally = using(tally, Ram=self.rams, COUNTER_BITS=self.BITS, _PART=self.BITS // 3, _FREE=self.FREE)

    def specify(self, m: Module) -> None:
        dut = self.tally(self.DEPTH)
        m.submodules.dut = opened(dut)
        _, copies = self.rams.made
        m.d.comb += self.one.eq(self.constant(m, len(self.one), "which"))
        latch, clear = self.free(1, "latch"), self.free(1, "clear")
        cleared, held = Signal(), Signal()      # a clock ago: there was clear; and it was to be held
        for name in ("up", "at", "address"):
            m.d.comb += (port := getattr(dut, name)).eq(self.free(len(port), name))
        m.d.comb += [
            dut.clear.eq(clear), dut.latch.eq(latch), Assume(clear | ~held), Assume(~latch | (dut.latched & ~clear))]
        m.d.sync += [cleared.eq(clear), held.eq(dut.clearing)]

        # What the count is, and its copy. A latch that a reset cuts may have copied it or not.
        count, copy, other, cut = Signal(self.BITS), Signal(self.BITS), Signal(self.BITS), Signal()
        grown = count + (dut.up & (dut.at == self.one) & ~clear & ~cleared)
        going = Signal()
        m.d.sync += [count.eq(Mux(clear, 0, grown)), going.eq(latch | (going & ~dut.latched & ~clear))]
        with m.If(latch):
            m.d.sync += [copy.eq(grown), other.eq(copies.word), cut.eq(0)]
        with m.Elif(clear & going & ~dut.latched):
            m.d.sync += cut.eq(1)
        asked, still = Signal(2), Signal(2)     # for two clocks: it was read; nothing was copied
        m.d.sync += [asked.eq(Cat(dut.address == self.one, asked)), still.eq(Cat(dut.latched & ~latch, still))]
        m.d.comb += [
            Assert(~(asked[1] & still.all()) | (dut.word == copy) | (cut & (dut.word == other)), "as of one clock"),
        ]

        # How long it takes.
        left, ending = Signal(range(self.DEPTH + 1)), Signal(range(self.ENDS + 1))
        free, clearing = Signal(range(self.FREE + 2)), Signal(range(self.DEPTH + self.MORE + 1))
        with m.If(latch):
            m.d.sync += left.eq(self.DEPTH)
        with m.Elif(clear):
            m.d.sync += left.eq(0)
        with m.Elif((left != 0) & ~dut.up):
            m.d.sync += left.eq(left - 1)
        m.d.sync += [
            ending.eq(Mux(latch | (left != 0), 0, ending + (ending != self.ENDS))),
            free.eq(Mux(left == 0, 0, Mux(dut.free, 1, free + 1))),
            clearing.eq(Mux(clear, clearing + dut.clearing, 0)),
        ]
        self._hangs_together(m, count, copy, other, cut, going, left, clearing)
        started = Signal()      # ... the first latch
        m.d.sync += started.eq(started | latch)
        m.d.comb += [
            Assert(~started | (ending != self.ENDS) | dut.latched, "over, soon"),
            Assert(~dut.latched | (left == 0), "not before the sweep is"),
            Assert(free <= self.FREE, "asks for clocks"),
            Assert(~dut.free | ~dut.latched, "for a latch alone"),
            Assert(~dut.clearing | (clearing < self.DEPTH + self.MORE), "cleared, soon"),
        ]

    def _hangs_together(self, m, count, copy, other, cut, going, left, clearing):
        """The count is what is in memory and what is on its way there, and so is its copy; where the sweep is."""
        n, (counts, copies) = self.signals, self.rams.made
        place, zeroing, sweeping, tag = (n[name] for name in ("place", "zeroing", "sweeping", "tag"))

        def number(word):
            return word[:self.BITS]

        # As if nothing came behind: what memory holds, and each that is on its way, the first one first.
        arrives = n["issued4"].valid & (n["issued4"].at == self.one)
        value = Mux(arrives, n["new0"].as_value(), counts.word)
        now, copied_by, copied = number(value), value[-1], Mux(copies.w_en & arrives, copies.w_data, copies.word)
        for k in (3, 2, 1, 0):
            step = n["issued" + (str(k) if k else "")]
            mine = step.valid & (step.at == self.one)
            copied = Mux(mine & ~step.zero & (copied_by != step.tag), now, copied)
            now = Mux(mine, Mux(step.zero, 0, now + step.up), now)[:self.BITS]
            copied_by = Mux(mine, step.tag, copied_by)
        unswept = place <= self.one
        m.d.comb += [
            Assert((zeroing & unswept) | (now == count)),
            # What is kept beside parts of one bit.
            Assert(value[self.BITS:self.BITS + 2] == value[:2]),
            Assert((copied_by == tag) | ((sweeping | zeroing) & unswept)),
            Assert((copied_by == tag) | cut | zeroing | (copy == count)),
            Assert(((copied_by != tag) & ~cut) | (copied == copy) | (cut & (copied == other))),
            Assert((copied_by == tag) | (copied == other)),
            Assert(left == Mux(sweeping, self.DEPTH - place, 0)), Assert(place <= self.DEPTH),
            Assert((going & ~cut) | ~sweeping),
            Assert(clearing == Mux(zeroing, place + 1, 0)),
        ]
