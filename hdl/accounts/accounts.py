"""Accounts: counts what happened to each item, and detects when everything has left."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import COUNTER_BITS, Cause, Counter, Geometry, Option, Sink
from ..lib.spine import in_spine
from ..merge.board_time import window_time
from ..merge.merge import merge_account
from ..sinks.sinks import sink_account
from ..stream.block_source import block_source
from .activity import Activity
from .census import Census
from .counters import ROW, SWEPT, Counters, counter_rows
from .outages import Outages
from .outages_narrow import SerialOutages
from .reduction import Reduction

__all__ = ["Accounts", "account_settings"]


def account_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's access to the accounts, as seen from the registers.

    enable, window, slow : capture is enabled; the window in force; the link is slow.
    follow, missing : time follows another board's; the wave was missed.
    trigger, status : as the registers TRIGGER_STATE and STATUS show them.
    latch, latched : a pulse copies all counters and histograms; they have been copied.
    reading, address, counter : a word of the counters, see :class:`~.counters.Counters`.
    reduction_address, reduction_word : likewise of the reduction; the word comes three clocks later.
    clearing : a reset has to continue.
    refused : causes of refusals at present.
    """
    return wiring.Signature({
        "enable": Out(1), "window": Out(2), "slow": Out(1), "follow": Out(1), "missing": Out(1), "trigger": Out(3),
        "status": Out(4), "latch": Out(1), "latched": In(1),
        "reading": Out(1), "address": Out(range(ROW * counter_rows(geometry.nodes))), "counter": In(COUNTER_BITS),
        "reduction_address": Out(13), "reduction_word": In(COUNTER_BITS), "clearing": In(1), "refused": In(len(Cause)),
    })


class Accounts(wiring.Component):
    """Counters with their two readers, outages, the census, the activity detector, and with the extended sink the
    reduction, unless it is absent.

    Members
    -------
    settings : see :func:`account_settings`.
    clear : reset in progress.
    time : see :func:`~.board_time.window_time`.
    now, running : the window's number; time runs.
    merge, sinks : see :func:`~.merge.merge_account` and :func:`~.sinks.sink_account`.
    rejected, twice, strobed : from the intake; ``twice`` only on a board with half clocks and the glitch filter.
    vector_level, frame_level, frames, discarded : as the registers show them.
    fill, enters : of the node FIFOs, see :func:`~.merge.merged`; only with the extended sink.
    leaves, busy : a beat of the stream leaves; the blocker, the store or the bus is at work.
    loss, census : sources of LOSS and CENSUS blocks.
    ending, quiet, horizon, slip : capture is disabled, and nothing more comes; for simulations that skip idle time, see
        :class:`~.capture.Capture`.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        self.extended = Sink.EXTENDED in geometry.sinks
        self.doubled = geometry.guarded and geometry.half_clock
        nodes = geometry.nodes
        super().__init__({
            "settings": In(account_settings(geometry)), "clear": In(1), "time": In(window_time(geometry)),
            "now": In(64), "running": In(1), "merge": In(merge_account(geometry)), "sinks": In(sink_account(geometry)),
            "rejected": In(nodes), "strobed": In(1),
            "vector_level": In(range(geometry.vector_depth + 1)), "frame_level": In(16),
            "frames": In(COUNTER_BITS if geometry.narrow else 64), "discarded": In(COUNTER_BITS),
            "leaves": In(1), "busy": In(1),
            "loss": Out(block_source(geometry.beat_bytes)), "census": Out(block_source(geometry.beat_bytes)),
            "ending": Out(1), "quiet": Out(1), "horizon": Out(32), "slip": In(8),
            **({"twice": In(nodes)} if self.doubled else {}),
            **({"fill": In(nodes).array(geometry.node_depth.bit_length()), "enters": In(nodes)}
               if self.extended else {}),
        })

    def elaborate(self, platform):
        m = Module()
        nodes, merge, sinks = self.geometry.nodes, self.merge, self.sinks
        # Refusals reach the outages one clock later, when their window is the current one. Events are registered in
        # stages, because these are wide sums.
        happened = Signal(4)
        changed = Signal()
        m.d.sync += [
            happened.eq(Cat(merge.admitted.any(), Cat(merge.refused_by).any(), sinks.delivered.any(),
                            self.rejected.any())),
            changed.eq(happened.any()),
        ]
        m.submodules.loss = loss = SerialOutages(nodes, self.ram) if self.geometry.narrow else Outages(nodes)
        m.submodules.counters = counters = Counters(
            nodes, len(merge.beyond), self.ram, self.geometry.guarded, shared=self.geometry.narrow,
            doubled=self.doubled)
        m.submodules.census = in_spine(census := Census(self.geometry))
        m.submodules.activity = activity = Activity()
        wiring.connect(m, loss.source, wiring.flipped(self.loss))
        wiring.connect(m, census.source, wiring.flipped(self.census))
        self._take_losses(m, loss)
        self._count(m, counters, census)
        self._report(m, census, activity, changed)
        self._watch(m, activity, loss, census, counters, changed | happened.any())
        if self.geometry.has(Option.REDUCTION):
            self._reduce(m, counters)
        else:
            m.d.comb += self.settings.latched.eq(counters.latched[1])
        return m

    def _take_losses(self, m: Module, loss: Outages | SerialOutages) -> None:
        merge, time = self.merge, self.time
        m.d.sync += [
            *(mine.eq(its) for mine, its in zip(loss.refused_by, merge.refused_by, strict=True)),
            loss.some.eq(Cat(merge.refused_by).any()), loss.closed.eq(merge.closed),
        ]
        m.d.comb += [
            loss.now.eq(time.now), loss.live.eq(time.enable), loss.clear.eq(self.clear),
            self.settings.refused.eq(Cat(refused.any() for refused in merge.refused_by)),
        ]

    def _count(self, m: Module, counters: Counters, census: Census) -> None:
        settings, merge = self.settings, self.merge
        events = {
            Counter.ACCEPTED: merge.admitted, Counter.DELIVERED: self.sinks.delivered,
            Counter.LOST_FRAME_FIFO: merge.refused_by[0], Counter.LOST_NODE_FIFO: merge.refused_by[1],
            Counter.LOST_VECTOR_FIFO: merge.refused_by[2], Counter.CARRIED: merge.carried,
            Counter.REJECTED: self.rejected,
        }
        m.d.comb += [
            *(counters.event[k].eq(events[counter]) for k, counter in enumerate(SWEPT)),
            *(mine.eq(its) for mine, its in zip(counters.beyond, merge.beyond, strict=True)),
            *([counters.twice.eq(self.twice)] if self.doubled else []),
            counters.clear.eq(self.clear), counters.slip.eq(self.slip),
            counters.latch.eq(Cat(census.latch, settings.latch)), census.copying.eq(counters.copying[0]),
            counters.reading.eq(Cat(census.reading, settings.reading)),
            counters.address[0].eq(census.address), counters.address[1].eq(settings.address),
            census.word.eq(counters.word[0]), settings.counter.eq(counters.word[1]),
        ]

    def _report(self, m: Module, census: Census, activity: Activity, changed: Signal) -> None:
        settings = self.settings
        m.d.comb += [
            census.now.eq(self.now), census.window.eq(settings.window), census.running.eq(self.running),
            census.slow.eq(settings.slow), census.enable.eq(settings.enable), census.drained.eq(activity.drained),
            census.changed.eq(changed), census.leaves.eq(self.leaves), census.counting.eq(self.sinks.counting),
            census.frames.eq(self.frames), census.frame_level.eq(self.frame_level),
            census.vector_level.eq(self.vector_level), census.status.eq(settings.status),
            census.follows.eq(settings.follow), census.strayed.eq(settings.missing),
            census.trigger.eq(settings.trigger), census.discarded.eq(self.discarded),
        ]

    def _watch(self, m: Module, activity: Activity, loss: Outages | SerialOutages, census: Census, counters: Counters,
               changed) -> None:
        settings, sinks, merge = self.settings, self.sinks, self.merge
        # Outages of the serial kind are visited at times of their own.
        outages = loss.open | loss.source.request
        if not self.geometry.narrow:
            m.d.comb += loss.slip.eq(self.slip)
        m.d.comb += [
            activity.enable.eq(settings.enable), activity.strobed.eq(self.strobed), activity.changed.eq(changed),
            activity.pending.eq(merge.pending | sinks.owing), activity.frames.eq(sinks.waiting),
            activity.moving.eq(merge.moving | sinks.owing | sinks.counting | (outages if self.geometry.narrow else 0)),
            activity.outages.eq(outages), activity.owed.eq(census.owed), activity.skips.eq(self.slip.any()),
            activity.busy.eq(self.busy | self.clear | census.busy | counters.busy),
            self.ending.eq(activity.ending),
            self.quiet.eq(activity.quiet & self.running & ~settings.follow),
        ]
        m.d.sync += self.horizon.eq(Mux(
            merge.held, 0, Mux(census.horizon < sinks.horizon, census.horizon, sinks.horizon)))

    def _reduce(self, m: Module, counters: Counters) -> None:
        settings, sinks = self.settings, self.sinks
        m.submodules.reduction = reduction = Reduction(self.geometry, self.ram)
        m.d.comb += [
            reduction.clear.eq(self.clear), settings.clearing.eq(reduction.clearing),
            reduction.item.eq(sinks.tap & sinks.tapped.begins), reduction.nibble.eq(sinks.tap & ~sinks.tapped.begins),
            reduction.node.eq(sinks.tapped.node), reduction.time.eq(sinks.tapped.time),
            reduction.last.eq(sinks.tapped.last), sinks.free.eq(reduction.free), reduction.enters.eq(self.enters),
            *(mine.eq(its) for mine, its in zip(reduction.level, self.fill, strict=True)),
            reduction.vector_level.eq(self.vector_level), reduction.store_level.eq(sinks.level),
            reduction.latch.eq(settings.latch),
            settings.latched.eq(counters.latched[1] & reduction.latched),
            reduction.address.eq(settings.reduction_address), settings.reduction_word.eq(reduction.word),
        ]
