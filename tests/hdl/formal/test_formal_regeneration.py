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
        broken(MomentGate, ("offered & ~closed)", "offered)"))),
    "moment gate, reopens too early": lambda: MomentGateSpec(
        broken(MomentGate, ("(closed & ~half)", "(closed & ~fifo.i.ready)"))),
    "moment gate, drops without a word": lambda: MomentGateSpec(
        broken(MomentGate, ("barred.eq(closed | ~fifo.i.ready)", "barred.eq(closed)"))),
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
