"""Proofs about a regeneration board: its gate and FIFO, and its words."""

import pytest
from hypermon.hdl.regeneration.byte_coder import ByteCoder
from hypermon.hdl.regeneration.moment_gate import MomentGate

from .prover import broken, proofs
from .specs.regeneration import ByteCoderSpec, MomentGateSpec

pytestmark = pytest.mark.formal

PROOFS = {"moment gate": MomentGateSpec, "words": ByteCoderSpec}

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
        broken(ByteCoder, ("ahead[_ADVANCE_BITS + 1:].any()", "ahead[_ADVANCE_BITS + 2:].any()"))),
    "words, a moment ends early": lambda: ByteCoderSpec(
        broken(ByteCoder, ("rest = moment.mask & ~done", "rest = moment.mask"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
