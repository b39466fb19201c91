"""Unbounded proofs, each with a broken twin that is refuted, so that it is seen that it can be."""

import pytest
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.lib.fifo import SmallFifo, StreamFifo
from hypermon.hdl.lib.skid import Skid

from .prover import broken, proofs
from .specs.fifos import SkidSpec, SmallFifoSpec, StreamFifoSpec
from .specs.spine import GateSpec, NodeFifosSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "small fifo": SmallFifoSpec,
    "stream fifo": StreamFifoSpec,
    "stream fifo, with a skid": lambda: StreamFifoSpec(skid=True),
    "stream fifo, whose consumer keeps an item": lambda: StreamFifoSpec(skid=True, held=True),
    "skid": SkidSpec,
    "gate": GateSpec,
    "node fifos": NodeFifosSpec,
}

REFUTED = {
    "small fifo, valid for one too long": lambda: SmallFifoSpec(
        broken(SmallFifo, ("(self.o.ready & (following == write.addr))", "(self.o.ready & (following == read.addr))"))),
    "small fifo, takes one too many": lambda: SmallFifoSpec(
        broken(SmallFifo, ("range(depth + 1)", "range(2 * depth + 1)"))),
    "stream fifo, one is read over another": lambda: StreamFifoSpec(
        broken(StreamFifo, ("issue.eq(some & (~latched | go))", "issue.eq(some)"))),
    "stream fifo, its skid is not counted": lambda: StreamFifoSpec(
        broken(StreamFifo, ("else self.o.valid & self.o.ready", "else end.valid & end.ready")), skid=True),
    "stream fifo, what its consumer keeps is not counted": lambda: StreamFifoSpec(
        broken(StreamFifo, ("self.done if self.held else ", "")), skid=True, held=True),
    "stream fifo, reads before it is written": lambda: StreamFifoSpec(
        broken(StreamFifo, ("(issue & (following == ram.w_addr))", "(issue & (ram.r_addr == ram.w_addr))"))),
    "skid, forgets what it keeps": lambda: SkidSpec(
        broken(Skid, ("keeps.eq(self.o.valid & ~self.o.ready)", "keeps.eq(self.i.valid & ~self.o.ready)"))),
    "skid, keeps the next one instead": lambda: SkidSpec(broken(Skid, ("m.If(self.i.valid & ~keeps)", "m.If(1)"))),
    "gate, admits to a full FIFO": lambda: GateSpec(
        broken(DropGate, ("self.closed | self.node_full | self.node_misfit | (", "self.closed | ("))),
    "gate, reopens too early": lambda: GateSpec(
        broken(DropGate, ("self.node_half & self.vector_half.replicate(every)", "self.node_half"))),
    "node fifos, full without the newcomer": lambda: NodeFifosSpec(
        broken(NodeFifos, ("becomes_full | (becomes_one_short & self.admit)", "becomes_full"))),
    "node fifos, writes in place": lambda: NodeFifosSpec(
        broken(NodeFifos, ("lfsr_next(write.addr)", "write.addr"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
