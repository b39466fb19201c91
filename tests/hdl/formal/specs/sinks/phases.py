"""Specification of stamps in parts of a clock: how vectors are split by the parts in which their strobes came."""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal
from hypermon.hdl.items.halver import Halver

from ...prover import Spec, using
from ...standins import passing_fifos

__all__ = ["HalverSpec"]


class HalverSpec(Spec):
    """Every vector that comes leaves as one or two: the strobes of the first half, if there are any, then those of the
    second, each with twice the stamp, plus one for the second; or as it is, if stamps do not count halves. None is
    lost, doubled or swapped, and what else it has stays with it.

    Vectors come at any time, none empty. One, any one, is followed; of its stamp three bits, any values.

    Parameters
    ----------
    further : halvers that follow: with quarter clocks, one follows the first.
    """

    def __init__(self, halver=Halver, further=0, nodes=2):
        super().__init__()
        self.further, self.nodes = further, nodes
        self.places = passing_fifos(self)
        self.halver = using(halver, SmallFifo=self.places)

    def specify(self, m: Module) -> None:
        nodes = self.nodes
        m.submodules.dut = dut = self.halver(nodes, self.further)
        on, vector = self.constant(m, 1, "on"), self.free(nodes, "vector")
        halves = self.free(nodes * (self.further + 1), "halves")
        time, mixed, late = self.free(3, "time"), self.free(1, "mixed"), self.free(1, "late")
        m.d.comb += [
            dut.on.eq(on), dut.i.valid.eq(self.free(1, "valid") & (vector != 0)), dut.i.p.vector.eq(vector),
            dut.i.p.halves.eq(halves), dut.i.p.time.eq(time), dut.i.p.mixed.eq(mixed), dut.i.p.late.eq(late),
        ]
        come, leave = dut.i.valid & dut.i.ready, dut.o.valid
        mine = halves[:nodes] & on.replicate(nodes)
        parts = [(vector & ~mine).any(), (vector & mine).any()]

        # Vectors that are owed, and the one that is followed: how many leave before it, and what it is.
        owed, before, followed, second = Signal(4), Signal(4), Signal(), Signal()
        item = Cat(vector, mine, halves[nodes:], time, mixed, late)
        kept = Signal(len(item))
        m.d.sync += owed.eq(owed + Mux(come, parts[0] + parts[1], 0) - leave)
        fields, at = [], 0
        for width in (nodes, nodes, nodes * self.further, 3, 1, 1):
            fields.append(kept[at:at + width])
            at += width
        its, its_mine, its_further, its_time, its_mixed, its_late = fields
        split = [its & ~its_mine, its & its_mine]
        both = split[0].any() & split[1].any()
        is_second = second | ~split[0].any()
        with m.If(self.free(1, "choose") & come & ~followed):
            m.d.sync += [followed.eq(1), second.eq(0), before.eq(owed - leave), kept.eq(item)]
        with m.Elif(followed & leave):
            m.d.sync += before.eq(before - (before != 0))
            with m.If(before == 0):
                m.d.sync += [followed.eq(both & ~second), second.eq(1)]
        expected = Mux(on, Cat(is_second, its_time), its_time)
        out = dut.o.p
        m.d.comb += Assert(~leave | (owed != 0), "no vector that did not come")
        shown = followed & leave & (before == 0)
        m.d.comb += [
            Assert(~shown | (out.vector == Mux(is_second, split[1], split[0])), "the strobes of its half, in order"),
            Assert(~shown | (out.time == expected), "with its stamp"),
            Assert(~shown | (Cat(out.mixed, out.late) == Cat(its_mixed, its_late)), "and its marks"),
            Assert((owed == 0) | dut.busy, "busy while one is inside"),
        ]
        if self.further:
            m.d.comb += Assert(~shown | (out.halves == its_further), "and the parts of the halves")
