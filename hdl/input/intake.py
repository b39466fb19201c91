"""Intake: everything upstream of the gate, from raw port levels to items.

A board with the extended sink has more in it than the synchronizer: a framer with its time-out, a glitch
filter and a rate limit. The framer needs one clock, so everything related to the gate's time is one clock
later there (``later``). A node emulator for self-tests can replace the ports.
"""

from itertools import pairwise

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import EVENT_SIZE_BITS, PORT_BITS, Geometry, Option, Sink
from ..lib.signatures import board_clock, port_levels, skipping
from .front_ends import front_settings, front_signature
from .glitch_filter import LASTING_BITS
from .item_framer import ItemFramer
from .item_timeout import ItemTimeout
from .nibble_mask import NibbleMask
from .node_emulator import NodeEmulator, emulator_settings
from .rate_limit import ITEMS_BITS, SPAN_BITS, RateLimit
from .strobe_synchronizer import StrobeSynchronizer

__all__ = ["EDGES", "Intake", "intake_account", "intake_settings", "item_offer"]

#: Settings of the edges of all nodes, in the order of a regeneration board's straps.
EDGES = ("rising", "falling", "after")


def intake_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's settings for the intake, as seen from the registers.

    rising, falling, after, more : see :class:`~.strobe_synchronizer.StrobeSynchronizer`.
    words, events, timeout : see :class:`~.item_framer.ItemFramer`; clocks of :class:`~.item_timeout.ItemTimeout`.
    items, span : see :class:`~.rate_limit.RateLimit`.
    mask : bit v: single nibbles of value v are kept; not with 8-bit ports, which have no such filter.
    emulator : settings of the node emulator, which replaces the ports while it runs, on a board that has one.
    front : only on a board with front ends, see :func:`~.front_ends.front_settings`.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "rising": Out(nodes, init=-1 % (1 << nodes)), "falling": Out(nodes), "after": Out(nodes),
        "more": Out(LASTING_BITS), "words": Out(nodes), "events": Out(nodes),
        "timeout": Out(32, init=geometry.clock_hz // 100), "items": Out(ITEMS_BITS), "span": Out(SPAN_BITS),
        "mask": Out(1 << PORT_BITS, init=-1 % (1 << (1 << PORT_BITS))), "emulator": Out(emulator_settings()),
        **({"front": Out(front_settings(geometry))} if geometry.fronts else {}),
    })


def item_offer(geometry: Geometry) -> wiring.Signature:
    """Signature of the items that are offered to the gate, as seen from the intake; one bit per node.

    start, nibble : an item is offered, and its first nibble.
    half : with ``start``, see :class:`~.strobe_synchronizer.StrobeSynchronizer`; only on a board with
        several samples per clock.
    allow : nodes whose items may pass.
    admit : from the gate, with ``start``.
    push, cut, ends : see :class:`~.item_framer.ItemFramer`; ``cut`` only with the extended sink.
    need : one clock before ``start``, see :class:`~.item_framer.ItemFramer`; only with the extended sink.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "start": Out(nodes), "nibble": Out(geometry.port_bits * nodes), "allow": Out(nodes), "admit": In(nodes),
        "push": Out(nodes), "ends": Out(nodes),
        **({"cut": Out(nodes), "need": Out(nodes).array(EVENT_SIZE_BITS)} if Sink.EXTENDED in geometry.sinks else {}),
        **({"half": Out(nodes * geometry.halvings)} if geometry.halvings else {}),
    })


def intake_account(geometry: Geometry) -> wiring.Signature:
    """Signature of what happened in the intake, for the counters, as seen from the intake.

    rejected : strobes and items that were filtered out, at most one per node at once.
    twice : only on a board with several samples per clock and the filter, with ``rejected``: a second strobe of the
        node was rejected, too. With four samples, further bits, one per node each, report a third and a fourth one.
    busy : one or two clocks ago a strobe came or was not yet judged, an item was open, or the emulator was running.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "rejected": Out(nodes), "busy": Out(1),
        **({"twice": Out(nodes * (geometry.phases - 1))} if geometry.halvings and geometry.guarded else {}),
    })


class Intake(wiring.Component):
    """Contains the synchronizer and the node emulator; with the extended sink also the framer, its time-out, the glitch
    filter and the rate limit. The emulator and the rate limit can be absent.

    Items that the filter and the rate limit reject are neither admitted nor refused.

    Parameters
    ----------
    geometry : the board's geometry.
    pad_stage : see :class:`~.strobe_synchronizer.StrobeSynchronizer`.

    Members
    -------
    levels : from the ports, see :func:`~.signatures.port_levels`.
    settings : see :func:`intake_settings`.
    time : see :func:`~.signatures.board_clock`.
    clear : reset in progress.
    skip : see :func:`~.signatures.skipping`.
    front : see :func:`~.front_ends.front_signature`.
    items : to the gate.
    account : see :func:`intake_account`.
    """

    def __init__(self, geometry: Geometry, pad_stage: bool = True):
        self.geometry, self.pad_stage = geometry, pad_stage
        self.framed = Sink.EXTENDED in geometry.sinks
        self.linked = geometry.linked_nodes if self.framed else 0
        super().__init__({
            "levels": In(port_levels(geometry)), "settings": In(intake_settings(geometry)),
            "time": In(board_clock(geometry)), "clear": In(1), "skip": In(skipping()),
            "items": Out(item_offer(geometry)), "account": Out(intake_account(geometry)),
            "front": In(front_signature(geometry)),
        })

    def elaborate(self, platform):
        m = Module()
        geometry, settings, offer, levels = self.geometry, self.settings, self.items, self.levels
        nodes, live = geometry.nodes, self.time.window.live
        m.submodules.synchronizer = synchronizer = StrobeSynchronizer(
            nodes, self.pad_stage, port_bits=geometry.port_bits, guard=geometry.guarded,
            phases=geometry.phases, emulated=geometry.emulated, linked=self.linked)
        rising, falling, after = self._edges(synchronizer)
        m.d.comb += [
            synchronizer.strobe.eq(levels.strobe), synchronizer.data.eq(levels.data),
            synchronizer.rising.eq(rising), synchronizer.falling.eq(falling),
            synchronizer.after.eq(after), offer.allow.eq(-1),
        ]
        stirs = [synchronizer.pulse.any()]
        if geometry.emulated:
            m.submodules.emulator = emulator = NodeEmulator(nodes, geometry.port_bits)
            wiring.connect(m, wiring.flipped(settings.emulator), emulator.settings)
            m.d.sync += synchronizer.playing.eq(settings.emulator.run)
            m.d.comb += [
                synchronizer.played_strobe.eq(emulator.strobe), synchronizer.played_data.eq(emulator.data),
            ]
            stirs.append(emulator.busy)
        if not self.framed:
            m.d.comb += [
                offer.start.eq(synchronizer.pulse), offer.nibble.eq(synchronizer.nibble), offer.push.eq(offer.admit),
                offer.ends.eq(-1),
            ]
            m.d.sync += self.account.busy.eq(Cat(stirs).any())
            return m

        m.submodules.framer = framer = ItemFramer(nodes, geometry.port_bits, self.linked)
        m.submodules.timeout = timeout = ItemTimeout(nodes)
        m.d.comb += [
            framer.pulse.eq(synchronizer.pulse), framer.data.eq(synchronizer.nibble),
            framer.words.eq(settings.words), framer.events.eq(settings.events), framer.clear.eq(self.clear),
            timeout.pulse.eq(synchronizer.pulse), timeout.open.eq(framer.open), timeout.limit.eq(settings.timeout),
            timeout.slip.eq(self.skip.slip),
            framer.expired.eq(self._aborted(synchronizer, timeout) | (synchronizer.tears if self.linked else 0)),
            framer.admit.eq(offer.admit),
            offer.start.eq(framer.start), offer.nibble.eq(framer.nibble),
            *(mine.eq(its) for mine, its in zip(offer.need, framer.need, strict=True)),
            offer.push.eq(framer.push), offer.cut.eq(framer.cut), offer.ends.eq(framer.ends),
        ]
        if self.linked:
            m.d.comb += [
                synchronizer.further.eq(levels.further), synchronizer.torn.eq(levels.torn),
                framer.further.eq(synchronizer.continues)]
        if geometry.halvings:
            m.d.comb += synchronizer.early.eq(levels.early)
            m.d.sync += offer.half.eq(synchronizer.half)
        stirs.append(framer.open.any())
        if geometry.guarded:
            keep = Const(-1, nodes)
            if geometry.port_bits == PORT_BITS:
                m.submodules.nibble_mask = nibble_mask = NibbleMask(nodes)
                keep = nibble_mask.keep
                longer = Signal(nodes)      # longer than a nibble; one clock late, as `keep` precedes the gate
                m.d.sync += longer.eq(settings.words | settings.events)
            allow = keep
            if geometry.has(Option.RATE_LIMIT):
                m.submodules.rate_limit = rate_limit = DomainRenamer({"sync": "spine"})(RateLimit(nodes))
                m.d.comb += [
                    rate_limit.items.eq(settings.items), rate_limit.span.eq(settings.span),
                    rate_limit.now.eq(self.time.now),
                    rate_limit.offer.eq(offer.start & live & keep),
                ]
                allow = rate_limit.allow & keep
            m.d.comb += [
                synchronizer.more.eq(settings.more),
                *([] if geometry.port_bits != PORT_BITS else [
                    nibble_mask.mask.eq(settings.mask), nibble_mask.data.eq(synchronizer.nibble),
                    nibble_mask.longer.eq(longer)]),
                offer.allow.eq(allow),
            ]
            rejected = Signal(nodes)    # one clock late, as items are, so that a node has at most one of the two
            limited = offer.start & ~offer.allow
            m.d.sync += [
                rejected.eq(synchronizer.rejected),
                self.account.rejected.eq(live & self._misfits(m, rejected | limited)),
            ]
            if geometry.halvings:
                # ... or both, with a runt while the filter is off.
                further = geometry.phases - 1
                twice = Signal(nodes * further)
                before = [rejected, *(twice.word_select(k, nodes) for k in range(further))]
                m.d.sync += [
                    twice.eq(synchronizer.twice),
                    self.account.twice.eq(Cat(
                        live & (more | (fewer & limited)) for fewer, more in pairwise(before))),
                ]
            stirs.append(synchronizer.looking)
        if geometry.fronts:
            m.d.comb += [
                self.front.expired.eq(timeout.expired), self.front.events.eq(settings.events),
                self.front.single.eq(settings.words & settings.events),
                self.front.falling.eq(settings.falling & ~settings.rising),
                *(getattr(self.front.settings, name).eq(getattr(settings.front, name))
                  for name in settings.front.signature.members),
            ]
            stirs.append(self.front.busy)
            if not geometry.guarded:
                m.d.sync += self.account.rejected.eq(live & self._misfits(m, 0))
        stirred = Signal(len(stirs))
        m.d.sync += [stirred.eq(Cat(stirs)), self.account.busy.eq(stirred.any())]
        return m

    def _aborted(self, synchronizer: StrobeSynchronizer, timeout: ItemTimeout) -> Value:
        """Nodes whose items are aborted, by the time-out or by a front end, which leaves those of the emulator."""
        if not self.geometry.fronts:
            return timeout.expired
        mine = ~synchronizer.playing.replicate(self.geometry.nodes) if self.geometry.emulated else -1
        return timeout.expired | (self.front.abort & mine)

    def _misfits(self, m: Module, others) -> Value:
        """One bit per node: ``others``, which are to be counted, and what front ends have rejected; this is counted
        later if the node has one of the others at the time."""
        if not self.geometry.fronts:
            return others
        misfits = Signal(self.geometry.nodes)
        m.d.sync += misfits.eq((misfits & others) | self.front.rejected)
        return others | misfits

    def _edges(self, synchronizer: StrobeSynchronizer) -> tuple[Value, Value, Value]:
        """Active edges and sample points. Of a strobe that a receiver or a front end creates both edges are active, and
        data are sampled before them, whatever the settings are, except while the emulator plays."""
        settings = self.settings
        if not (self.geometry.links or self.geometry.fronted):
            return settings.rising, settings.falling, settings.after
        wired = synchronizer.playing if self.geometry.emulated else 0
        linked = Mux(wired, 0, Const(
            (1 << self.geometry.linked_nodes) - 1 | self.geometry.fronted, self.geometry.nodes))
        return settings.rising | linked, settings.falling | linked, settings.after & ~linked
