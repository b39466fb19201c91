"""Unbounded proofs of the PCIe link, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.transport.pcie.completer import Completer
from hypermon.hdl.transport.pcie.ring import Ring

from .prover import broken, proofs
from .specs.pcie import CompleterSpec, RingSpec

pytestmark = pytest.mark.formal

PROOFS = {"ring": RingSpec, "completer": CompleterSpec}

REFUTED = {
    "ring, decides too early": lambda: RingSpec(broken(Ring, ("_SETTLES = 3", "_SETTLES = 1"))),
    "ring, room for more than there is": lambda: RingSpec(
        broken(Ring, ("whole.eq(Mux(room < span, room, span))", "whole.eq(span)"))),
    "ring, over the end": lambda: RingSpec(
        broken(Ring, ("span.eq(Mux(rest < most, rest, most))", "span.eq(most)"))),
    "completer, a long read without an answer": lambda: CompleterSpec(
        broken(Completer, ("(read & ~one) | locked |", "locked |"),
               ("(write & (bad | ~one)) | (request.kind == Kind.POSTED)",
                "((read | write) & (bad | ~one)) | (request.kind == Kind.POSTED)"))),
    "completer, waits for ever": lambda: CompleterSpec(
        broken(Completer, ("with m.If(~answered & (left == 0)):", "with m.If(0):"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
