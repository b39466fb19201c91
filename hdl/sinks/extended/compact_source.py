"""COMPACT source: buffers complete COMPACT blocks for the blocker, and counts the items that leave."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import BEAT_BYTES, COMPACT_HEAD, Geometry
from ...lib.deadline import Deadline
from ...lib.fifo import SmallFifo, StreamFifo
from ...stream.block_source import block_source
from .packer import block_layout

__all__ = ["CompactSource"]

#: Maximum number of complete blocks that wait, and of items whose node is remembered until their block leaves.
_BLOCKS, _ITEMS = 16, 8192
#: Beats that are reserved for codes on their way.
_MARGIN = 16


class CompactSource(wiring.Component):
    """Buffers beats until their block is complete, and then requests it.

    An item is delivered when its block leaves. The block has been packed by then, so the nodes of
    its items are remembered in order, and are counted one per clock from the grant on.

    Members
    -------
    beats, blocks : from the packer; ``ready`` is ignored, because the packer stops at ``room``.
    words, events : nodes in word mode; in event mode. If there are any, a block begins with a beat that
        lists them.
    item, node : an item of this node goes into the open block.
    streaming : blocks leave; else they wait.
    open : the encoder has an open block.
    now, limit : window number; maximum number of windows an open block waits for more.
    room : there is room for the codes that are on their way, and eight more.
    flush : the open block is to be closed: it has waited long enough, or holds as many items as
        can be remembered.
    source : COMPACT blocks.
    delivered : an item of this node has left, one bit per node.
    counting : some items that have left are not counted yet.
    waiting : a block is complete, or has left and is not counted yet.
    horizon : windows until the open block is closed, all ones if there is none.
    level : beats of 16 bytes that wait, one clock ago.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        nodes = geometry.nodes
        self.node_bits = max(1, (nodes - 1).bit_length())
        super().__init__({
            "beats": In(stream.Signature(8 * geometry.beat_bytes)), "blocks": In(stream.Signature(block_layout())),
            "words": In(nodes), "events": In(nodes),
            "item": In(1), "node": In(self.node_bits), "streaming": In(1), "open": In(1),
            "now": In(32), "limit": In(32), "room": Out(1), "flush": Out(1),
            "source": Out(block_source(geometry.beat_bytes)), "delivered": Out(nodes), "counting": Out(1),
            "waiting": Out(1), "horizon": Out(32), "level": Out(range(geometry.compact_depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        geometry, source = self.geometry, self.source
        each = BEAT_BYTES // geometry.beat_bytes    # beats of 16 bytes
        depth = geometry.compact_depth * each
        m.submodules.store = store = StreamFifo(8 * geometry.beat_bytes, depth, self.ram, skid=True)
        m.submodules.blocks = blocks = SmallFifo(block_layout(), _BLOCKS)
        m.submodules.log = log = StreamFifo(self.node_bits, _ITEMS, self.ram)
        m.submodules.deadline = deadline = Deadline()
        wiring.connect(m, wiring.flipped(self.beats), store.i)
        wiring.connect(m, wiring.flipped(self.blocks), blocks.i)
        items_open = Signal(range(_ITEMS))
        crowded = Signal()
        logged = Signal()
        logged_node = Signal(self.node_bits, reset_less=True)
        steady = Signal(12)   # the state of the open block is not that of the one before
        time = Signal(64, reset_less=True)
        m.d.comb += [
            log.i.valid.eq(logged), log.i.p.eq(logged_node),
            deadline.now.eq(self.now), deadline.limit.eq(self.limit), deadline.idle.eq(~self.open),
            self.horizon.eq(deadline.horizon),
        ]
        m.d.sync += [
            self.level.eq(store.level >> each.bit_length() - 1 if each > 1 else store.level),
            logged.eq(self.item), logged_node.eq(self.node),
            self.room.eq((store.level < depth - _MARGIN * each) & ~blocks.level[3:].any()
                         & (log.level < _ITEMS - _MARGIN)),
            crowded.eq(items_open[-1]), steady.eq(Cat(self.open, steady)),
            self.flush.eq((deadline.due | crowded) & self.open & steady.all()),
        ]
        with m.If(self.blocks.valid):
            m.d.sync += items_open.eq(0)
        with m.Elif(self.item):
            m.d.sync += items_open.eq(items_open + 1)

        # A block leaves. Registers hold the values that the blocker reads late.
        headed = Signal()     # blocks begin with a beat of modes
        at_head = Signal()
        modes = Cat(_wide(self.words), _wide(self.events))
        if each > 1:
            at = Signal(range(each))
            modes, final = Cat(modes, Const(0, 64)).word_select(at, 8 * geometry.beat_bytes), at.all()
            with m.If(at_head & source.beats.ready):
                m.d.sync += at.eq(at + 1)
        m.d.comb += [
            blocks.o.ready.eq(source.grant), source.time.eq(time),
            source.beats.valid.eq(at_head | store.o.valid), store.o.ready.eq(source.beats.ready & ~at_head),
            source.beats.p.eq(Mux(at_head, modes, store.o.p)),
        ]
        m.d.sync += headed.eq((self.words | self.events).any())
        with m.If(source.grant):
            m.d.sync += at_head.eq(headed)
        with m.Elif(source.beats.ready if each == 1 else source.beats.ready & final):
            m.d.sync += at_head.eq(0)
        items = Signal.like(blocks.o.p.items)
        left = Signal()       # a block of this number of items, a clock ago
        m.d.sync += left.eq(source.grant)
        with m.If(source.grant):
            m.d.sync += [source.request.eq(0), items.eq(blocks.o.p.items)]
        with m.Elif(blocks.o.valid & self.streaming & ~source.request):
            m.d.sync += [
                source.request.eq(1), source.length.eq(blocks.o.p.length + Mux(headed, COMPACT_HEAD.bytes, 0)),
                time.eq(blocks.o.p.time),
            ]

        owed = Signal(range(2 * _ITEMS))
        some_owed = Signal()
        counted = Signal()
        counting = Signal()   # `delivered` is valid
        m.d.comb += [
            log.o.ready.eq(some_owed & ~left), counted.eq(log.o.valid & log.o.ready),
            self.counting.eq(left | some_owed | counting),
            self.waiting.eq(blocks.o.valid | source.request | self.counting),
        ]
        with m.If(left | counted):
            m.d.sync += [owed.eq(owed + Mux(left, items, -1)), some_owed.eq(left | (owed != 1))]
        m.d.sync += [self.delivered.eq(Mux(counted, 1 << log.o.p, 0)), counting.eq(counted)]
        return m


def _wide(nodes):
    """One bit per node, in 32 bits."""
    return Cat(nodes, Const(0, 32 - len(nodes)))
