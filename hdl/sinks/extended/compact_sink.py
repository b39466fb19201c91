"""Compact sink: all stages after the strobe-vector FIFO in the extended configuration."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...items.expander import Expander, item_layout
from ...items.halver import Halver
from ...items.lineup import Lineup, lined_layout
from ...layout import COUNTER_BITS, PRETRIGGER_MAX, Extra, Geometry, Option
from ...lib.skid import Skid
from ...merge.window import vector_layout
from ...stream.block_source import block_source
from ...trigger.discards import Discards
from ...trigger.event_mask import EventMask, mask_entry, masked_layout
from ...trigger.trigger import Trigger, match_layout
from ...trigger.trigger_out import TriggerOut
from .compact_source import CompactSource
from .encoder import Encoder
from .packer import Packer
from .word_packer import WordPacker

__all__ = ["CompactSink"]


class CompactSink(wiring.Component):
    """Line-up, halvers, expander, trigger, event mask, encoder, packer and source of COMPACT blocks, connected in
    series. The event mask can be absent.

    ``limit`` is the number of windows that something may wait before its block leaves. A quarter of it is reserved for
    items that are still open, if there can be any. With a trigger, a window waits for its open items as long as there
    is room, so that ``limit`` does not change the order of the items: otherwise it would change which items start and
    stop, and how far back the history reaches.

    Members
    -------
    i : entries of the strobe-vector FIFO.
    ended, pressed : see :class:`~.lineup.Lineup`.
    words, events : nodes in word mode; nodes in event mode, which takes precedence. Change only at a reset.
    pop, fresh, nibble, mark : to and from the node FIFOs.
    streaming, now, limit, source, delivered, counting, horizon : see :class:`~.compact_source.CompactSource`.
    stuck : items wait, and there is no room for them.
    busy : something is between the strobe-vector FIFO and the open block.
    waiting : something is in a block, or has left and is not counted yet, or was passed over.
    ending : capture is disabled, and nothing captured remains before the open block except items that were passed over:
        items that wait for a start are discarded, and the open block is closed at once.
    owing : an item was passed over and has not followed.
    start, stop, before, triggered, stopped : see :class:`~.trigger.Trigger`.
    load, entry : see :class:`~.event_mask.EventMask`.
    discarded : number of items that trigger and mask have discarded since the reset.
    free : in the next clock no nibble passes.
    tap, tapped : a nibble passed one clock ago, and its contents.
    level : beats that wait.
    window, out, out_done, out_late : see :class:`~.trigger_out.TriggerOut`; only on a board with ``trigger_out``.
    halving : only with more than one sample of a strobe per clock: stamps after the line-up count the intervals between
        samples. Changes only at a reset.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        nodes = geometry.nodes
        super().__init__({
            "i": In(stream.Signature(vector_layout(nodes, geometry.halvings))),
            "ended": In(nodes), "pressed": In(1), "words": In(nodes), "events": In(nodes),
            "pop": Out(nodes), "fresh": Out(1), "nibble": In(geometry.port_bits * nodes), "mark": In(nodes),
            "streaming": In(1), "now": In(32), "limit": In(32), "source": Out(block_source(geometry.beat_bytes)),
            "delivered": Out(nodes), "counting": Out(1), "horizon": Out(32),
            "stuck": Out(1), "busy": Out(1), "waiting": Out(1),
            "ending": In(1), "owing": Out(1), "start": In(match_layout()), "stop": In(match_layout()),
            "before": In(range(PRETRIGGER_MAX + 1)), "triggered": Out(1), "stopped": Out(1),
            "discarded": Out(COUNTER_BITS), "load": In(1), "entry": In(mask_entry()),
            "free": In(1), "tap": Out(1), "tapped": Out(item_layout(nodes, geometry.port_bits)),
            "level": Out(range(geometry.compact_depth + 1)),
        } | ({"halving": In(1)} if geometry.halvings else {})
            | ({"window": In(2), "out": Out(1), "out_done": Out(1), "out_late": Out(1)}
               if Extra.TRIGGER_OUT in geometry.extras else {}))

    def elaborate(self, platform):
        m = Module()
        nodes = self.geometry.nodes
        m.submodules.lineup = lineup = Lineup(self.geometry)
        m.submodules.expander = expander = Expander(self.geometry)
        m.submodules.encoder = encoder = Encoder(self.geometry)
        m.submodules.packer = packer = (WordPacker if self.geometry.slim else Packer)(self.geometry)
        m.submodules.source = blocks = CompactSource(self.geometry, self.ram)
        wiring.connect(m, wiring.flipped(self.i), lineup.i)
        lineup_busy, vectors = lineup.busy, lineup.o
        for k in range(self.geometry.halvings):
            halver = Halver(nodes, self.geometry.halvings - 1 - k)
            m.submodules[f"halver{k}" if k else "halver"] = halver
            wiring.connect(m, vectors, halver.i)
            m.d.comb += halver.on.eq(self.halving)
            lineup_busy, vectors = lineup_busy | halver.busy, halver.o
        m.submodules.vector_skid = vector_skid = Skid(lined_layout(nodes))
        wiring.connect(m, vectors, vector_skid.i)
        wiring.connect(m, vector_skid.o, expander.i)
        wiring.connect(m, packer.beats, blocks.beats)
        wiring.connect(m, packer.blocks, blocks.blocks)
        wiring.connect(m, blocks.source, wiring.flipped(self.source))

        # Nibbles on their way to the trigger, as the reduction sees them.
        m.submodules.trigger = trigger = Trigger(self.geometry, self.ram)
        m.submodules.discards = discards = Discards(3)
        m.submodules.item_skid = item_skid = Skid(masked_layout(nodes, self.geometry.port_bits))
        masking, dropped = self._mask(m, trigger, item_skid)
        wiring.connect(m, item_skid.o, encoder.i)
        paused = Signal()
        triggers = Signal()     # there is a trigger
        tapped = Signal(self.tapped.shape(), reset_less=True)
        m.d.comb += [
            trigger.i.p.eq(expander.o.p), trigger.i.valid.eq(expander.o.valid & ~paused),
            expander.o.ready.eq(trigger.i.ready & ~paused), self.level.eq(blocks.level),
            trigger.start.eq(self.start), trigger.stop.eq(self.stop), trigger.before.eq(self.before),
            trigger.events.eq(self.events), trigger.awaited.eq(lineup.awaited),
            self.triggered.eq(trigger.triggered), self.stopped.eq(trigger.stopped),
            discards.thrown.eq(Cat(trigger.thrown, dropped)), self.discarded.eq(discards.count),
            self.tapped.eq(tapped),
        ]
        m.d.sync += [
            paused.eq(self.free), self.tap.eq(trigger.i.valid & trigger.i.ready),
            trigger.finish.eq(self.ending), triggers.eq(self.start.on | self.stop.on),
        ]
        with m.If(trigger.i.valid & trigger.i.ready):
            m.d.sync += tapped.eq(expander.o.p)

        horizon = blocks.horizon
        if Extra.TRIGGER_OUT in self.geometry.extras:
            # The pin has a time of its own, which is not to be skipped.
            pulses = self._pulse(m, trigger)
            horizon = Mux(pulses, 0, blocks.horizon)
        items = Signal(nodes)
        single = Signal(init=1)
        limit = Signal(32)      # at the end there is nothing more to wait for
        share = Signal(32)      # of the time that something may wait
        m.d.sync += [
            items.eq(self.words | self.events), single.eq(~items.any()),
            limit.eq(Mux(self.ending, 0, self.limit)),
            share.eq(limit >> 2), lineup.limit.eq(Mux(triggers, -1, share)),
            blocks.limit.eq(limit - Mux(single, 0, share)),
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
            self.horizon.eq(horizon), self.owing.eq(lineup.owing),
        ]
        if Extra.TRIGGER_OUT in self.geometry.extras:
            lineup_busy = lineup_busy | pulses
        m.d.sync += [
            self.stuck.eq(masking & ~blocks.room),
            self.busy.eq(lineup_busy | expander.busy | trigger.busy | masking | item_skid.o.valid | encoder.busy
                         | packer.busy),
            self.waiting.eq(encoder.open | blocks.waiting | lineup.owing | trigger.holds),
        ]
        return m

    def _pulse(self, m: Module, trigger: Trigger) -> Value:
        """The pin that the trigger raises. Returns whether that is still to be done."""
        m.submodules.out = out = TriggerOut()
        time, halvings = trigger.fired_at, self.geometry.halvings
        if halvings:
            time = Mux(self.halving, time >> halvings, time)
        m.d.comb += [
            out.fired.eq(trigger.fired), out.time.eq(time), out.window.eq(self.window), out.now.eq(self.now),
            self.out.eq(out.pin), self.out_done.eq(out.done), self.out_late.eq(out.late),
        ]
        return out.busy

    def _mask(self, m: Module, trigger: Trigger, skid: Skid) -> tuple[Value, Value]:
        """The event mask between trigger and encoder, or a direct way. Returns whether something is inside, and whether
        an item was dropped."""
        if not self.geometry.has(Option.EVENT_MASK):
            m.d.comb += [
                skid.i.valid.eq(trigger.o.valid), trigger.o.ready.eq(skid.i.ready), skid.i.p.void.eq(0),
                *(skid.i.p[name].eq(trigger.o.p[name]) for name in trigger.shape.members),
            ]
            return trigger.o.valid, Const(0)
        m.submodules.event_mask = event_mask = EventMask(self.geometry)
        wiring.connect(m, trigger.o, event_mask.i)
        wiring.connect(m, event_mask.o, skid.i)
        m.d.comb += [
            event_mask.events.eq(self.events), event_mask.load.eq(self.load), event_mask.entry.eq(self.entry),
        ]
        return event_mask.busy, event_mask.dropped
