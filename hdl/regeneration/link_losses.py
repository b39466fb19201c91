"""Link losses: compares the counts of a regeneration board with the items that arrived, and determines when items were
lost.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_NODES, LINK_SUPERFRAME, LinkSide
from .link_counts import COUNT_BITS

__all__ = ["LinkLosses", "loss_layout"]


def loss_layout(time_bits: int) -> data.StructLayout:
    """Items of one node that were lost: refused by the regeneration board's gate, or else on the ``line``; how many,
    and the frames' times between which that happened."""
    return data.StructLayout({
        "node": range(LINK_NODES), "line": 1, "lost": COUNT_BITS, "first": time_bits, "last": time_bits})


class LinkLosses(wiring.Component):
    """Keeps ``offered = delivered + refused + lost on the line`` for each node, at each of its counts.

    A count that grew by more than what came makes a loss, except for the first one since the start and for one that
    fell, because the regeneration board began anew: losses before it are in none. A loss is placed between the first
    and the last frame that reported a refusal, or failed, since the count was last reported; at the latest since the
    last complete superframe before the current one.

    Parameters
    ----------
    time_bits : bits of the times.

    Members
    -------
    good, missed : a frame was delivered, or its time has passed without that; one of them every 128 clocks.
    locked : frames come; the place in the superframe is forgotten without them.
    side : with ``good``.
    time : of the frame.
    delivered, node : see :class:`~.moment_parser.MomentParser`. All of a frame before the next ``good``.
    refused, lost : items that are known to be lost at the gate, and on the line, one count per node.
    o : losses, see :func:`loss_layout`. One that the consumer has not taken when another one comes is overwritten;
        counts have all of them.
    clear : the board's time begins anew: places before it are forgotten.
    judged, which : a count was compared: that of refused items of node ``which``, or of sent ones of node
        ``which`` - 8; ``o`` follows one clock later. ``fell``: it was smaller than before, because the regeneration
        board began anew.
    based : every count was compared once.
    """

    def __init__(self, time_bits: int = 32):
        self.time_bits = time_bits
        super().__init__({
            "good": In(1), "missed": In(1), "locked": In(1), "side": In(4), "time": In(time_bits), "clear": In(1),
            "delivered": In(1), "node": In(range(LINK_NODES)),
            "refused": Out(COUNT_BITS).array(LINK_NODES), "lost": Out(COUNT_BITS).array(LINK_NODES),
            "o": Out(stream.Signature(loss_layout(time_bits))),
            "judged": Out(1), "which": Out(range(2 * LINK_NODES)), "fell": Out(1),
            "based": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        came = Array(Signal(COUNT_BITS, name=f"came{n}") for n in range(LINK_NODES))
        with m.If(self.delivered):
            m.d.sync += came[self.node].eq(came[self.node] + 1)

        # The number of the next frame; known from a mark on, because frames that fail are counted as well.
        index, frame = (Signal(range(LINK_SUPERFRAME), name=name) for name in ("index", "frame"))
        known, marked, whole, complete = (Signal(name=n) for n in ("known", "marked", "whole", "complete"))
        count, snapshot, value = (Signal(COUNT_BITS, name=name) for name in ("count", "snapshot", "value"))
        tick, judge = Signal(), Signal()
        m.d.comb += [
            marked.eq(self.good & self.side[LinkSide.MARK]), frame.eq(Mux(marked, 0, index)),
            value.eq(Cat(count[2:], self.side[LinkSide.COUNT:])), tick.eq(self.good | self.missed),
        ]
        of, is_sent = frame[4:7], frame[7]
        new = Mux(is_sent, value - snapshot, value)
        old = Mux(is_sent, Array(self.lost)[of], Array(self.refused)[of])
        total, before, node, line = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(3), Signal()
        m.d.sync += judge.eq(0)
        with m.If(tick):
            m.d.sync += [index.eq(frame + 1), count.eq(value)]
            with m.If(frame[:4] == 0):
                m.d.sync += [whole.eq(self.good), snapshot.eq(came[of])]
            with m.Else():
                m.d.sync += whole.eq(whole & self.good)
            with m.If((frame[:4] == 15) & whole & self.good & known):
                m.d.sync += [judge.eq(1), total.eq(new), before.eq(old), node.eq(of), line.eq(is_sent)]
            m.d.sync += [
                known.eq((known | marked) & (self.locked | self.good)), complete.eq(self.good & (complete | marked)),
            ]

        # A frame that did not arrive may have reported refusals.
        spans = [self._span(m, name, tick, marked & complete, event) for name, event in (
            ("gate", self.missed | self.side[LinkSide.REFUSED]), ("line", self.missed))]
        told_lines = Signal(2 * LINK_NODES)
        m.d.comb += self.based.eq(told_lines.all())
        floor = self._told_before(m, tick, frame, judge, Cat(node, line))
        with m.If(self.o.ready | self.clear):
            m.d.sync += self.o.valid.eq(0)
        m.d.comb += [self.judged.eq(judge), self.which.eq(Cat(node, line))]
        with m.If(judge):
            with m.Switch(Cat(node, line)):
                for n in range(2 * LINK_NODES):
                    with m.Case(n):
                        m.d.sync += (self.lost if n >= LINK_NODES else self.refused)[n % LINK_NODES].eq(total)
            told = told_lines.bit_select(Cat(node, line), 1)
            m.d.sync += told.eq(1)
            more = Signal(COUNT_BITS)
            m.d.comb += [more.eq(total - before), self.fell.eq(told & more[-1])]
            first = Mux(line, spans[1][0], spans[0][0])
            with m.If(told & more.any() & ~more[-1]):
                m.d.sync += [
                    self.o.valid.eq(1), self.o.p.node.eq(node), self.o.p.line.eq(line),
                    self.o.p.lost.eq(more),
                    self.o.p.first.eq(Mux(floor > first, floor, first)),
                    self.o.p.last.eq(Mux(line, spans[1][1], spans[0][1])),
                ]
        return m

    def _told_before(self, m: Module, tick, frame, judge, which) -> Signal:
        """Time of the frame that began the count when it was last reported; all earlier losses were in it."""
        m.submodules.begins = begins = memory.Memory(
            shape=self.time_bits, depth=2 * LINK_NODES, init=[], attrs={"ram_style": "distributed"})
        read, write = begins.read_port(domain="comb"), begins.write_port()
        begun, floor, dated = Signal(self.time_bits), Signal(self.time_bits), Signal(2 * LINK_NODES)
        m.d.comb += [
            read.addr.eq(which), write.addr.eq(which), write.data.eq(begun), write.en.eq(judge),
            floor.eq(Mux(dated.bit_select(which, 1), read.data, 0)),
        ]
        # A count is judged one clock after the last of its frames, before the next one begins.
        with m.If(tick & (frame[:4] == 0)):
            m.d.sync += begun.eq(self.time)
        with m.If(judge):
            m.d.sync += dated.bit_select(which, 1).eq(1)
        with m.If(self.clear):
            m.d.sync += [dated.eq(0), begun.eq(0)]
        return floor

    def _span(self, m: Module, name: str, tick, turns, event):
        """Times of the first and the last frame with ``event``, since the last turn but one."""
        now, then = ([Signal(self.time_bits, name=f"{name}_{what}{k}") for what in ("first", "last")] for k in range(2))
        some, was = Signal(name=f"{name}_some"), Signal(name=f"{name}_was")
        with m.If(tick):
            with m.If(turns):
                m.d.sync += [was.eq(some), *(a.eq(b) for a, b in zip(then, now, strict=True)), some.eq(event)]
            with m.Elif(event):
                m.d.sync += some.eq(1)
            with m.If(event):
                m.d.sync += now[1].eq(self.time)
                with m.If(~some | turns):
                    m.d.sync += now[0].eq(self.time)
        with m.If(self.clear):
            m.d.sync += [some.eq(0), was.eq(0), *(time.eq(0) for time in (*now, *then))]
        return Mux(was, then[0], now[0]), Mux(some, now[1], then[1])
