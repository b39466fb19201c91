"""Compact sink: what stands behind the strobe-vector FIFO in the extended configuration."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .block_source import block_source
from .compact_source import CompactSource
from .encoder import Encoder
from .expander import Expander, item_layout
from .layout import PORT_BITS, Geometry
from .lineup import Lineup
from .packer import Packer
from .window import vector_layout

__all__ = ["CompactSink"]


class CompactSink(wiring.Component):
    """Line-up, expander, encoder, packer and source of COMPACT blocks, one behind the other.

    Of the windows that something may wait before its block leaves (``limit``), a quarter is for items
    that are still open, if there can be any.

    Members
    -------
    i : entries of the strobe-vector FIFO.
    ended, pressed : see :class:`~.lineup.Lineup`.
    words, events : nodes in word mode; in event mode, which wins. Do not change but at a reset.
    pop, fresh, nibble, mark : to and from the node FIFOs.
    streaming, now, limit, source, delivered, counting, horizon : see :class:`~.compact_source.CompactSource`.
    stuck : items wait, and there is no room for them.
    busy : something is between the strobe-vector FIFO and the open block.
    waiting : something is in a block, or has left and is not counted yet, or was passed over.
    free : in the next clock no nibble goes by.
    tap, tapped : a nibble went by a clock ago, and what it was.
    level : beats that wait.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(vector_layout(nodes))),
            "ended": In(nodes), "pressed": In(1), "words": In(nodes), "events": In(nodes),
            "pop": Out(nodes), "fresh": Out(1), "nibble": In(PORT_BITS * nodes), "mark": In(nodes),
            "streaming": In(1), "now": In(32), "limit": In(32), "source": Out(block_source()),
            "delivered": Out(nodes), "counting": Out(1), "horizon": Out(32),
            "stuck": Out(1), "busy": Out(1), "waiting": Out(1),
            "free": In(1), "tap": Out(1), "tapped": Out(item_layout(nodes)),
            "level": Out(range(geometry.compact_depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.lineup = lineup = Lineup(self.geometry)
        m.submodules.expander = expander = Expander(self.geometry)
        m.submodules.encoder = encoder = Encoder(self.geometry)
        m.submodules.packer = packer = Packer(self.geometry)
        m.submodules.source = blocks = CompactSource(self.geometry, self.ram)
        wiring.connect(m, wiring.flipped(self.i), lineup.i)
        wiring.connect(m, lineup.o, expander.i)
        wiring.connect(m, packer.beats, blocks.beats)
        wiring.connect(m, packer.blocks, blocks.blocks)
        wiring.connect(m, blocks.source, wiring.flipped(self.source))

        # Nibbles on their way to the encoder, as the reduction sees them.
        paused = Signal()
        m.d.comb += [
            encoder.i.p.eq(expander.o.p), encoder.i.valid.eq(expander.o.valid & ~paused),
            expander.o.ready.eq(encoder.i.ready & ~paused), self.level.eq(blocks.level),
        ]
        m.d.sync += [
            paused.eq(self.free), self.tap.eq(encoder.i.valid & encoder.i.ready), self.tapped.eq(expander.o.p)]

        items = Signal(self.geometry.nodes)
        single = Signal(init=1)
        m.d.sync += [
            items.eq(self.words | self.events), single.eq(~items.any()),
            lineup.limit.eq(self.limit >> 2), blocks.limit.eq(self.limit - Mux(single, 0, lineup.limit)),
        ]
        m.d.comb += [
            lineup.items.eq(items), lineup.ended.eq(self.ended), lineup.pressed.eq(self.pressed),
            lineup.now.eq(self.now),
            expander.words.eq(self.words), expander.events.eq(self.events),
            self.pop.eq(expander.pop), self.fresh.eq(expander.fresh),
            expander.nibble.eq(self.nibble), expander.cut.eq(self.mark),
            encoder.single.eq(single), encoder.room.eq(blocks.room), encoder.flush.eq(blocks.flush),
            packer.i.eq(encoder.o), packer.valid.eq(encoder.valid),
            blocks.words.eq(self.words), blocks.events.eq(self.events),
            blocks.item.eq(encoder.valid & encoder.o.item), blocks.node.eq(encoder.o.node),
            blocks.open.eq(encoder.open), blocks.streaming.eq(self.streaming), blocks.now.eq(self.now),
            self.delivered.eq(blocks.delivered), self.counting.eq(blocks.counting),
            self.horizon.eq(blocks.horizon),
        ]
        m.d.sync += [
            self.stuck.eq(expander.o.valid & ~blocks.room),
            self.busy.eq(lineup.busy | expander.busy | encoder.busy | packer.busy),
            self.waiting.eq(encoder.open | blocks.waiting | lineup.owing),
        ]
        return m
