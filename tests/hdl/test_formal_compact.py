"""Unbounded proofs about the extended sink, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.expander import Expander

from .formal.compact import ExpanderSpec
from .formal.prover import broken, holds

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
