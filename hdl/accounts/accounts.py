"""Loss accounting: counts the outcomes of items, and detects when everything has left."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..input.intake import intake_account
from ..layout import COUNTER_BITS, EXTRA_PINS, GATE_CAUSES, BlockType, Counter, Extra, Geometry, Option, Sink
from ..lib.signatures import board_clock, resting, skipping
from ..lib.spine import in_spine
from ..merge.merge import merge_account
from ..regeneration.links import link_account
from ..sinks.sinks import sink_account
from ..stream.block_source import block_source
from ..time.board_time import mark_time
from .activity import Activity
from .census import Census
from .counters import ROW, SWEPT, Counters, counter_rows
from .link_accounts import LinkAccounts
from .loss_records import LossRecords
from .loss_records_narrow import NarrowLossRecords
from .marks import Marks
from .reduction import Reduction

__all__ = ["Accounts", "account_settings"]


def account_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's access to the accounts, as seen from the registers.

    enable, window, slow : capture is enabled; the window in force; the link is slow.
    follow, missing : time follows another board's; the wave was missed.
    trigger, status : as the registers TRIGGER_STATE and STATUS show them.
    latch, latched : a pulse copies all counters and histograms; they have been copied.
    reading, address, counter : a word of the counters, see :class:`~.counters.Counters`.
    reduction_address, reduction_word : a word of the reduction; it comes three clocks after its address.
    clearing : a reset has to continue.
    refused : causes of refusals at present.
    links : links whose frames come; only on a board with links.
    """
    return wiring.Signature({
        "enable": Out(1), "window": Out(2), "slow": Out(1), "follow": Out(1), "missing": Out(1), "trigger": Out(3),
        "status": Out(4), "latch": Out(1), "latched": In(1),
        "reading": Out(1), "address": Out(range(ROW * counter_rows(geometry.nodes))), "counter": In(COUNTER_BITS),
        "reduction_address": Out(13), "reduction_word": In(COUNTER_BITS), "clearing": In(1),
        "refused": In(len(GATE_CAUSES)),
        **({"links": In(geometry.links)} if geometry.links else {}),
    })


class Accounts(wiring.Component):
    """Connects the counters and their two readers, the records of outages, the census and the activity detector. With
    the extended sink the reduction is included, unless it is absent; so are the marks of the pins that exist.

    Members
    -------
    settings : see :func:`account_settings`.
    clear : reset in progress.
    time : see :func:`~.signatures.board_clock`.
    intake, merge, sinks : see :func:`~.intake.intake_account`, :func:`~.merge.merge_account` and
        :func:`~.sinks.sink_account`.
    leaves, busy : a beat of the stream leaves; the blocker, the store or the bus is at work.
    loss, census : sources of LOSS and CENSUS blocks.
    link0, ... : only on a board with links, see :func:`~..regeneration.links.link_account`; ``link_loss``: a source of
        LOSS blocks.
    pps_in, trigger_in : only on a board with such pins, see :class:`~.marks.Marks`.
    moments, marks : only on a board with marks, see :func:`~.board_time.mark_time`; ``marks`` is a source of MARK
        blocks.
    ending : capture is disabled, and nothing more comes.
    skip, rest : see :func:`~.signatures.skipping` and :func:`~.signatures.resting`.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        self.extended = Sink.EXTENDED in geometry.sinks
        self.doubled = geometry.phases - 1 if geometry.guarded else 0
        self.pins = [pin for extra, pin in EXTRA_PINS.items() if extra in geometry.extras]
        super().__init__({
            "settings": In(account_settings(geometry)), "clear": In(1), "time": In(board_clock(geometry)),
            "intake": In(intake_account(geometry)),
            "merge": In(merge_account(geometry)), "sinks": In(sink_account(geometry)),
            "leaves": In(1), "busy": In(1),
            "loss": Out(block_source(geometry.beat_bytes)), "census": Out(block_source(geometry.beat_bytes)),
            "ending": Out(1), "skip": In(skipping()), "rest": Out(resting()),
            **{f"link{k}": In(link_account()) for k in range(geometry.links)},
            **({"link_loss": Out(block_source())} if geometry.links else {}),
            **dict.fromkeys(self.pins, In(1)),
            **({"marks": Out(block_source()), "moments": In(mark_time(geometry))} if geometry.marked else {}),
        })

    @property
    def sources(self) -> list[tuple[BlockType, wiring.PureInterface]]:
        """Sources of blocks with their types, the most urgent first."""
        return [*([(BlockType.MARK, self.marks)] if self.geometry.marked else []), (BlockType.LOSS, self.loss),
                *([(BlockType.LOSS, self.link_loss)] if self.geometry.links else []), (BlockType.CENSUS, self.census)]

    def elaborate(self, platform):
        m = Module()
        nodes, merge, sinks = self.geometry.nodes, self.merge, self.sinks
        # Refusals reach the outages one clock later, when their window is the current one. Events are registered in
        # stages, because these are wide sums.
        happened = Signal(4)
        changed = Signal()
        m.d.sync += [
            happened.eq(Cat(merge.admitted.any(), Cat(merge.refused_by).any(), sinks.delivered.any(),
                            self.intake.rejected.any())),
            changed.eq(happened.any()),
        ]
        m.submodules.loss = loss = (
            NarrowLossRecords(nodes, self.ram) if self.geometry.narrow
            else LossRecords(nodes, self.ram, self.geometry.beat_bytes))
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
        links = self._link(m, census) if self.geometry.links else None
        marks = self._mark(m) if self.geometry.marked else 0
        self._watch(m, activity, loss, census, counters, changed | happened.any(), links, marks)
        if self.geometry.has(Option.REDUCTION):
            self._reduce(m, counters)
        else:
            m.d.comb += self.settings.latched.eq(counters.latched[1])
        return m

    def _take_losses(self, m: Module, loss: LossRecords | NarrowLossRecords) -> None:
        merge, time = self.merge, self.time.window
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
            Counter.REJECTED: self.intake.rejected,
        }
        m.d.comb += [
            *(counters.event[k].eq(events[counter]) for k, counter in enumerate(SWEPT)),
            *(mine.eq(its) for mine, its in zip(counters.beyond, merge.beyond, strict=True)),
            *([counters.twice.eq(self.intake.twice)] if self.doubled else []),
            counters.clear.eq(self.clear), counters.slip.eq(self.skip.slip),
            counters.latch.eq(Cat(census.latch, settings.latch)), census.copying.eq(counters.copying[0]),
            counters.reading.eq(Cat(census.reading, settings.reading)),
            counters.address[0].eq(census.address), counters.address[1].eq(settings.address),
            census.word.eq(counters.word[0]), settings.counter.eq(counters.word[1]),
        ]

    def _report(self, m: Module, census: Census, activity: Activity, changed: Signal) -> None:
        settings = self.settings
        m.d.comb += [
            census.now.eq(self.time.now), census.window.eq(settings.window), census.running.eq(self.time.running),
            census.slow.eq(settings.slow), census.enable.eq(settings.enable), census.drained.eq(activity.drained),
            census.changed.eq(changed), census.leaves.eq(self.leaves), census.counting.eq(self.sinks.counting),
            census.frames.eq(self.sinks.frames), census.frame_level.eq(self.sinks.frame_level),
            census.vector_level.eq(self.merge.level), census.status.eq(settings.status),
            census.follows.eq(settings.follow), census.strayed.eq(settings.missing),
            census.trigger.eq(settings.trigger), census.discarded.eq(self.sinks.discarded),
        ]

    def _link(self, m: Module, census: Census) -> Signal:
        """The links' losses. Returns whether some of them still have to be reported or sent."""
        time, settings = self.time.window, self.settings
        m.submodules.links = in_spine(links := LinkAccounts(self.geometry))
        for k in range(self.geometry.links):
            wiring.connect(m, wiring.flipped(getattr(self, f"link{k}")), getattr(links, f"account{k}"))
        wiring.connect(m, links.source, wiring.flipped(self.link_loss))
        m.d.comb += [
            links.now.eq(self.time.now), links.window.eq(settings.window),
            links.enable.eq(settings.enable & self.time.running),
            links.live.eq(time.live[:self.geometry.linked_nodes]), links.row.eq(census.row),
            census.refused.eq(links.refused), census.lost.eq(links.lost),
            census.unsure.eq(links.unsure), census.absent.eq(links.absent),
            census.restarted.eq(links.restarted), settings.links.eq(links.locked),
        ]
        return links.open

    def _mark(self, m: Module) -> Signal:
        """Marks of pins. Returns whether one of them still has to be sent."""
        m.submodules.marks = in_spine(marks := Marks(self.geometry))
        wiring.connect(m, marks.source, wiring.flipped(self.marks))
        m.d.comb += [
            *(getattr(marks, pin).eq(getattr(self, pin)) for pin in self.pins),
            marks.now.eq(self.time.now), marks.left.eq(self.time.left), marks.follows.eq(self.settings.follow),
            marks.enable.eq(self.settings.enable), marks.running.eq(self.time.running),
        ]
        if Extra.TRIGGER_IN in self.geometry.extras:
            m.d.comb += self.moments.triggered.eq(marks.triggered)
        if Extra.DRIFT in self.geometry.extras:
            m.d.comb += [marks.off.eq(self.moments.off), marks.early.eq(self.moments.early)]
        return marks.busy

    def _watch(self, m: Module, activity: Activity, loss: LossRecords | NarrowLossRecords, census: Census,
               counters: Counters, changed, links: Signal | None, marks: Signal | int) -> None:
        settings, sinks, merge = self.settings, self.sinks, self.merge
        # Outages of the serial kind are visited at times of their own.
        outages = loss.open | loss.source.request
        if links is not None:
            outages = outages | links
        if not self.geometry.narrow:
            m.d.comb += loss.slip.eq(self.skip.slip)
        m.d.comb += [
            activity.enable.eq(settings.enable), activity.strobed.eq(self.intake.busy), activity.changed.eq(changed),
            activity.pending.eq(merge.pending | sinks.owing), activity.frames.eq(sinks.waiting),
            activity.moving.eq(merge.moving | sinks.owing | sinks.counting | (outages if self.geometry.narrow else 0)),
            activity.outages.eq(outages), activity.owed.eq(census.owed), activity.skips.eq(self.skip.slip.any()),
            activity.busy.eq(self.busy | self.clear | census.busy | counters.busy | marks),
            self.ending.eq(activity.ending), self.rest.left.eq(self.time.left),
            # A line never rests.
            self.rest.quiet.eq(activity.quiet & self.time.running & ~settings.follow if links is None else 0),
        ]
        m.d.sync += self.rest.horizon.eq(Mux(
            merge.held, 0, Mux(census.horizon < sinks.horizon, census.horizon, sinks.horizon)))

    def _reduce(self, m: Module, counters: Counters) -> None:
        settings, sinks = self.settings, self.sinks
        m.submodules.reduction = reduction = Reduction(self.geometry, self.ram)
        m.d.comb += [
            reduction.clear.eq(self.clear), settings.clearing.eq(reduction.clearing),
            reduction.item.eq(sinks.tap & sinks.tapped.begins), reduction.nibble.eq(sinks.tap & ~sinks.tapped.begins),
            reduction.node.eq(sinks.tapped.node), reduction.time.eq(sinks.tapped.time),
            reduction.last.eq(sinks.tapped.last), sinks.free.eq(reduction.free), reduction.enters.eq(self.merge.enters),
            *(mine.eq(its) for mine, its in zip(reduction.level, self.merge.fill, strict=True)),
            reduction.vector_level.eq(self.merge.level), reduction.store_level.eq(sinks.level),
            reduction.latch.eq(settings.latch),
            settings.latched.eq(counters.latched[1] & reduction.latched),
            reduction.address.eq(settings.reduction_address), settings.reduction_word.eq(reduction.word),
        ]
