"""Specification of the extended sink's head, at reduced size."""


from amaranth.hdl import Assert, Assume, Signal
from hypermon.hdl.expander import Expander
from hypermon.hdl.layout import PORT_BITS, Geometry

from .prover import Spec, using

__all__ = ["ExpanderSpec"]

#: Items that the smaller landing holds, and clocks in which one of what is inside is popped if items leave.
LANDING, PATIENCE = 8, 15


class ExpanderSpec(Spec):
    """Every nibble of a vector is popped once, no other ever, and one a clock; and the stage says that
    it is busy from the clock after a vector has come until its last nibble is popped, which it is.

    The environment promises that vectors are not empty.
    """

    def __init__(self, expander=Expander, nodes=3):
        super().__init__()
        self.expander, self.nodes = using(expander, _LANDING=LANDING), nodes

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
