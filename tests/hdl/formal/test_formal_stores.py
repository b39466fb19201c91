"""Unbounded proofs of what waits for the host, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.stream.external_fifo import ExternalFifo
from hypermon.hdl.stream.store import Store

from .prover import broken, proofs
from .specs.stores import BlockEndsSpec, ExternalFifoSpec, StoreSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "store": StoreSpec,
    "external FIFO": ExternalFifoSpec,
    "ends of blocks": BlockEndsSpec,
}

REFUTED = {
    "store, its parts the wrong way round": lambda: StoreSpec(
        broken(Store, ("enumerate(self.fifos)", "enumerate(reversed(self.fifos))"))),
    "store, level of what is offered": lambda: StoreSpec(
        broken(Store, ("came.eq(self.i.valid & self.i.ready)", "came.eq(self.i.valid)"))),
    "store, the highest level is not kept": lambda: StoreSpec(
        broken(Store, ("self.clear | (self.level > self.high)", "self.clear | (self.level != self.high)"))),
    "external FIFO, direct while a burst is under way": lambda: ExternalFifoSpec(
        broken(ExternalFifo, ("(stored == 0) & (owed == 0) & (coming == 0) &", "(stored == 0) & (owed == 0) &"))),
    "external FIFO, room for what is in the tail alone": lambda: ExternalFifoSpec(
        broken(ExternalFifo, ("taken + passes + Mux(read_now, burst, 0) - left", "taken + tail.i.valid - left"))),
    "external FIFO, a burst over another": lambda: ExternalFifoSpec(
        broken(ExternalFifo, ("space.eq(~stored[-1])", "space.eq(1)"))),
    "external FIFO, reads where it wrote last": lambda: ExternalFifoSpec(
        broken(ExternalFifo, ("Mux(write_now, write_at, read_at)", "write_at"))),
    "ends of blocks, a trailer of no payload": lambda: BlockEndsSpec(
        broken(ExternalFifo, ("(BEAT_BYTES - 1)) >> 4) + 2", "(BEAT_BYTES - 1)) >> 4) + 1"))),
    "ends of blocks, the last beat not full": lambda: BlockEndsSpec(
        broken(ExternalFifo, ("((length + (BEAT_BYTES - 1)) >> 4)", "(length >> 4)"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
