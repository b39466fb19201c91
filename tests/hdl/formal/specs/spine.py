"""Specifications of what stands first: gate and node FIFOs."""

from amaranth.hdl import Assert, Assume, Mux, Signal
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.layout import GATE_CAUSES, PORT_BITS, Cause

from ..prover import Spec
from .order import watch_fifo

__all__ = ["GateSpec", "NodeFifosSpec"]


class GateSpec(Spec):
    """Each offered item is admitted or refused, for a reason; an outage has one cause and ends only
    when there is room again."""

    def __init__(self, gate=DropGate, nodes=2):
        super().__init__()
        self.gate, self.nodes = gate, nodes

    def specify(self, m):
        m.submodules.gate = gate = self.gate(self.nodes)
        inputs = ("pulse", "live", "node_full", "node_half", "vector_room", "vector_half", "backed_up")
        m.d.comb += [getattr(gate, n).eq(self.free(len(getattr(gate, n)), n)) for n in inputs]
        m.d.comb += Assume(~(gate.vector_half & ~gate.vector_room))
        causes = list(gate.refused_by)
        offered = gate.pulse & gate.live
        m.d.comb += [
            Assert((gate.admit ^ gate.refuse) == offered, "exactly one of admit and refuse"),
            Assert((gate.admit & gate.refuse) == 0, "not both"),
            Assert((gate.admit & (gate.closed | gate.node_full)) == 0, "admits to no full FIFO, and not when closed"),
            Assert(gate.vector_room | (gate.admit == 0), "admits nothing without a slot for its vector"),
            Assert((causes[0] | causes[1] | causes[2]) == gate.refuse, "every refusal has a cause"),
            Assert((causes[0] & causes[1] | causes[0] & causes[2] | causes[1] & causes[2]) == 0, "one cause"),
        ]
        was_closed, could = Signal(self.nodes), Signal(self.nodes)
        refused = Signal(self.nodes)
        m.d.sync += [
            was_closed.eq(gate.closed), could.eq(Mux(gate.vector_half, gate.node_half, 0)), refused.eq(gate.refuse)]
        m.d.comb += [
            Assert((was_closed & ~gate.closed & ~could) == 0, "reopens only at half"),
            Assert((was_closed & could & gate.closed) == 0, "and then does"),
            Assert((~was_closed & gate.closed & ~refused) == 0, "closes only after a refusal"),
            Assert((~was_closed & refused & ~gate.closed) == 0, "and then does"),
        ]
        for i in range(self.nodes):
            # Numbers of four bits that wrap: the sums agree at every moment.
            totals = {n: Signal(4, name=f"{n}{i}") for n in ("offers", "accepted", "lost")}
            m.d.sync += [
                totals["offers"].eq(totals["offers"] + offered[i]),
                totals["accepted"].eq(totals["accepted"] + gate.admit[i]),
                totals["lost"].eq(totals["lost"] + causes[0][i] + causes[1][i] + causes[2][i]),
            ]
            m.d.comb += Assert(totals["offers"] == (totals["accepted"] + totals["lost"])[:4],
                               "offered = accepted + lost")
            # The first refusal gives the outage its cause.
            cause = Signal(len(GATE_CAUSES), name=f"cause{i}")
            with m.If(gate.refuse[i] & ~gate.closed[i]):
                m.d.sync += [cause[c].eq(causes[c][i]) for c in range(len(GATE_CAUSES))]
                m.d.comb += Assert(causes[Cause.FRAME_FIFO.bit_length() - 1][i] == gate.backed_up,
                                   "the frame FIFO, if it holds everything up")
            with m.If(gate.refuse[i] & gate.closed[i]):
                for c in range(len(GATE_CAUSES)):
                    m.d.comb += Assert(causes[c][i] == cause[c], "an outage has one cause")


class NodeFifosSpec(Spec):
    """Exact depth, order kept, ``full`` exact at once, ``half`` exact one clock later.

    The environment promises what gate and strobe vectors do: no admission when full, no pop of what
    does not stand there.
    """

    def __init__(self, fifos=NodeFifos, depth=4):
        super().__init__()
        self.fifos, self.depth = fifos, depth

    def specify(self, m):
        m.submodules.fifos = fifos = self.fifos(1, self.depth)
        admit, pop = self.free(1, "admit"), self.free(1, "pop")
        m.d.comb += [
            fifos.admit.eq(admit), fifos.pop.eq(pop), fifos.data.eq(self.free(PORT_BITS, "data"))]
        inside = Signal(range(self.depth + 2))   # admitted
        stands = Signal(range(self.depth + 2))   # a clock later
        pushed, popped = Signal(), Signal()
        m.d.sync += [
            inside.eq(inside + admit - pop), stands.eq(stands + pushed - pop), pushed.eq(admit), popped.eq(pop)]
        m.d.comb += [
            Assume(~(admit & fifos.full)), Assume(~(pop & (stands == 0))),
            Assert(fifos.full == (inside == self.depth), "full is exact, the newcomer included"),
            Assert(fifos.half == (stands <= self.depth // 2), "half is exact"),
            Assert(inside <= self.depth, "holds no more than its depth"),
        ]
        watch_fifo(m, self, name="fifo", depth=self.depth + 1, push=admit, pop=popped, first_in=fifos.data,
                   first_out=fifos.nibble, valid=popped, patience=None)
