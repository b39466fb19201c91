"""Tally: many counts in one memory, any of which may grow in every clock, and all of which can be latched."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layout import COUNTER_BITS
from ..lib.ram import Ram

__all__ = ["Tally"]

#: A count grows in parts of this number of bits; whether the lower parts are all ones is stored with it.
_PART = COUNTER_BITS // 3
#: During a latch, one clock in this number is kept free of counting.
_FREE = 16
#: Clocks from an operation's issue until its word is in memory.
_DEPTH = 6


class Tally(wiring.Component):
    """Adds one to any one word per clock; a latch copies all words with the values that they had in one clock.

    A count is read, increased and written in a pipeline. Words on their way to the memory are
    forwarded, so the same word may grow in consecutive clocks.

    The latch needs no pause: each word has a tag that shows whether the present latch has copied it.
    An increase, or the sweep over all words, that meets a word that is not copied yet copies its
    previous value.

    Parameters
    ----------
    depth : number of counts, a power of two.
    ram : kind of the two memories, see :class:`~.ram.Ram`.

    Members
    -------
    up, at : the count ``at`` grows by one; not during ``clear``, nor in the clock after it.
    clear : all counts are zeroed, but not the latched copies; hold it while ``clearing``. It ends a latch in
        progress: some of its words are copied, the others are as they were.
    clearing : with ``clear``: not done yet; it takes ``depth`` clocks and a few.
    latch : a pulse copies all counts: with all ``up`` up to this clock, and none after it.
    latched : the requested copy is complete, or was cut short by ``clear``; never with ``latch`` or in the clock
        after it.
    free : high for one clock at intervals, during a latch: for each, one clock must be left without ``up``,
        at once or later; otherwise the latch may never be complete.
    address : count to read of the copy ...
    word : ... two clocks later.
    """

    def __init__(self, depth: int, ram: str = "portable"):
        self.depth, self.ram = depth, ram
        super().__init__({
            "up": In(1), "at": In(range(depth)), "clear": In(1), "clearing": Out(1),
            "latch": In(1), "latched": Out(1, init=1), "free": Out(1),
            "address": In(range(depth)), "word": Out(COUNTER_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        # A count in parts, whether each but the highest is all ones, and the latch it was copied by.
        shape = data.StructLayout({
            "low": _PART, "middle": _PART, "high": COUNTER_BITS - 2 * _PART, "low_ones": 1, "middle_ones": 1, "tag": 1})
        operation = data.StructLayout({"valid": 1, "up": 1, "zero": 1, "tag": 1, "at": len(self.at)})
        m.submodules.counts = counts = Ram(shape.size, self.depth, self.ram)
        m.submodules.copies = copies = Ram(COUNTER_BITS, self.depth, self.ram)
        m.d.comb += [
            copies.r_en.eq(1), copies.r_next.eq(1),
            copies.r_addr.eq(self.address), self.word.eq(copies.r_data),
        ]

        # The operation of this clock: zeroing, else counting, else the sweep.
        place = Signal(range(2 * self.depth))     # position of the sweep; its top bit means that it is done
        sweeping = Signal()
        zeroing = Signal()
        tag = Signal()
        m.d.comb += self.clearing.eq(self.clear & ~(zeroing & place[-1]))
        m.d.sync += zeroing.eq(self.clear)
        with m.If(self.latch | (self.clear & ~zeroing)):
            m.d.sync += place.eq(0)
        with m.Elif(~place[-1] & (zeroing | (sweeping & ~self.up))):
            m.d.sync += place.eq(place + 1)
        with m.If(self.latch):
            m.d.sync += tag.eq(~tag)
        with m.If(self.clear):
            m.d.sync += sweeping.eq(0)
        with m.Elif(self.latch):
            m.d.sync += sweeping.eq(1)
        with m.Elif(place[-1]):
            m.d.sync += sweeping.eq(0)

        issued = Signal(operation)
        with m.If(zeroing):
            m.d.sync += [issued.valid.eq(~place[-1]), issued.at.eq(place)]
        with m.Elif(self.up):
            m.d.sync += [issued.valid.eq(1), issued.at.eq(self.at)]
        with m.Else():
            m.d.sync += [issued.valid.eq(sweeping & ~place[-1]), issued.at.eq(place)]
        m.d.sync += [issued.zero.eq(zeroing), issued.up.eq(self.up & ~zeroing), issued.tag.eq(tag)]

        turn = Signal(range(_FREE))
        settling = Signal(_DEPTH)
        m.d.sync += [
            turn.eq(turn + 1), self.free.eq(sweeping & (turn == 0)),
            settling.eq(Cat(self.latch | sweeping, settling)),
            self.latched.eq(~(self.latch | sweeping | settling.any())),
        ]

        # Read in two clocks. Words of the four operations ahead are not in memory by then: three of
        # them are compared one clock before the count grows, the last one in that clock.
        ahead = [issued]
        for k in range(1, 6):
            following = Signal(operation, name=f"issued{k}")
            m.d.sync += following.eq(ahead[-1])
            ahead.append(following)
        new = [Signal(shape, name=f"new{k}") for k in range(3)]     # the newest first

        def same(this, other):
            return ahead[other].valid & (ahead[this].at == ahead[other].at)

        near = Signal(3)
        nearest = Signal()
        m.d.sync += [near.eq(Cat(same(1, 3), same(1, 4), same(1, 5))), nearest.eq(same(2, 3))]
        before = Signal(shape)
        m.d.comb += [
            counts.r_addr.eq(issued.at), counts.r_en.eq(issued.valid), counts.r_next.eq(ahead[1].valid)]
        with m.If(ahead[2].valid):
            with m.If(near[0]):
                m.d.sync += before.eq(new[0])
            with m.Elif(near[1]):
                m.d.sync += before.eq(new[1])
            with m.Elif(near[2]):
                m.d.sync += before.eq(new[2])
            with m.Else():
                m.d.sync += before.eq(counts.r_data)

        old = Signal(shape)
        now = ahead[3]
        all_ones = (1 << _PART) - 1
        m.d.comb += old.eq(Mux(nearest, new[0], before))
        low_up = now.up
        middle_up = now.up & old.low_ones
        high_up = middle_up & old.middle_ones
        copied = (now.valid & ~now.zero & (old.tag != now.tag))
        for k in range(2):
            with m.If(ahead[4 + k].valid):
                m.d.sync += new[k + 1].eq(new[k])
        m.d.sync += [
            counts.w_en.eq(now.valid), copies.w_en.eq(copied),
        ]
        with m.If(now.valid):
            m.d.sync += [new[0].tag.eq(now.tag), counts.w_addr.eq(now.at)]
        with m.If(copied):
            m.d.sync += [copies.w_addr.eq(now.at), copies.w_data.eq(Cat(old.low, old.middle, old.high))]
        with m.If(now.valid & now.zero):
            m.d.sync += [new[0][f].eq(0) for f in ("low", "middle", "high", "low_ones", "middle_ones")]
        with m.Elif(now.valid):
            m.d.sync += [
                new[0].low.eq(old.low + low_up), new[0].middle.eq(old.middle + middle_up),
                new[0].high.eq(old.high + high_up),
                new[0].low_ones.eq(Mux(low_up, old.low == all_ones - 1, old.low_ones)),
                new[0].middle_ones.eq(Mux(middle_up, old.middle == all_ones - 1, old.middle_ones)),
            ]
        m.d.comb += counts.w_data.eq(new[0])
        return m
