"""Unbounded proofs about the extended sink, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.items.expander import Expander
from hypermon.hdl.items.lineup import Lineup

from .prover import broken, proofs
from .specs.sinks.compact import ExpanderSpec, LineupSpec

pytestmark = pytest.mark.formal

PROOFS = {"expander": ExpanderSpec, "lineup": LineupSpec}

REFUTED = {
    "expander, a vector is loaded over another": lambda: ExpanderSpec(
        broken(Expander, ("is_counted & (~some | (step & single))", "is_counted & (~some | step)"))),
    "expander, the lowest node stays": lambda: ExpanderSpec(
        broken(Expander, ("left.eq(rest), rest.eq(rest & (rest - 1))", "left.eq(rest), rest.eq(rest)"))),
    "expander, a vector is taken over another": lambda: ExpanderSpec(
        broken(Expander, ("has_come & (~is_counted | load)", "has_come"))),
    "expander, not busy with what has been counted": lambda: ExpanderSpec(
        broken(Expander, ("has_come | is_counted | some |", "has_come | some |"))),
    "expander, not busy with what is offered": lambda: ExpanderSpec(
        broken(Expander, ("self.i.valid | has_come |", "has_come |"))),
    "lineup, an open item goes": lambda: LineupSpec(
        broken(Lineup, ("came.vector.eq(came.vector & ~missing)", "came.vector.eq(came.vector)"))),
    "lineup, the stamp of one that is passed over is not kept": lambda: LineupSpec(
        broken(Lineup, ("todo.eq(missing)", "todo.eq(0)"))),
    "lineup, one that was passed over goes twice": lambda: LineupSpec(
        broken(Lineup, ("passed.eq(passed & ~chosen)", "passed.eq(passed)"))),
    "lineup, no place for it": lambda: LineupSpec(
        broken(Lineup, ("places.level < _PLACES - 3", "places.level < _PLACES"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
