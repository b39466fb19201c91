"""Packer: assembles codes into the beats of COMPACT blocks."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import COMPACT_BEATS, GROUP_BITS, Geometry
from ...stream.block_source import BEAT_BITS
from .encoder import BEAT_GROUPS, code_groups, code_layout

__all__ = ["Packer", "block_layout"]

#: Groups that are moved together: a code is shifted by single groups first, then by quads.
_QUAD = 4
#: Difference in bits between the number of a group and that of its first bit.
_SHIFT = GROUP_BITS.bit_length() - 1


def block_layout() -> data.StructLayout:
    """A complete block: bytes and items of its payload, its first window."""
    most = COMPACT_BEATS * BEAT_GROUPS
    return data.StructLayout({"length": (most // 2).bit_length(), "items": most.bit_length(), "time": 64})


class Packer(wiring.Component):
    """Packs codes into beats without gaps; a new block begins with a new beat.

    Accepts a code every clock and never stops: the producer has reserved room for the beats.

    Members
    -------
    i, valid : codes.
    beats : of the payload, four clocks after the code that fills them; ``ready`` is ignored.
    blocks : complete blocks, with or after their last beat; ``ready`` is ignored.
    busy : a code, a beat or a block is on its way.
    """

    def __init__(self, geometry: Geometry):
        self.nodes = geometry.nodes
        super().__init__({
            "i": In(code_layout(self.nodes)), "valid": In(1),
            "beats": Out(stream.Signature(BEAT_BITS)), "blocks": Out(stream.Signature(block_layout())),
            "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        code, quads = self.i, BEAT_GROUPS // _QUAD

        # Stage 1: where the code begins, and whether it completes its beat.
        place = Signal(range(BEAT_GROUPS))
        after = Signal(range(2 * BEAT_GROUPS))
        at = Signal.like(place)
        groups = Signal(len(code.groups), reset_less=True)
        completes = Signal(3)   # at stages 2 to 4
        valid = Signal(3)
        m.d.comb += after.eq(place + code.count)
        with m.If(self.valid):
            m.d.sync += place.eq(Mux(code.closes, 0, after))
        with m.If(self.valid):
            m.d.sync += groups.eq(Mux(code.closes, 0, code.groups))
        m.d.sync += [
            at.eq(place), valid.eq(Cat(self.valid, valid)),
            completes.eq(Cat(self.valid & Mux(code.closes, place != 0, after[-1]), completes)),
        ]

        # Stage 2: by up to three groups.
        sources = -(-(code_groups(self.nodes) + _QUAD - 1) // _QUAD)     # quads a code touches
        shifted = Signal(GROUP_BITS * _QUAD * sources, reset_less=True)
        to_quad = Signal(quads, reset_less=True)     # one bit per quad
        with m.If(valid[0]):
            m.d.sync += [shifted.eq(groups << Cat(Const(0, _SHIFT), at[:2])), to_quad.eq(1 << at[2:])]

        # Stage 3: to its quads, in this beat and the next.
        width = GROUP_BITS * _QUAD
        quad = [Signal(width, name=f"quad{k}", reset_less=True) for k in range(quads + sources - 1)]
        with m.If(valid[1]):
            m.d.sync += [
                quad[k].eq(reduce(or_, (Mux(to_quad[k - s], shifted.word_select(s, width), 0)
                                        for s in range(sources) if 0 <= k - s < quads)))
                for k in range(quads + sources - 1)
            ]

        # Stage 4: merged with the groups that are there already.
        beat = Signal(BEAT_BITS, reset_less=True)
        pending = Signal(BEAT_BITS)
        here = Signal(BEAT_BITS)
        m.d.comb += [self.beats.p.eq(beat), here.eq(pending | Cat(quad[:quads]))]
        m.d.sync += self.beats.valid.eq(completes[2])
        with m.If(completes[2]):
            m.d.sync += [beat.eq(here), pending.eq(Cat(quad[quads:]))]
        with m.Elif(valid[2]):
            m.d.sync += pending.eq(here)

        # The block: complete when its last beat is on its way.
        block = Signal(block_layout(), reset_less=True)
        length = Signal(range(COMPACT_BEATS * BEAT_GROUPS + 1), reset_less=True)
        closed = Signal(4)
        with m.If(self.valid):
            with m.If(code.opens):
                m.d.sync += [length.eq(code.count), block.items.eq(code.item), block.time.eq(code.time)]
            with m.Else():
                m.d.sync += [length.eq(length + code.count), block.items.eq(block.items + code.item)]
        finished = [Signal(block_layout(), name=f"finished{k}", reset_less=True) for k in range(4)]
        m.d.comb += block.length.eq((length + 1) >> 1)
        closes = self.valid & code.closes
        m.d.sync += closed.eq(Cat(closes, closed))
        for new, old, moves in zip(finished, (block, *finished), (closes, *closed), strict=False):
            with m.If(moves):
                m.d.sync += new.eq(old)
        m.d.comb += [
            self.blocks.valid.eq(closed[3]), self.blocks.p.eq(finished[3]),
            self.busy.eq(self.valid | valid.any() | self.beats.valid | closed.any()),
        ]
        return m
