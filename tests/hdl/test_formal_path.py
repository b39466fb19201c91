"""Unbounded proofs of the way from gate to link, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.frame_builder import FrameBuilder
from hypermon.hdl.gate import Gate
from hypermon.hdl.node_fifo import NodeFifos
from hypermon.hdl.room import Room
from hypermon.hdl.window import Window

from .formal.path import PathSpec, RoomSpec, WindowSpec
from .formal.prover import broken, holds

pytestmark = pytest.mark.formal

PROOFS = {
    "gate to frame, two nodes": PathSpec,
    "room for vectors, two nodes": RoomSpec,
    "window's accounts": WindowSpec,
}

REFUTED = {
    "gate to frame, admits to a full FIFO": lambda: PathSpec(
        gate=broken(Gate, ("self.closed | self.node_full | (", "self.closed | ("))),
    "gate to frame, second strobe in a window forgotten": lambda: PathSpec(
        window=broken(Window, ("entered.eq(self.admitted)", "entered.eq(self.admitted & ~some)"))),
    "gate to frame, reads two at once": lambda: PathSpec(
        fifos=broken(NodeFifos, ("read.addr.eq(read.addr + 1)", "read.addr.eq(read.addr + 1 + level[2][i])"))),
    "gate to frame, pops every node": lambda: PathSpec(
        builder=broken(FrameBuilder, ("self.pop.eq(at_pop)", "self.pop.eq(at_pop.any().replicate(nodes))"))),
    "gate to frame, nibbles without their bit": lambda: PathSpec(
        builder=broken(FrameBuilder, ("at_mask[i].replicate(PORT_BITS)", "Const(15)"))),
    "gate to frame, no slot kept": lambda: PathSpec(
        builder=broken(FrameBuilder, ("slot.eq(~start | (slots != 1))", "slot.eq(1)"))),
    "room for vectors, none in reserve for the node FIFOs": lambda: RoomSpec(
        broken(Room, ("depth - self.geometry.node_depth - VECTOR_MARGIN", "depth - VECTOR_MARGIN"))),
    "room for vectors, none in reserve for those on their way": lambda: RoomSpec(
        broken(Room, ("VECTOR_MARGIN = 4", "VECTOR_MARGIN = 1"))),
    "window's accounts, the first of a window is carried": lambda: WindowSpec(
        broken(Window, ("reduce(or_, waiting[1:]))", "reduce(or_, waiting))"))),
    "window's accounts, largest lag one short": lambda: WindowSpec(
        broken(Window, ("init=-(b == 1)", "init=-(b == 0)"))),
}


@pytest.mark.parametrize("name", PROOFS)
def test_holds(name, tmp_path):
    assert holds(PROOFS[name](), tmp_path)


@pytest.mark.parametrize("name", REFUTED)
def test_broken_twin_is_refuted(name, tmp_path):
    assert not holds(REFUTED[name](), tmp_path)
