"""Strobe synchronizer: turns raw port levels into one pulse and one nibble per strobe.

Section 3.2.1: "only the event strobe signals need be sampled relative to the internal ECB clock".
Here data are sampled with them, through the same two flip-flops, so that the board's clock is the only one.
"""

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
    later. A port must then hold each level of its strobe for ``more`` + 1 clocks + aperture. Its data
    are sampled around the edge that counts (the last one if it rings), at the same points as without a filter.

    With ``half_clock`` every strobe is sampled twice per clock, half a clock before the clock edge and at
    it. Data are sampled as before, and a port has to guarantee the same. An edge belongs to the clock before
    sample k; ``half`` tells in which half of it the edge came. A runt that is shorter than a clock
    may show two edges in one clock. They give one pulse, with the half of the first active one; the
    filter treats them as a level that did not last. Of an edge that rings, the half is that of the last change.

    Parameters
    ----------
    nodes : number of ports.
    pad_stage : False if the first flip-flop is outside, in the I/O cells; with ``half_clock`` both flip-flops
        of the strobes are, see :class:`~.ddr_input.DdrInput`.
    port_bits : data bits of a port.
    guard : there is a glitch filter.
    half_clock : strobes are sampled twice per clock.
    emulated : the levels of an emulator can replace those of the ports, after the last flip-flop that
        brings the ports into the clock domain.

    Members
    -------
    strobe, data : raw levels, one bit and one nibble (of ``port_bits``) per node.
    early : only with ``half_clock``: levels of the strobes half a clock before ``strobe``.
    rising, falling : active edges, one bit per node; both may be set.
    after : sample point, one bit per node.
    pulse : high for one clock for every active edge that counts, one bit per node.
    nibble : valid with ``pulse``, one nibble per node.
    half : only with ``half_clock``, valid with ``pulse``: the edge was first seen at the clock edge itself,
        not half a clock earlier.
    playing, played_strobe, played_data : only with ``emulated``: the emulator's levels are used, and these levels.
    more, rejected, looking : only with ``guard``, see there. ``rejected`` and ``pulse`` of a node are never
        set together, unless a runt shows two active edges in one clock while the filter is off.
    twice : only with ``guard`` and ``half_clock``, see there.
    """

    def __init__(self, nodes: int, pad_stage: bool = True, *, port_bits: int = PORT_BITS, guard: bool = False,
                 half_clock: bool = False, emulated: bool = False):
        self.nodes, self.pad_stage, self.port_bits = nodes, pad_stage, port_bits
        self.guard, self.half_clock, self.emulated = guard, half_clock, emulated
        super().__init__({
            "strobe": In(nodes), "data": In(port_bits * nodes),
            "rising": In(nodes), "falling": In(nodes), "after": In(nodes),
            "pulse": Out(nodes), "nibble": Out(port_bits * nodes),
            **({"more": In(LASTING_BITS), "rejected": Out(nodes), "looking": Out(1)} if guard else {}),
            **({"early": In(nodes), "half": Out(nodes)} if half_clock else {}),
            **({"twice": Out(nodes)} if half_clock and guard else {}),
            **({"playing": In(1), "played_strobe": In(nodes), "played_data": In(port_bits * nodes)}
               if emulated else {}),
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
        if self.half_clock:
            early = [Signal(self.nodes, name=f"early{k}") for k in range(2)]
            self._sample(m, "early", self.early, early[0], self.emulated and self.played_strobe)
            m.d.sync += early[1].eq(early[0])
            # An edge in either half.
            first, second = early[1] ^ strobe[2], strobe[1] ^ early[1]
            in_first = (first & early[1] & self.rising) | (first & ~early[1] & self.falling)
            in_second = (second & strobe[1] & self.rising) | (second & ~strobe[1] & self.falling)
            m.d.comb += [edge.eq(first | second), active.eq(in_first | in_second)]
        if not self.guard:
            m.d.sync += [self.pulse.eq(active), self.nibble.eq(nibble)]
            if self.half_clock:
                m.d.sync += self.half.eq(~in_first)
            return m

        # The data seen at an edge are held until the next one.
        m.submodules.filter = glitch = GlitchFilter(self.nodes, self.half_clock)
        m.d.comb += [
            glitch.level.eq(strobe[1]), glitch.level_before.eq(strobe[2]), glitch.edge.eq(edge),
            glitch.rising.eq(self.rising), glitch.falling.eq(self.falling), glitch.more.eq(self.more),
            self.rejected.eq(glitch.rejected), self.looking.eq(glitch.looking),
        ]
        if self.half_clock:
            m.d.comb += [glitch.middle.eq(early[1]), self.twice.eq(glitch.twice)]
            filters = Signal()      # the last edge counts, not the first
            m.d.sync += filters.eq(self.more != 0)
            half = Mux(filters, second, ~in_first)
        m.d.sync += self.pulse.eq(glitch.counts)
        for i in range(self.nodes):
            with m.If(edge[i]):
                m.d.sync += self.nibble.word_select(i, self.port_bits).eq(nibble.word_select(i, self.port_bits))
                if self.half_clock:
                    m.d.sync += self.half[i].eq(half[i])
        return m

    def _sample(self, m: Module, name: str, raw, level, played) -> None:
        """Raw levels after the flip-flops that bring them into the clock domain, or the emulator's levels instead."""
        own = level
        if self.emulated:
            own = Signal.like(level, name=f"own_{name}")
            m.d.comb += level.eq(Mux(self.playing, played, own))
        if self.pad_stage:
            m.submodules[f"{name}_sync"] = FFSynchronizer(raw, own, stages=2)
        elif self.half_clock and name != "data":
            m.d.comb += own.eq(raw)
        else:
            m.d.sync += own.eq(raw)
