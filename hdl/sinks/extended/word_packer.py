"""Word packer: assembles codes into the short beats of COMPACT blocks, on a board that has to be small."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import BEAT_BYTES, COMPACT_BEATS, GROUP_BITS, SLIM_BYTES, Geometry
from .encoder import BEAT_GROUPS, WORD_GROUPS, code_groups, code_layout
from .packer import block_layout

__all__ = ["WordPacker"]

#: Groups that are moved together: a code is shifted by single groups first, then by a quad.
_QUAD = 4
#: Difference in bits between the number of a group and that of its first bit.
_SHIFT = GROUP_BITS.bit_length() - 1


class WordPacker(wiring.Component):
    """Packs codes into beats of 4 bytes without gaps; a block is padded with zeros to 16 bytes.

    One beat leaves per clock, so that a code of more than 8 groups is followed by a clock without a code, one of more
    than 16 groups by two, and the end of a block by :data:`~.encoder.CLOSING`. Otherwise it accepts a code every clock.
    It never stops: the producer has reserved room for the beats.

    Members
    -------
    i, valid : codes.
    beats : of the payload, five clocks after the code that fills them; ``ready`` is ignored.
    blocks : complete blocks, after their last beat; ``ready`` is ignored.
    busy : a code, a beat or a block is on its way.
    """

    def __init__(self, geometry: Geometry):
        self.nodes = geometry.nodes
        super().__init__({
            "i": In(code_layout(self.nodes)), "valid": In(1),
            "beats": Out(stream.Signature(GROUP_BITS * WORD_GROUPS)), "blocks": Out(stream.Signature(block_layout())),
            "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        code, most = self.i, code_groups(self.nodes)

        # Stage 1: where the code begins, and whether a beat leaves before it is added.
        fill = Signal(range(WORD_GROUPS + most))    # groups of the open beat and those after it
        base = Signal.like(fill)                    # ... without the beat that leaves
        lane = Signal(range(BEAT_BYTES // SLIM_BYTES))  # beats that have left, modulo 16 bytes
        closing = Signal()
        whole = fill >= WORD_GROUPS
        rest = closing & ((fill != 0) | (lane != 0))    # a beat that is not full leaves
        leaves = Signal(4)      # at stages 1 to 4
        done = Signal()         # the block's last beat has left
        at = Signal(range(WORD_GROUPS))
        groups = Signal(len(code.groups), reset_less=True)
        valid = Signal(2)
        m.d.comb += [
            base.eq(Mux(whole, fill - WORD_GROUPS, Mux(closing, 0, fill))), leaves[0].eq(whole | rest),
            done.eq(closing & ~leaves[0]),
        ]
        opened = self.valid & ~code.closes
        m.d.sync += [
            fill.eq(base + Mux(opened, code.count, 0)), lane.eq(lane + leaves[0]),
            closing.eq((self.valid & code.closes) | (closing & ~done)),
            at.eq(base), groups.eq(code.groups), valid.eq(Cat(opened, valid)), leaves[1:].eq(leaves),
        ]

        # Stage 2: by up to three groups.
        shifted = Signal(GROUP_BITS * (most + _QUAD - 1), reset_less=True)
        upper = Signal(reset_less=True)
        m.d.sync += [shifted.eq(Mux(valid[0], groups << Cat(Const(0, _SHIFT), at[:2]), 0)), upper.eq(at[2])]

        # Stage 3: by a quad.
        placed = Signal(len(shifted) + GROUP_BITS * _QUAD, reset_less=True)
        m.d.sync += placed.eq(Mux(upper, shifted << GROUP_BITS * _QUAD, shifted))

        # Stage 4: merged with the groups that are there already.
        pending = Signal(len(placed))
        word = len(self.beats.p)
        beat = Signal(word, reset_less=True)
        m.d.comb += self.beats.p.eq(beat)
        m.d.sync += [
            self.beats.valid.eq(leaves[3]), beat.eq(pending),
            pending.eq(Mux(leaves[3], pending >> word, pending) | placed),
        ]

        # The block, which remains until the next one begins.
        block = Signal(block_layout(), reset_less=True)
        length = Signal(range(COMPACT_BEATS * BEAT_GROUPS + 1), reset_less=True)
        ended = Signal(block_layout(), reset_less=True)
        finished = Signal(4)
        with m.If(opened):
            with m.If(code.opens):
                m.d.sync += [length.eq(code.count), block.items.eq(code.item), block.time.eq(code.time)]
            with m.Else():
                m.d.sync += [length.eq(length + code.count), block.items.eq(block.items + code.item)]
        m.d.comb += block.length.eq((length + 1) >> 1)
        with m.If(done):
            m.d.sync += ended.eq(block)
        m.d.sync += finished.eq(Cat(done, finished))
        m.d.comb += [
            self.blocks.valid.eq(finished[3]), self.blocks.p.eq(ended),
            self.busy.eq(self.valid | valid.any() | whole | closing | leaves.any() | self.beats.valid | finished.any()),
        ]
        return m
