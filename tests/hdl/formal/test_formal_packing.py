"""Unbounded proofs of expander and packers with items of any length, each with broken twins that are refuted."""

import pytest
from hypermon.hdl.items.expander import Expander
from hypermon.hdl.sinks.extended.packer import Packer
from hypermon.hdl.sinks.extended.word_packer import WordPacker

from .prover import broken, proofs
from .specs.sinks.compact import ExpandedItemsSpec, ExpandedVectorsSpec
from .specs.sinks.packing import PackedBlocksSpec, PackerSpec
from .specs.sinks.word_packing import WordPackerSpec

pytestmark = pytest.mark.formal

PROOFS = {
    "expander, items": ExpandedItemsSpec,
    "expander, vectors": ExpandedVectorsSpec,
    "packer": PackerSpec,
    "packer, blocks": PackedBlocksSpec,
    "word packer": WordPackerSpec,
}

REFUTED = {
    "expander, items, a word is a nibble short": lambda: ExpandedItemsSpec(
        broken(Expander, ("behind.eq(word_writes(port_bits) - 1)", "behind.eq(word_writes(port_bits) - 2)"))),
    "expander, items, the length of the nibble before": lambda: ExpandedItemsSpec(
        broken(Expander, ("with m.If(to_come[-1])", "with m.If(to_come[-2])"))),
    "expander, items, missing of the item before": lambda: ExpandedItemsSpec(
        broken(Expander, ("missing.eq(Mux(moved[2].begins, 0, missing) + absent)", "missing.eq(missing + absent)"))),
    "expander, vectors, the stamp of the next one": lambda: ExpandedVectorsSpec(
        broken(Expander, ("moved[0].time.eq(present.time)", "moved[0].time.eq(counted.time)"))),
    "expander, vectors, more than there is room for": lambda: ExpandedVectorsSpec(
        broken(Expander, ("room.eq(landing.level < _LANDING // 2)", "room.eq(landing.level < _LANDING - 2)"))),
    "expander, vectors, one is loaded over another": lambda: ExpandedVectorsSpec(
        broken(Expander, ("is_counted & (~some | (step & single))", "is_counted & (~some | step)"))),
    "packer, a code in two beats": lambda: PackerSpec(
        broken(Packer, ("pending.eq(Cat(quad[quads:]))", "pending.eq(0)"))),
    "packer, no beat for what is left": lambda: PackerSpec(
        broken(Packer, ("Mux(code.closes, place != 0, after[-1])", "Mux(code.closes, 0, after[-1])"))),
    "packer, a block begins in a beat": lambda: PackerSpec(
        broken(Packer, ("place.eq(Mux(code.closes, 0, after))", "place.eq(after)"))),
    "packer, blocks, half a byte is no byte": lambda: PackedBlocksSpec(
        broken(Packer, ("block.length.eq((length + 1) >> 1)", "block.length.eq(length >> 1)"))),
    "packer, blocks, the first item does not count": lambda: PackedBlocksSpec(
        broken(Packer, ("block.items.eq(code.item)", "block.items.eq(0)"))),
    "word packer, a code in two beats": lambda: WordPackerSpec(
        broken(WordPacker, ("Mux(leaves[3], pending >> word, pending)", "Mux(leaves[3], 0, pending)"))),
    "word packer, no zeros up to 16 bytes": lambda: WordPackerSpec(
        broken(WordPacker, ("closing & ((fill != 0) | (lane != 0))", "closing & (fill != 0)"))),
    "word packer, no beat for what is left": lambda: WordPackerSpec(
        broken(WordPacker, ("closing & ((fill != 0) | (lane != 0))", "closing & (lane != 0)"))),
    "word packer, a block is said too early": lambda: WordPackerSpec(
        broken(WordPacker, ("self.blocks.valid.eq(finished[3])", "self.blocks.valid.eq(finished[2])"))),
    "word packer, items of the next block": lambda: WordPackerSpec(
        broken(WordPacker, ("self.blocks.p.eq(ended)", "self.blocks.p.eq(block)"))),
}

test_holds, test_broken_twin_is_refuted = proofs(PROOFS, REFUTED)
