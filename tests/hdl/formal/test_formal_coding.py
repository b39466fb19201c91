"""Unbounded proofs of the encoder, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.sinks.extended.encoder import Encoder

from .prover import broken, proofs
from .specs.sinks.coding import ChoiceSpec, CodeSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "codes": CodeSpec,
    "choice of codes": ChoiceSpec,
}

REFUTED = {
    "codes, a number longer than needed": lambda: CodeSpec(
        broken(Encoder, ("(digits[k].any() if k else 1) & ~beyond[k]", "Const(k == 2)"))),
    "codes, the gap of the window again": lambda: CodeSpec(
        broken(Encoder, ("Mux(present.first & self.open, present_gap, 0)", "Mux(self.open, present_gap, 0)"))),
    "codes, a strobe vector a group short": lambda: CodeSpec(
        broken(Encoder, ("kind[2].head, 2 + vector_groups", "kind[2].head, 1 + vector_groups"))),
    "codes, late by the name of another": lambda: CodeSpec(
        broken(Encoder, ("Code.ABORTED, Code.LATE)", "Code.LATE, Code.ABORTED)"))),
    "choice of codes, the window of a void one counts": lambda: ChoiceSpec(
        broken(Encoder, ("~self.i.p.late & ~self.i.p.void", "~self.i.p.late"))),
    "choice of codes, others in the block of a late item": lambda: ChoiceSpec(
        broken(Encoder, ("| flush | astray)", "| flush)"))),
    "choice of codes, closes in a window": lambda: ChoiceSpec(
        broken(Encoder, ("between & flush", "flush"))),
    "choice of codes, an age that is too large": lambda: ChoiceSpec(
        broken(Encoder, ("| (came.late & (newer[-1] != older[-1]))", ""))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
