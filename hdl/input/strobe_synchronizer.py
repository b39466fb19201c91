"""Strobe synchronizer: turns raw port levels into one pulse and one nibble per strobe.

Section 3.2.1: "only the event strobe signals need be sampled relative to the internal ECB clock" (ECB: event capture
board). Here the data are sampled at the same clock edges as the strobes, also through two flip-flops. The board's clock
is therefore the only one.
"""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import PORT_BITS
from .glitch_filter import LASTING_BITS, GlitchFilter

__all__ = ["StrobeSynchronizer"]


class StrobeSynchronizer(wiring.Component):
    """Finds the active edges of all strobes.

    The edge that is first sampled at clock edge k gives its pulse after edge k + 3. The nibble is
    that of sample k - 1 (*before*) or k + 1 (*after*).

    The table lists what a port must guarantee, in board clocks. "Aperture" is the flip-flop's set-up and hold time,
    in which a change may be seen one clock later:

    ===========  =============================================  ================================
    sample       data stable                                    strobe
    ===========  =============================================  ================================
    before       from one clock + skew + aperture before the    each level for one clock +
                 edge, until the edge                           aperture
    after        from one clock - skew after the edge at        the same
                 latest, until two clocks + aperture after it
    ===========  =============================================  ================================

    *Before* is the nibble that a FIFO clocked by the strobe would store, the last sample on the set-up side.
    *After* is for ports whose data and strobe change in one write; up to one clock of skew has settled by then.

    With a glitch filter (``guard``, see :class:`~.glitch_filter.GlitchFilter`) pulses come ``more`` clocks
    later, where ``more`` is a setting of the filter. A port must then hold each level of its strobe for ``more`` + 1
    clocks + aperture. Its data are sampled around the edge that counts (the last one if the strobe rings), at the same
    points as without a filter.

    With several ``phases`` every strobe is sampled two or four times per clock, evenly, the last time at the clock
    edge. Data are sampled as before, and a port has to guarantee the same. An edge that is first seen in sample k came
    in the clock that ends with this sample; ``half`` tells in which part of that clock. A runt that is shorter than a
    clock may show several edges in one clock. Without the filter, or while it is off, they give one pulse, and ``half``
    is that of the first active edge. While the filter is on, they are levels that did not last; ``half`` is then that
    of the last change.

    Parameters
    ----------
    nodes : number of ports.
    pad_stage : False if the first flip-flop is outside, in the I/O cells; with several ``phases`` both flip-flops
        of the strobes are outside, see :class:`~.ddr_input.DdrInput`.
    port_bits : data bits of a port.
    guard : there is a glitch filter.
    phases : samples of a strobe per clock: 1, 2 or 4.
    emulated : the levels of an emulator can replace those of the ports, after the last flip-flop that
        brings the ports into the clock domain.
    linked : number of nodes with a regeneration board; they are the first ones. A receiver re-creates their ports, with
        two more levels per nibble (``further``, ``torn``).

    Members
    -------
    strobe, data : raw levels, one bit and one nibble (of ``port_bits``) per node.
    early : only with several ``phases``: earlier levels of the strobes, ``nodes`` bits each. With two phases, half a
        clock before ``strobe``; with four, three quarters, then a half, then a quarter of a clock before it.
    rising, falling : active edges, one bit per node; both may be set.
    after : sample point, one bit per node.
    pulse : high for one clock for every active edge that counts, one bit per node.
    nibble : valid with ``pulse``, one nibble per node.
    half : only with several ``phases``, valid with ``pulse``, one bit per node: the edge came in the second half of its
        clock, after the sample of ``early`` in the middle. With four phases, ``nodes`` more bits: the edge came in the
        second half of that half.
    playing, played_strobe, played_data : only with ``emulated``: the emulator's levels are used, and these levels.
    more, rejected, looking : only with ``guard``, see :class:`~.glitch_filter.GlitchFilter`. ``rejected`` and ``pulse``
        of a node are never set together, unless a runt shows two active edges in one clock while the filter is off.
    twice : only with ``guard`` and several ``phases``, see :class:`~.glitch_filter.GlitchFilter`.
    further, torn : only with ``linked``, levels that change with the data, see :class:`~..regeneration.replay.Replay`;
        0 while the emulator plays.
    continues : only with ``linked``, valid with ``pulse``: ``further``, as sampled with the nibble.
    tears : only with ``linked``: ``torn``, one clock before ``pulse``, and 0 if none follows.
    """

    def __init__(self, nodes: int, pad_stage: bool = True, *, port_bits: int = PORT_BITS, guard: bool = False,
                 phases: int = 1, emulated: bool = False, linked: int = 0):
        self.nodes, self.pad_stage, self.port_bits = nodes, pad_stage, port_bits
        self.guard, self.phases, self.emulated, self.linked = guard, phases, emulated, linked
        between = nodes * (phases - 1)
        parts = nodes * (phases.bit_length() - 1)
        super().__init__({
            "strobe": In(nodes), "data": In(port_bits * nodes),
            "rising": In(nodes), "falling": In(nodes), "after": In(nodes),
            "pulse": Out(nodes), "nibble": Out(port_bits * nodes),
            **({"more": In(LASTING_BITS), "rejected": Out(nodes), "looking": Out(1)} if guard else {}),
            **({"early": In(between), "half": Out(parts)} if between else {}),
            **({"twice": Out(between)} if between and guard else {}),
            **({"playing": In(1), "played_strobe": In(nodes), "played_data": In(port_bits * nodes)}
               if emulated else {}),
            **({"further": In(linked), "torn": In(linked), "continues": Out(linked), "tears": Out(linked)}
               if linked else {}),
        })

    def elaborate(self, platform):
        m = Module()
        wide = self.port_bits * self.nodes
        strobe = [Signal(self.nodes, name=f"strobe{k}") for k in range(3)]
        data = [Signal(wide, name=f"data{k}", reset_less=True) for k in range(3)]
        self._sample(m, "strobe", self.strobe, strobe[0], self.emulated and self.played_strobe)
        self._sample(m, "data", self.data, data[0], self.emulated and self.played_data)
        # The setting, expanded to one bit per data bit when it changes.
        spread = Signal(self.nodes)
        changed = Signal()
        after = Signal(wide)
        m.d.sync += changed.eq(spread != self.after)
        with m.If(changed):
            m.d.sync += [
                spread.eq(self.after),
                after.eq(Cat(self.after[i].replicate(self.port_bits) for i in range(self.nodes))),
            ]
        m.d.sync += [
            strobe[1].eq(strobe[0]), strobe[2].eq(strobe[1]),
            data[1].eq(data[0]), data[2].eq(data[1]),
        ]
        nibble = (data[0] & after) | (data[2] & ~after)
        edge = Signal(self.nodes)
        active = Signal(self.nodes)
        m.d.comb += [
            edge.eq(strobe[1] ^ strobe[2]),
            active.eq((strobe[1] & ~strobe[2] & self.rising) | (~strobe[1] & strobe[2] & self.falling)),
        ]
        if self.phases > 1:
            between = self.phases - 1
            early = [Signal(self.nodes * between, name=f"early{k}") for k in range(2)]
            self._sample(m, "early", self.early, early[0],
                         self.emulated and Cat(self.played_strobe for _ in range(between)))
            m.d.sync += early[1].eq(early[0])
            # An edge in any part of the clock.
            levels = [strobe[2], *(early[1].word_select(k, self.nodes) for k in range(between)), strobe[1]]
            edges = [level ^ before for before, level in pairwise(levels)]
            actives = [(found & level & self.rising) | (found & ~level & self.falling)
                       for found, level in zip(edges, levels[1:], strict=True)]
            m.d.comb += [edge.eq(reduce(or_, edges)), active.eq(reduce(or_, actives))]
            first, last = _first(actives), _last(edges)
        if not self.guard:
            m.d.sync += [self.pulse.eq(active), self.nibble.eq(nibble)]
            if self.phases > 1:
                m.d.sync += self.half.eq(first)
            if self.linked:
                self._link(m, edge, active)
            return m

        # The data seen at an edge are held until the next one.
        m.submodules.filter = glitch = GlitchFilter(self.nodes, self.phases)
        m.d.comb += [
            glitch.level.eq(strobe[1]), glitch.level_before.eq(strobe[2]), glitch.edge.eq(edge),
            glitch.rising.eq(self.rising), glitch.falling.eq(self.falling), glitch.more.eq(self.more),
            self.rejected.eq(glitch.rejected), self.looking.eq(glitch.looking),
        ]
        if self.phases > 1:
            m.d.comb += [glitch.middle.eq(early[1]), self.twice.eq(glitch.twice)]
            filters = Signal()      # the filter is on: the last edge counts, not the first
            m.d.sync += filters.eq(self.more != 0)
            half = Mux(filters, last, first)
        m.d.sync += self.pulse.eq(glitch.counts)
        if self.linked:
            self._link(m, edge, glitch.counts)
        for i in range(self.nodes):
            with m.If(edge[i]):
                m.d.sync += self.nibble.word_select(i, self.port_bits).eq(nibble.word_select(i, self.port_bits))
                if self.phases > 1:
                    m.d.sync += [self.half[k].eq(half[k]) for k in range(i, len(self.half), self.nodes)]
        return m

    def _link(self, m: Module, edge, counts) -> None:
        """Samples ``further`` and ``torn`` with the nibble. Their levels at the last edge belong to the pulse that
        follows ``counts`` by one clock."""
        levels = [Signal(2 * self.linked, name=f"beside{k}", reset_less=True) for k in range(3)]
        self._sample(m, "beside", Cat(self.further, self.torn), levels[0], self.emulated and 0)
        m.d.sync += [levels[1].eq(levels[0]), levels[2].eq(levels[1])]
        further, torn = levels[2][:self.linked], levels[2][self.linked:]
        held = Signal(self.linked)
        m.d.sync += [
            self.continues.eq((further & edge) | (self.continues & ~edge)), held.eq((torn & edge) | (held & ~edge))]
        m.d.comb += self.tears.eq(counts & ((torn & edge) | (held & ~edge)))

    def _sample(self, m: Module, name: str, raw, level, played) -> None:
        """Raw levels after the flip-flops that bring them into the clock domain, or the emulator's levels instead."""
        own = level
        if self.emulated:
            own = Signal.like(level, name=f"own_{name}")
            m.d.comb += level.eq(Mux(self.playing, played, own))
        if self.pad_stage:
            m.submodules[f"{name}_sync"] = FFSynchronizer(raw, own, stages=2)
        elif self.phases > 1 and name in ("strobe", "early"):
            m.d.comb += own.eq(raw)
        else:
            m.d.sync += own.eq(raw)


def _first(found):
    """Per node, the index of the first plane that is set, or of the last one if none is: bit planes, highest first."""
    if len(found) == 2:
        return ~found[0]
    one, two, three, _ = found
    return Cat(~(one | two), ~one & (two | ~three))


def _last(found):
    """Per node, the index of the last plane that is set, or 0 if none is, in the same form."""
    if len(found) == 2:
        return found[1]
    _, two, three, four = found
    return Cat(three | four, four | (two & ~three))
