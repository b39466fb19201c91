"""Unbounded proofs about items of many nibbles, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.input.item_framer import ItemFramer

from .prover import broken, proofs
from .specs.items import FramedFifosSpec, FramerSpec, ItemPathSpec, WholeItemsSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "framer": FramerSpec,
    "whole items": WholeItemsSpec,
    "framed node FIFOs": FramedFifosSpec,
    "framer to node FIFO": ItemPathSpec,
}

REFUTED = {
    "framer, a strobe at the clock of the time-out begins an item": lambda: FramerSpec(
        broken(
            ItemFramer,
            ("aborted.eq(self.expired & self.open & ~self.pulse)", "aborted.eq(self.expired & self.open)"))),
    "framer, an item that was refused is pushed behind one that was not": lambda: FramerSpec(
        broken(ItemFramer, ("((taken & ~self.start) | self.admit)", "(taken | self.admit)"))),
    "framer, filler is an item": lambda: FramerSpec(
        broken(ItemFramer, ("& ~(events & ~reduce(or_, digit))", ""))),
    "framer, a change of mode goes unseen": lambda: FramerSpec(
        broken(ItemFramer, ("keeps.eq(~(aborted | restart))", "keeps.eq(~aborted)"))),
    "framer, an open item goes on after a reset": lambda: FramerSpec(
        broken(ItemFramer, (" & ~self.clear.replicate(nodes)", ""))),
    "whole items, the rest of one that was refused": lambda: WholeItemsSpec(
        broken(ItemFramer, ("self.goes.eq(more & taken)", "self.goes.eq(more)"))),
    "whole items, an aborted one is not closed": lambda: WholeItemsSpec(
        broken(ItemFramer, ("more.eq(goes_on | aborted)", "more.eq(goes_on)"))),
    "whole items, a nibble short": lambda: WholeItemsSpec(
        broken(ItemFramer, ("left[1:]), left[0])", "left[2:]), left[1])"))),
    "framed node FIFOs, nibbles behind a mark": lambda: FramedFifosSpec(
        broken(NodeFifos, ("self.mark & ~self.fresh.rep", "self.mark & self.fresh.rep"))),
    "framed node FIFOs, the mark of the next one": lambda: FramedFifosSpec(
        broken(NodeFifos, ("marked.eq(self.cut)", "marked.eq(self.cut & ~push)"))),
    "framer to node FIFO, room but for those on their way": lambda: ItemPathSpec(
        fifos=broken(NodeFifos, ("beyond = Const(-1, self.nodes)", "beyond = Const(0, self.nodes)"))),
    "framer to node FIFO, half an item": lambda: ItemPathSpec(
        gate=broken(DropGate, ("self.node_full | self.node_misfit |", "self.node_full |"))),
    "framer to node FIFO, a word needs half as much": lambda: ItemPathSpec(
        framer=broken(ItemFramer, (
            "behind(-(-word_left // byte_writes), digit)", "behind(-(-word_left // byte_writes) // 2, digit)"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
