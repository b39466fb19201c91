"""Link losses: compares the counts of a regeneration board with the items that arrived, and determines when items were
lost.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_AGE, LINK_FRAME_CLOCKS, LINK_NODES, LINK_SUPERFRAME, LinkSide
from .link_counts import COUNT_BITS, FRAME_BITS
from .link_life import LinkLife

__all__ = ["LinkLosses", "loss_layout"]


def loss_layout(time_bits: int) -> data.StructLayout:
    """Items of one node that were lost: refused by the regeneration board's gate, or else on the ``line``; how many,
    and the frames' times between which that happened."""
    return data.StructLayout({
        "node": range(LINK_NODES), "line": 1, "lost": COUNT_BITS, "first": time_bits, "last": time_bits})


class LinkLosses(wiring.Component):
    """Keeps ``offered = delivered + refused + lost on the line`` for each node, at each of its counts.

    A count that grew by more than what came makes a loss. Counts begin at 0 with a *life* of the transmitter (see
    :class:`~.link_life.LinkLife`), and counts of two lives are never compared. After each lock, counts are
    compared once the age has identified the life. If a new life has begun while this receiver was running, losses
    include all items that it refused and all that did not arrive. Otherwise, later counts are compared with the first
    counts of that life, and no loss includes the items before them. This also applies to the counts of sent items of a
    new life if frames came in a lock that ended before a life was identified: they may be of another one.

    A loss is placed between the first and the last frame that reported a refusal, or failed, since the count was last
    reported; at the latest since the last complete superframe before the current one.

    Parameters
    ----------
    time_bits : bits of the times.
    frame_clocks : see :class:`~.link_life.LinkLife`.

    Members
    -------
    good, missed : a frame was delivered, or its time has passed without that; one of them every 128 clocks.
    locked : frames come; the position in the superframe is forgotten without them. Before it begins, a transmitter is
        silent for long enough that this is low between two lives.
    enable : capture is enabled.
    side : side channel, with ``good``.
    time : time of the frame.
    delivered, node : see :class:`~.moment_parser.MomentParser`. All of a frame before the next ``good``.
    refused, lost : items of the transmitter's life that are known to be lost at the gate, and on the line, one count
        per node.
    o : losses, see :func:`loss_layout`. One that the consumer has not taken when another one comes is overwritten;
        counts have all of them.
    clear : the board's time begins anew: times before it are forgotten.
    judged, which : a count was compared: that of refused items of node ``which``, or of sent ones of node
        ``which`` - 8; ``o`` follows one clock later.
    anew : the transmitter was restarted or exchanged: another life was reported. No loss includes the items that were
        lost after the last counts of the former life.
    based : every count was compared once.
    """

    def __init__(self, time_bits: int = 32, frame_clocks: int = LINK_FRAME_CLOCKS):
        self.time_bits, self.frame_clocks = time_bits, frame_clocks
        super().__init__({
            "good": In(1), "missed": In(1), "locked": In(1), "side": In(4), "time": In(time_bits), "clear": In(1),
            "enable": In(1),
            "delivered": In(1), "node": In(range(LINK_NODES)),
            "refused": Out(COUNT_BITS).array(LINK_NODES), "lost": Out(COUNT_BITS).array(LINK_NODES),
            "o": Out(stream.Signature(loss_layout(time_bits))),
            "judged": Out(1), "which": Out(range(2 * LINK_NODES)), "anew": Out(1),
            "based": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        came = Array(Signal(COUNT_BITS, name=f"came{n}") for n in range(LINK_NODES))
        with m.If(self.delivered):
            m.d.sync += came[self.node].eq(came[self.node] + 1)

        # Items of former lives, which are subtracted from ``came``.
        starts = Signal(COUNT_BITS)
        sure, silent = Signal(), Signal()
        m.d.comb += silent.eq(~self.locked & ~self.good)

        # The number of the next frame; known from a mark on, because frames that fail are counted as well.
        index, frame = (Signal(FRAME_BITS, name=name) for name in ("index", "frame"))
        known, marked, whole, complete = (Signal(name=n) for n in ("known", "marked", "whole", "complete"))
        count, snapshot, value = (Signal(COUNT_BITS, name=name) for name in ("count", "snapshot", "value"))
        tick, judge = Signal(), Signal()
        m.d.comb += [
            marked.eq(self.good & self.side[LinkSide.MARK]), frame.eq(Mux(marked, 16 * LINK_AGE, index)),
            value.eq(Cat(count[2:], self.side[LinkSide.COUNT:])), tick.eq(self.good | self.missed),
        ]
        of, is_sent, is_age = frame[4:7], frame[7], frame[4:] == LINK_AGE
        new = Mux(is_sent, value - snapshot, value)
        old = Mux(is_sent, Array(self.lost)[of], Array(self.refused)[of])
        total, before, node, line = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal(3), Signal()
        ends = tick & (frame[:4] == 15) & whole & self.good & known
        m.d.sync += judge.eq(0)
        with m.If(tick):
            m.d.sync += [index.eq(Mux(frame == LINK_SUPERFRAME - 1, 0, frame + 1)), count.eq(value)]
            with m.If(frame[:4] == 0):
                m.d.sync += [whole.eq(self.good), snapshot.eq(came[of] - starts)]
            with m.Else():
                m.d.sync += whole.eq(whole & self.good)
            with m.If(ends & ~frame[8] & sure):
                m.d.sync += [judge.eq(1), total.eq(new), before.eq(old), node.eq(of), line.eq(is_sent)]
            m.d.sync += [known.eq(known | marked), complete.eq(self.good & (complete | marked))]
        with m.If(silent):
            m.d.sync += known.eq(0)
        m.submodules.life = life = LinkLife(self.frame_clocks)
        told_age = Signal()
        m.d.sync += told_age.eq(ends & is_age)
        m.d.comb += [
            life.marked.eq(marked), life.told.eq(told_age), life.age.eq(count), life.sure.eq(sure),
            life.enable.eq(self.enable), self.anew.eq((life.new | life.old) & life.known),
        ]

        # A frame that did not arrive may have reported refusals.
        spans = [self._span(m, name, tick, marked & complete, event) for name, event in (
            ("gate", self.missed | self.side[LinkSide.REFUSED]), ("line", self.missed))]
        told_lines, compared = Signal(2 * LINK_NODES), Signal(2 * LINK_NODES)
        m.d.comb += self.based.eq(compared.all())
        floor = self._told_before(m, tick, frame, judge, Cat(node, line))
        with m.If(self.o.ready | self.clear):
            m.d.sync += self.o.valid.eq(0)
        m.d.comb += [self.judged.eq(judge), self.which.eq(Cat(node, line))]
        told = told_lines.bit_select(Cat(node, line), 1)
        self._start(m, life, came, silent, sure, told_lines, starts,
                    (node, judge & line, total, told, Mux(judge, node, of)))
        with m.If(life.new):
            m.d.sync += [*(x.eq(0) for x in (*self.refused, *self.lost))]
        with m.If(judge):
            with m.Switch(Cat(node, line)):
                for n in range(LINK_NODES):
                    with m.Case(n):
                        m.d.sync += self.refused[n].eq(total)
                    with m.Case(n + LINK_NODES):
                        m.d.sync += self.lost[n].eq(Mux(told, total, 0))
            m.d.sync += [told.eq(1), compared.bit_select(Cat(node, line), 1).eq(1)]
            more = Signal(COUNT_BITS)
            m.d.comb += more.eq(total - before)
            first = Mux(line, spans[1][0], spans[0][0])
            with m.If(told & more.any() & ~more[-1]):
                m.d.sync += [
                    self.o.valid.eq(1), self.o.p.node.eq(node), self.o.p.line.eq(line),
                    self.o.p.lost.eq(more),
                    self.o.p.first.eq(Mux(floor > first, floor, first)),
                    self.o.p.last.eq(Mux(line, spans[1][1], spans[0][1])),
                ]
        return m

    def _start(self, m: Module, life, came, silent, sure, told_lines, starts, judge) -> None:
        """How much of ``came`` is of former lives of the transmitter, and whether the frames' life is known (``sure``).

        While it is not, frames may be of another life. What came before them is kept until it is known."""
        node, line, total, told, of = judge
        m.submodules.starts = store = memory.Memory(
            shape=COUNT_BITS, depth=2 * LINK_NODES, init=[], attrs={"ram_style": "distributed"})
        read, write = store.read_port(domain="comb"), store.write_port()
        held, strays = Signal(), Signal()       # a lock ended that had identified no life
        kept = Signal()     # since the reset, which leaves the memory as it is
        row, saves, adopts = Signal(range(LINK_NODES)), Signal(), Signal()
        m.d.comb += [
            read.addr.eq(Mux(adopts, Cat(row, 1), of)), starts.eq(read.data),
            write.addr.eq(Mux(saves | adopts, Cat(row, saves), node)), write.en.eq(saves | adopts | (line & ~told)),
            write.data.eq(Mux(saves, came[row], Mux(adopts, Mux(kept, read.data, 0), read.data - total))),
        ]
        m.d.sync += held.eq(self.locked)
        with m.If(saves | adopts):
            m.d.sync += row.eq(row + 1)
            with m.If(row.all()):
                m.d.sync += [saves.eq(0), adopts.eq(0)]
        with m.If(silent & held):
            m.d.sync += [sure.eq(0), saves.eq(sure), kept.eq(kept | sure), strays.eq(~sure)]
        with m.Elif(life.same | life.new | life.old):
            m.d.sync += [sure.eq(1), strays.eq(0), adopts.eq(life.new)]
            with m.If(life.new):
                m.d.sync += told_lines.eq(Cat(
                    Const(-1, LINK_NODES), (~(strays | sure)).replicate(LINK_NODES)))
            with m.Elif(life.old):
                m.d.sync += told_lines.eq(0)

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
