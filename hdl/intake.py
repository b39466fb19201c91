"""Intake: what stands before the gate, from raw port levels to items.

On a board with the extended sink there is more in it than the synchronizer: a framer with its time-out,
a glitch filter and a rate limit. The framer takes a clock, so everything that has to do with the gate's
time is a clock later there (``later``). A node emulator for self-tests stands beside it.
"""

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .emulator import Emulator, emulator_settings
from .framer import Framer
from .glitch import LASTING_BITS
from .item_filter import ItemFilter
from .item_timeout import ItemTimeout
from .layout import EVENT_SIZE_BITS, PORT_BITS, Geometry, Sink
from .limiter import ITEMS_BITS, SPAN_BITS, Limiter
from .synchronizer import Synchronizer

__all__ = ["Intake"]


class Intake(wiring.Component):
    """Synchronizer and node emulator; and with the extended sink framer, time-out, glitch filter and rate limit.

    What filter and limit keep out is neither admitted nor refused.

    Parameters
    ----------
    geometry : of the board.
    pad_stage : see :class:`~.synchronizer.Synchronizer`.

    Members
    -------
    strobe, early, data, rising, falling, after, more : see :class:`~.synchronizer.Synchronizer`.
    emulator : settings of the node emulator, which plays the ports while it runs, on a board that has one.
    live : nodes whose capture is enabled.
    words, events, timeout : see :class:`~.framer.Framer`; clocks of :class:`~.item_timeout.ItemTimeout`.
    items, span, now : see :class:`~.limiter.Limiter`.
    clear : reset in progress.
    start, nibble : an item is offered to the gate, and its first nibble, a bit and a nibble a node.
    half : with ``start``, see :class:`~.synchronizer.Synchronizer`; only on a board with half clocks.
    allow : nodes whose items may pass.
    need : a clock before ``start``, see :class:`~.framer.Framer`; only with the extended sink.
    admit : from the gate, with ``start``.
    push, cut, ends : see :class:`~.framer.Framer`.
    mask : bit v: single nibbles of value v are kept; not with ports of 8 bits, which have no such filter.
    rejected : strobes and items kept out, one of a node at once.
    twice : only on a board with half clocks and the filter, with ``rejected``: another one of the node was, too.
    busy : one or two clocks ago a strobe came, or was not judged yet, or an item was open, or the emulator at work.
    """

    def __init__(self, geometry: Geometry, pad_stage: bool = True):
        self.geometry, self.pad_stage = geometry, pad_stage
        self.framed = Sink.EXTENDED in geometry.sinks
        nodes, wide = geometry.nodes, geometry.port_bits * geometry.nodes
        super().__init__({
            "strobe": In(nodes), "data": In(wide),
            "rising": In(nodes), "falling": In(nodes), "after": In(nodes), "more": In(LASTING_BITS),
            "live": In(nodes), "words": In(nodes), "events": In(nodes), "timeout": In(32),
            "emulator": In(emulator_settings()),
            "items": In(ITEMS_BITS), "span": In(SPAN_BITS), "now": In(32), "clear": In(1),
            "start": Out(nodes), "nibble": Out(wide), "allow": Out(nodes), "admit": In(nodes),
            "push": Out(nodes), "cut": Out(nodes), "ends": Out(nodes), "rejected": Out(nodes), "busy": Out(1),
            "mask": In(1 << PORT_BITS),
        } | ({"need": Out(nodes).array(EVENT_SIZE_BITS)} if self.framed else {})
          | ({"early": In(nodes), "half": Out(nodes)} if geometry.half_clock else {})
          | ({"twice": Out(nodes)} if geometry.half_clock and geometry.guarded else {}))

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        nodes = geometry.nodes
        m.submodules.synchronizer = synchronizer = Synchronizer(
            nodes, self.pad_stage, port_bits=geometry.port_bits, guard=geometry.guarded,
            half_clock=geometry.half_clock, emulated=geometry.emulated)
        m.d.comb += [
            synchronizer.strobe.eq(self.strobe), synchronizer.data.eq(self.data),
            synchronizer.rising.eq(self.rising), synchronizer.falling.eq(self.falling),
            synchronizer.after.eq(self.after), self.allow.eq(-1),
        ]
        stirs = [synchronizer.pulse.any()]
        if geometry.emulated:
            m.submodules.emulator = emulator = Emulator(nodes, geometry.port_bits)
            wiring.connect(m, wiring.flipped(self.emulator), emulator.settings)
            m.d.sync += synchronizer.playing.eq(self.emulator.run)
            m.d.comb += [
                synchronizer.played_strobe.eq(emulator.strobe), synchronizer.played_data.eq(emulator.data),
            ]
            stirs.append(emulator.busy)
        if not self.framed:
            m.d.comb += [
                self.start.eq(synchronizer.pulse), self.nibble.eq(synchronizer.nibble), self.push.eq(self.admit),
                self.ends.eq(-1),
            ]
            m.d.sync += self.busy.eq(Cat(stirs).any())
            return m

        m.submodules.framer = framer = Framer(nodes, geometry.port_bits)
        m.submodules.timeout = timeout = ItemTimeout(nodes)
        m.d.comb += [
            framer.pulse.eq(synchronizer.pulse), framer.data.eq(synchronizer.nibble),
            framer.words.eq(self.words), framer.events.eq(self.events), framer.clear.eq(self.clear),
            timeout.pulse.eq(synchronizer.pulse), timeout.open.eq(framer.open), timeout.limit.eq(self.timeout),
            framer.expired.eq(timeout.expired), framer.admit.eq(self.admit),
            self.start.eq(framer.start), self.nibble.eq(framer.nibble),
            *(mine.eq(its) for mine, its in zip(self.need, framer.need, strict=True)),
            self.push.eq(framer.push), self.cut.eq(framer.cut), self.ends.eq(framer.ends),
        ]
        if geometry.half_clock:
            m.d.comb += synchronizer.early.eq(self.early)
            m.d.sync += self.half.eq(synchronizer.half)
        stirs.append(framer.open.any())
        if geometry.guarded:
            keep = Const(-1, nodes)
            if geometry.port_bits == PORT_BITS:
                m.submodules.filter = item_filter = ItemFilter(nodes)
                keep = item_filter.keep
                longer = Signal(nodes)      # items than a nibble; a clock late, for `keep` stands before the gate
                m.d.sync += longer.eq(self.words | self.events)
            m.submodules.limiter = limiter = DomainRenamer({"sync": "spine"})(Limiter(nodes))
            m.d.comb += [
                synchronizer.more.eq(self.more),
                limiter.items.eq(self.items), limiter.span.eq(self.span), limiter.now.eq(self.now),
                limiter.offer.eq(self.start & self.live & keep),
                *([] if geometry.port_bits != PORT_BITS else [
                    item_filter.mask.eq(self.mask), item_filter.data.eq(synchronizer.nibble),
                    item_filter.longer.eq(longer)]),
                self.allow.eq(limiter.allow & keep),
            ]
            rejected = Signal(nodes)    # a clock late, as items are, so that a node has one of both at most
            limited = self.start & ~self.allow
            m.d.sync += [
                rejected.eq(synchronizer.rejected), self.rejected.eq(self.live & (rejected | limited)),
            ]
            if geometry.half_clock:
                # ... or both, with a runt while the filter is off.
                twice = Signal(nodes)
                m.d.sync += [
                    twice.eq(synchronizer.twice), self.twice.eq(self.live & (twice | (rejected & limited))),
                ]
            stirs.append(synchronizer.looking)
        stirred = Signal(len(stirs))
        m.d.sync += [stirred.eq(Cat(stirs)), self.busy.eq(stirred.any())]
        return m
