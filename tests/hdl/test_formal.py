"""Unbounded proofs, each with a broken twin that is refuted, so that it is seen that it can be."""

import pytest
from .formal.fifos import SmallFifoSpec, StreamFifoSpec
from .formal.prover import broken, holds
from hypermon.hdl.fifo import SmallFifo, StreamFifo

pytestmark = pytest.mark.formal


PROOFS = {
    "small fifo": SmallFifoSpec,
    "stream fifo": StreamFifoSpec,
}

REFUTED = {
    "small fifo, valid for one too long": lambda: SmallFifoSpec(
        broken(SmallFifo, ("(self.o.ready & (following == write.addr))", "(self.o.ready & (following == read.addr))"))),
    "small fifo, takes one too many": lambda: SmallFifoSpec(
        broken(SmallFifo, ("range(depth + 1)", "range(2 * depth + 1)"))),
    "stream fifo, too little room for what is ahead": lambda: StreamFifoSpec(
        broken(StreamFifo, ("AHEAD = 8", "AHEAD = 4"), ("issue.eq(some & ~ahead[-1])", "issue.eq(some)")), depth=8),
    "stream fifo, reads before it is written": lambda: StreamFifoSpec(
        broken(StreamFifo, ("some.eq(push | (stored != 1))", "some.eq(push | (stored != 0))"))),
}


@pytest.mark.parametrize("name", PROOFS)
def test_holds(name, tmp_path):
    assert holds(PROOFS[name](), tmp_path)


@pytest.mark.parametrize("name", REFUTED)
def test_broken_twin_is_refuted(name, tmp_path):
    assert not holds(REFUTED[name](), tmp_path)
