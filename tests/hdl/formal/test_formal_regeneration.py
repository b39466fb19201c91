"""Proofs about a regeneration board: its gate and FIFO, and its words."""

import pytest
from hypermon.hdl.regeneration.byte_coder import ByteCoder
from hypermon.hdl.regeneration.moment_gate import MomentGate
from hypermon.hdl.store_port import StorePort

from .prover import broken, proofs
from .specs.regeneration import ByteCoderSpec, MomentGateSpec, StorePortSpec

pytestmark = pytest.mark.formal

PROOFS = {"moment gate": MomentGateSpec, "words": ByteCoderSpec, "store port": StorePortSpec}

REFUTED = {
    "moment gate, refuses what it queues": lambda: MomentGateSpec(
        broken(MomentGate, ("valid.eq(offered & ~barred)", "valid.eq(offered)"))),
    "moment gate, reopens too early": lambda: MomentGateSpec(
        broken(MomentGate, ("Mux(closed, ~half, self.tears)", "Mux(closed, ~fifo.i.ready, self.tears)"))),
    "moment gate, drops without a word": lambda: MomentGateSpec(
        broken(MomentGate, ("closes | (fifo.level >= self.depth - 1)", "closes"))),
    "moment gate, a node that is held is queued": lambda: MomentGateSpec(
        broken(MomentGate, ("(self.start & ~held) | self.further", "self.start | self.further"))),
    "moment gate, holds others, too": lambda: MomentGateSpec(
        broken(MomentGate, ("comes = taken[n] & ~barred", "comes = offered & ~barred"))),
    "moment gate, never holds": lambda: MomentGateSpec(
        broken(MomentGate, ("comes ^ leaves[n]", "comes ^ leaves.any()"))),
    "words, an item twice": lambda: ByteCoderSpec(
        broken(ByteCoder, ("Mux(final, 0, done | pick)", "Mux(final, 0, pick)"))),
    "words, a long step is taken for a short one": lambda: ByteCoderSpec(
        broken(ByteCoder, ("ahead[_STEP_BITS:].any()", "ahead[_STEP_BITS + 1:].any()"))),
    "store port, a word that leaves makes room at once": lambda: StorePortSpec(
        broken(StorePort, ("free - taken + popped", "free - taken + pops"))),
    "store port, room for the first word is enough": lambda: StorePortSpec(
        broken(StorePort, ("(free >= need)", "(free != 0)"))),
    "store port, a refusal is forgotten": lambda: StorePortSpec(
        broken(StorePort, ("untold.eq(untold + refuses - ", "untold.eq(untold + (refuses & ~closed) - "))),
    "words, further nibbles are taken for items": lambda: ByteCoderSpec(
        broken(ByteCoder, (" & (told == more))", ")"))),
    "moment gate, an item that is cut short unawares": lambda: MomentGateSpec(
        broken(MomentGate, ("self.tears.eq(offered & barred)", "self.tears.eq(self.refused.any())"))),
    "words, a moment ends early": lambda: ByteCoderSpec(
        broken(ByteCoder, ("rest = moment.mask & ~done", "rest = moment.mask"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
