"""The sinks of a board, and the choice of the one that receives the strobe vectors."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..items.expander import item_layout
from ..layout import COUNTER_BITS, EXTRA_OUTPUTS, BlockType, Extra, Geometry, Sink
from ..layout import Window as WindowSetting
from ..lib.signatures import board_clock
from ..lib.spine import in_spine
from ..merge.merge import merged
from ..stream.block_source import block_source
from ..trigger.event_mask import mask_entry
from .classic.classic_sink import ClassicSink, frame_access
from .extended.compact_sink import CompactSink

__all__ = ["Sinks", "sink_account", "sink_settings"]


def sink_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's access to the sinks, as seen from the registers.

    extended : the sink in force is the extended one.
    window, stream : CONTROL.
    flush : maximum number of windows that something waits for more.
    words, events : item modes in force.
    start, stop, before, triggered, stopped : see :class:`~.trigger.Trigger`.
    load, entry : a write of EVENT_MASK.
    discarded : see :class:`~.compact_sink.CompactSink`.
    frames : see :func:`~.classic_sink.frame_access`.
    out_done, out_late : see :class:`~.trigger_out.TriggerOut`; only on a board with ``trigger_out``.
    fine : the phases of the samples are right; only with four samples of a strobe per clock. Changes only at a reset.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "extended": Out(1, init=geometry.first_sink), "window": Out(2), "stream": Out(1), "flush": Out(32),
        "words": Out(nodes), "events": Out(nodes), "start": Out(32), "stop": Out(32), "before": Out(9),
        "triggered": In(1), "stopped": In(1), "load": Out(1), "entry": Out(mask_entry()),
        "discarded": In(COUNTER_BITS), "frames": Out(frame_access(geometry)),
        **({"out_done": In(1), "out_late": In(1)} if Extra.TRIGGER_OUT in geometry.extras else {}),
        **({"fine": Out(1)} if geometry.phases == 4 else {}),
    })


def sink_account(geometry: Geometry) -> wiring.Signature:
    """Signature of what happened in the sinks, for the counters, as seen from the sinks.

    delivered : nodes whose item leaves, one bit per node.
    counting : some items that have left are not counted yet.
    waiting : something waits for the link, or is on its way to it.
    owing : items were passed over and have not come yet.
    horizon : windows until a sink acts on a timer.
    frames, frame_level, discarded : as the registers show them.

    Only with the extended sink, for the reduction:

    tap, tapped, free, level : see :class:`~.compact_sink.CompactSink`.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "delivered": Out(nodes), "counting": Out(1), "waiting": Out(1), "owing": Out(1), "horizon": Out(32),
        "frames": Out(COUNTER_BITS if geometry.narrow else 64), "frame_level": Out(16), "discarded": Out(COUNTER_BITS),
        **({"tap": Out(1), "tapped": Out(item_layout(nodes, geometry.port_bits)), "free": In(1),
            "level": Out(range(geometry.compact_depth + 1))} if Sink.EXTENDED in geometry.sinks else {}),
    })


class Sinks(wiring.Component):
    """The classic sink, the extended one, or both; if there are two, the host chooses one at a reset.

    Members
    -------
    i : see :func:`~.merge.merged`.
    settings : see :func:`sink_settings`.
    account : see :func:`sink_account`.
    time : see :func:`~.signatures.board_clock`.
    ending : capture is disabled, and nothing more comes.
    frames, compact : sources of FRAMES and of COMPACT blocks, of the sinks that exist.
    half, longer : stamps in COMPACT blocks count halves or quarters of a clock; some items are longer than a nibble.
        ``half`` only with several samples of a strobe per clock, ``longer`` only with the extended sink.
    trigger_out : see :class:`~.trigger_out.TriggerOut`; only on a board that has it.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        self.pins = [pin for extra, pin in EXTRA_OUTPUTS.items() if extra in geometry.extras]
        self.classic, self.extended = (sink in geometry.sinks for sink in (Sink.CLASSIC, Sink.EXTENDED))
        super().__init__({
            "i": In(merged(geometry)), "settings": In(sink_settings(geometry)), "account": Out(sink_account(geometry)),
            "time": In(board_clock(geometry)), "ending": In(1),
            **({"frames": Out(block_source(geometry.beat_bytes))} if self.classic else {}),
            **({"compact": Out(block_source(geometry.beat_bytes)), "longer": Out(1)} if self.extended else {}),
            **({"half": Out(1)} if geometry.halvings else {}),
            **dict.fromkeys(self.pins, Out(1)),
        })

    @property
    def sources(self) -> list[tuple[BlockType, wiring.PureInterface]]:
        """Sources of blocks with their types, the most urgent first."""
        return [*([(BlockType.FRAMES, self.frames)] if self.classic else []),
                *([(BlockType.COMPACT, self.compact)] if self.extended else [])]

    def elaborate(self, platform):
        m = Module()
        i, account = self.i, self.account
        sinks, done = [], []
        if self.classic:
            m.submodules.classic = classic = in_spine(ClassicSink(self.geometry, self.ram))
            self._place_classic(m, classic)
            sinks.append(classic)
            done.append(classic.done)
        if self.extended:
            m.submodules.extended = extended = in_spine(CompactSink(self.geometry, self.ram))
            self._place_extended(m, extended)
            sinks.append(extended)
            done.append(extended.i.valid & extended.i.ready)
        self._share(m, sinks)
        if self.extended:
            nearest = extended.horizon
            if self.classic:
                nearest = Mux(nearest < classic.horizon, nearest, classic.horizon)
            m.d.sync += account.horizon.eq(nearest)
        else:
            m.d.comb += account.horizon.eq(classic.horizon)
        frames = (self.settings.frames.level != 0) if self.classic else 0
        m.d.comb += [
            account.frames.eq(self.settings.frames.generated), account.frame_level.eq(self.settings.frames.level),
            account.discarded.eq(self.settings.discarded),
            account.waiting.eq(frames | (extended.waiting if self.extended else 0)),
            i.pop.eq(_any_of(sink.pop for sink in sinks)), account.delivered.eq(_any_of(s.delivered for s in sinks)),
            i.stuck.eq(_any_of(sink.stuck for sink in sinks)), i.done.eq(_any_of(done)),
            i.busy.eq(_any_of(sink.busy for sink in sinks) | (i.vectors.valid if self.extended else 0)),
        ]
        return m

    def _share(self, m: Module, sinks: list[ClassicSink | CompactSink]) -> None:
        """Passes each vector to the sink that is chosen."""
        vectors = self.i.vectors
        if len(sinks) == 1:
            wiring.connect(m, wiring.flipped(vectors), sinks[0].i)
            return
        classic, extended = sinks
        chosen = self.settings.extended
        for sink, takes in ((classic, ~chosen), (extended, chosen)):
            m.d.comb += [
                sink.i.valid.eq(vectors.valid & takes),
                sink.i.p.eq(vectors.p.as_value()),    # a frame has no halves, which are the uppermost bits
            ]
        m.d.comb += vectors.ready.eq(Mux(chosen, extended.i.ready, classic.i.ready))

    def _place_classic(self, m: Module, sink: ClassicSink) -> None:
        settings = self.settings
        wiring.connect(m, wiring.flipped(settings.frames), sink.access)
        wiring.connect(m, sink.source, wiring.flipped(self.frames))
        m.d.comb += [
            sink.nibble.eq(self.i.nibble), sink.streaming.eq(settings.stream), sink.now.eq(self.time.now),
            sink.flush.eq(settings.flush), sink.ending.eq(self.ending),
        ]

    def _place_extended(self, m: Module, sink: CompactSink) -> None:
        i, settings, account = self.i, self.settings, self.account
        wiring.connect(m, sink.source, wiring.flipped(self.compact))
        m.d.comb += [
            sink.words.eq(settings.words), sink.events.eq(settings.events), sink.ended.eq(i.ended),
            sink.pressed.eq(i.pressed), sink.nibble.eq(i.nibble), sink.mark.eq(i.mark), i.fresh.eq(sink.fresh),
            sink.streaming.eq(settings.stream), sink.now.eq(self.time.now), sink.limit.eq(settings.flush),
            sink.ending.eq(self.ending),
            sink.start.eq(settings.start), sink.stop.eq(settings.stop), sink.before.eq(settings.before),
            settings.triggered.eq(sink.triggered), settings.stopped.eq(sink.stopped),
            settings.discarded.eq(sink.discarded), sink.load.eq(settings.load), sink.entry.eq(settings.entry),
            account.counting.eq(sink.counting), account.owing.eq(sink.owing), account.tap.eq(sink.tap),
            account.tapped.eq(sink.tapped), account.level.eq(sink.level), sink.free.eq(account.free),
        ]
        m.d.sync += self.longer.eq((settings.words | settings.events).any())
        if self.geometry.halvings:
            fine = settings.extended & (settings.window == WindowSetting.CLOCK)
            m.d.sync += self.half.eq(fine & settings.fine if self.geometry.phases == 4 else fine)
            m.d.comb += sink.halving.eq(self.half)
        if self.pins:
            m.d.comb += [
                sink.window.eq(settings.window), self.trigger_out.eq(sink.out),
                settings.out_done.eq(sink.out_done), settings.out_late.eq(sink.out_late),
            ]


def _any_of(values):
    """The values, ORed bit by bit."""
    return reduce(or_, values)
