"""Unbounded proofs about the extended sink, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.sinks.extended.expander import Expander
from hypermon.hdl.sinks.extended.lineup import Lineup

from .prover import broken, holds
from .specs.sinks.compact import ExpanderSpec, LineupSpec

pytestmark = pytest.mark.formal

REFUTED = {
    "a vector is loaded over another": ("is_counted & (~some | (step & single))", "is_counted & (~some | step)"),
    "the lowest node stays": ("left.eq(rest), rest.eq(rest & (rest - 1))", "left.eq(rest), rest.eq(rest)"),
    "a vector is taken over another": ("has_come & (~is_counted | load)", "has_come"),
    "not busy with what has been counted": ("has_come | is_counted | some |", "has_come | some |"),
    "not busy with what is offered": ("self.i.valid | has_come |", "has_come |"),
}


def test_expander_holds(tmp_path):
    assert holds(ExpanderSpec(), tmp_path)


@pytest.mark.parametrize("name", REFUTED)
def test_broken_twin_is_refuted(name, tmp_path):
    assert not holds(ExpanderSpec(broken(Expander, REFUTED[name])), tmp_path)


LINEUP_REFUTED = {
    "an open item goes": ("came.vector.eq(came.vector & ~missing)", "came.vector.eq(came.vector)"),
    "the stamp of one that is passed over is not kept": ("todo.eq(missing)", "todo.eq(0)"),
    "one that was passed over goes twice": ("passed.eq(passed & ~chosen)", "passed.eq(passed)"),
    "no place for it": ("places.level < _PLACES - 3", "places.level < _PLACES"),
}


def test_lineup_holds(tmp_path):
    assert holds(LineupSpec(), tmp_path)


@pytest.mark.parametrize("name", LINEUP_REFUTED)
def test_broken_lineup_is_refuted(name, tmp_path):
    assert not holds(LineupSpec(broken(Lineup, LINEUP_REFUTED[name])), tmp_path)
