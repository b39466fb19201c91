"""LOSS records: the items that the gate refused, one record per node and outage."""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, COUNTER_BITS, GATE_CAUSES, LOSS_RECORD
from ..lib.bit_sliced import counted, late_column, planes
from ..lib.fifo import SmallFifo
from ..stream.block_source import BEAT_BITS, block_source
from .counters import counter_rows

__all__ = ["LossRecords", "QUEUE_DEPTH"]

#: Records that wait for a block. While the queue is full, outages grow instead.
QUEUE_DEPTH = 16


_RECORD = data.StructLayout({
    "node": 8, "causes": len(GATE_CAUSES), "lost": COUNTER_BITS, "first": 64, "last": 64})


class _Refusals:
    """Small counters of refusals since the last visit of their node, which the sweep visits.

    The low bits of a window number, and the next one, identify the window of a refusal: the next visit comes within one
    sweep, in which less than 2**bits windows can end.
    """

    def __init__(self, nodes: int, sweep: int):
        self.bits = bits = sweep.bit_length()
        self.moving = Signal()                      # the sweep visits ...
        self.node = Signal(range(sweep))            # ... this node
        self.turn = Signal(sweep, init=2)           # the next node, one bit per node
        self.small = planes(bits, nodes, "small")
        self.first, self.last = planes(bits + 1, nodes, "first"), planes(bits + 1, nodes, "last")
        self.causes = planes(len(GATE_CAUSES), nodes, "causes")


class _Visit:
    """A visited node's refusals, and its outage, as the sweep has read them."""

    def __init__(self, bits: int):
        self.row1 = Signal(data.StructLayout({"begun": 1, **_RECORD.members}), name="row1", reset_less=True)
        self.add1 = Signal(bits)
        self.first1 = Signal(bits + 1)
        self.last1 = Signal(bits + 1)
        self.causes1 = Signal(len(GATE_CAUSES))
        self.closed1 = Signal()
        self.now1 = Signal(64)


class LossRecords(wiring.Component):
    """Writes a LOSS record of every outage: number of items, first and last window, causes.

    Every refused item is in a record, whatever happens. Refusals enter a small bit-sliced counter
    with the low bits of the first and the last window. A sweep visits one node per clock and adds them to the
    node's open outage in memory. An outage is over when a visit finds the gate open, or capture off: a gate that opens
    and closes again between two visits does not end it. Its record is then queued. If the queue is full, the outage
    stays open and includes the refusals that follow.

    Members
    -------
    refused_by : refusals of this clock by cause, one bit per node, belonging to the window ``now``.
    some : there are refusals in this clock.
    closed : gates that are closed, in the same clock.
    now : window number.
    live : capture is on; when it is off all outages are over.
    clear : hold for two sweeps to forget everything.
    source : LOSS blocks.
    open : some refused item is not yet in a queued record.
    slip : clocks that a simulation skips in addition to this one, modulo 256.
    """

    def __init__(self, nodes: int, ram: str = "portable", beat_bytes: int = BEAT_BYTES):
        self.nodes, self.sweep, self.beat_bytes = nodes, counter_rows(nodes), beat_bytes
        super().__init__({
            "refused_by": In(nodes).array(len(GATE_CAUSES)), "some": In(1), "closed": In(nodes), "now": In(64),
            "live": In(1), "clear": In(1),
            "source": Out(block_source(self.beat_bytes)), "open": Out(1), "slip": In(8),
        })

    def elaborate(self, platform):
        m = Module()
        # One clock late, because `clear` has a long way; it is held long enough.
        cleared = Signal()
        m.d.sync += cleared.eq(self.clear)
        m.submodules.queue = ResetInserter(cleared)(queue := SmallFifo(_RECORD, QUEUE_DEPTH))
        refusals = _Refusals(self.nodes, self.sweep)
        visit = _Visit(refusals.bits)
        self._count_refusals(m, refusals)
        earlier = self._before_carry(m, refusals.bits)
        rows = self._read_outage(m, refusals, visit)
        row, over = self._add(m, refusals, visit, earlier)
        self._write_outage(m, rows, row, over, queue)
        self._stay_open(m, row.begun)
        (self._send if self.beat_bytes == BEAT_BYTES else self._send_words)(m, queue)
        return m

    def _count_refusals(self, m, refusals):
        """Counts a clock's refusals. The visited node's counters begin again."""
        nodes, small, causes = self.nodes, refusals.small, refusals.causes
        node, turn, moving = refusals.node, refusals.turn, refusals.moving
        visited = Signal(nodes)
        refused = Signal(nodes)
        m.d.sync += [
            node.eq(node + 1 + self.slip), turn.eq(turn.rotate_left(1)), moving.eq(self.open | self.clear),
            visited.eq(Mux(self.open | self.clear, turn, 0)),
        ]
        with m.If(self.slip.any()):
            m.d.sync += turn.eq(1 << (node + 2 + self.slip)[:len(node)])
        m.d.comb += [
            refused.eq(self.refused_by[0] | self.refused_by[1] | self.refused_by[2]),
        ]
        stale = Signal(nodes)  # something has been refused since the last visit
        kept = [plane & ~visited for plane in small]
        with m.If(self.some | moving):
            m.d.sync += stale.eq((stale & ~visited) | refused)
            m.d.sync += [p.eq(new) for p, new in zip(small, counted(kept, refused), strict=True)]
            m.d.sync += [c.eq((c & ~visited) | r) for c, r in zip(causes, self.refused_by, strict=True)]
        with m.If(self.some):
            begin = refused & ~(stale & ~visited)
            for b, (first, last) in enumerate(zip(refusals.first, refusals.last, strict=True)):
                stamp = self.now[b].replicate(nodes)
                m.d.sync += [
                    first.eq((stamp & begin) | (first & ~begin)),
                    last.eq((stamp & refused) | (last & ~refused)),
                ]
        with m.If(self.clear):
            m.d.sync += [p.eq(0) for p in (*small, *causes, stale)]

    def _before_carry(self, m, bits):
        """The upper bits of ``now`` before their last carry.

        A refusal's window has the upper bits of the present one; or, if the lowest of those has changed, these.
        """
        high = self.now[bits:]
        earlier = Signal.like(high)
        seen = Signal.like(high)
        m.d.sync += seen.eq(high)
        with m.If(seen[0] != high[0]):
            m.d.sync += earlier.eq(seen)
        return earlier

    def _read_outage(self, m, refusals, visit):
        """Stage 1, of two clocks: the visited node's small counters and its open outage. Returns the memories' ports.

        This stage and those after it move only while some outage is open.
        """
        node, moving = refusals.node, refusals.moving
        rows = {}
        for name, width in (("begun", 1), ("lost", COUNTER_BITS), ("first", 64), ("last", 64),
                            ("causes", len(GATE_CAUSES))):
            m.submodules[name] = mem = memory.Memory(shape=width, depth=self.sweep, init=[])
            rows[name] = mem.read_port(domain="comb"), mem.write_port()
        node1 = Signal.like(node)
        closed = self.closed & self.live.replicate(self.nodes)
        small1, first_of, last_of, causes_of, closed_of = (
            late_column(m, sliced, node, name, moving) for sliced, name in (
                (refusals.small, "small"), (refusals.first, "first"), (refusals.last, "last"),
                (refusals.causes, "causes"), ([closed], "closed")))
        m.d.sync += node1.eq(node)
        m.d.comb += [read.addr.eq(node1) for read, _ in rows.values()]
        with m.If(moving):
            m.d.sync += [
                visit.row1.node.eq(node1),
                *(visit.row1[name].eq(read.data) for name, (read, _) in rows.items()),
                visit.add1.eq(small1), visit.first1.eq(first_of), visit.last1.eq(last_of), visit.causes1.eq(causes_of),
                visit.closed1.eq(closed_of), visit.now1.eq(self.now),
            ]
        return rows

    def _add(self, m, refusals, visit, earlier):
        """Stages 2 and 3: the refusals are added to the outage. Returns the outage, and whether it is over."""
        bits, moving, row1 = refusals.bits, refusals.moving, visit.row1
        row2, row3 = (Signal(row1.shape(), name=f"row{k}", reset_less=k < 3) for k in (2, 3))
        # Stage 2: before the last carry or after?
        first1, last1, now1 = visit.first1, visit.last1, visit.now1
        add2 = Signal(bits)
        first2 = Signal(bits)
        last2 = Signal(bits)
        causes2 = Signal(len(GATE_CAUSES))
        closed2 = Signal()
        hit2 = Signal()
        high2 = Signal.like(earlier)
        earlier2 = Signal.like(earlier)
        first_earlier = Signal()
        last_earlier = Signal()
        with m.If(moving):
            m.d.sync += [
                row2.eq(row1), row2.lost.eq(Mux(row1.begun, row1.lost, 0)),
                add2.eq(visit.add1), hit2.eq(visit.add1 != 0), first2.eq(first1), last2.eq(last1),
                causes2.eq(visit.causes1), closed2.eq(visit.closed1), high2.eq(now1[bits:]), earlier2.eq(earlier),
                first_earlier.eq(first1[bits] ^ now1[bits]), last_earlier.eq(last1[bits] ^ now1[bits]),
            ]
        # Stage 3: add. A row without an outage has no valid contents.
        over3 = Signal()
        with m.If(moving):
            m.d.sync += [
                row3.node.eq(row2.node), row3.begun.eq(row2.begun | hit2),
                row3.lost.eq(row2.lost + add2),
                row3.causes.eq(Mux(row2.begun, row2.causes, 0) | causes2),
                row3.first.eq(Mux(row2.begun, row2.first, Cat(first2, Mux(first_earlier, earlier2, high2)))),
                row3.last.eq(Mux(hit2, Cat(last2, Mux(last_earlier, earlier2, high2)), row2.last)),
                over3.eq((row2.begun | hit2) & ~closed2),
            ]
        return row3, over3

    def _write_outage(self, m, rows, row, over, queue):
        """Stage 4: the outage is written back, or queued if it is over."""
        queued = Signal()
        m.d.comb += [
            queue.i.valid.eq(over), queued.eq(over & queue.i.ready),
            *(queue.i.p[name].eq(row[name]) for name in _RECORD.members),
        ]
        for name, (_, write) in rows.items():
            m.d.comb += [
                write.addr.eq(row.node), write.en.eq(row.begun | self.clear),
                write.data.eq(~(queued | self.clear) if name == "begun" else row[name]),
            ]

    def _stay_open(self, m, some_outage):
        """Open from the refusal until its record is queued: two whole sweeps without any refusal or outage."""
        quiet_for = Signal(range(2 * self.sweep + 1))
        with m.If(self.some | some_outage):
            m.d.sync += [quiet_for.eq(0), self.open.eq(1)]
        with m.Elif(quiet_for == 2 * self.sweep):
            m.d.sync += self.open.eq(0)
        with m.Else():
            m.d.sync += quiet_for.eq(quiet_for + 1)
        with m.If(self.slip.any()):
            m.d.sync += quiet_for.eq(0)     # the outage's visit may be a sweep away

    def _send(self, m, queue):
        """Two beats per record; one is prepared when the one before has left."""
        source = self.source
        beats = source.beats
        second = Signal()
        owed = Signal.like(queue.level)
        some_owed = Signal()
        asking = Signal()
        loads = Signal()
        m.d.sync += asking.eq((queue.level != 0) & (owed == 0) & ~source.grant)
        head = queue.o.p
        m.d.comb += [
            source.request.eq(asking),
            source.length.eq(queue.level * LOSS_RECORD.bytes),
            source.time.eq(self.now),
            loads.eq(some_owed & ~beats.valid), queue.o.ready.eq(loads & second),
        ]
        with m.If(source.grant):
            m.d.sync += [owed.eq(queue.level), some_owed.eq(1)]
        with m.Elif(loads & second):
            m.d.sync += [owed.eq(owed - 1), some_owed.eq(owed != 1)]
        with m.If(beats.ready):
            m.d.sync += beats.valid.eq(0)
        with m.If(~beats.valid):
            m.d.sync += beats.p.eq(Mux(
                second, Cat(head.first, head.last),
                Cat(head.node, head.causes, Const(0, 64 - 8 - len(GATE_CAUSES)), head.lost,
                    Const(0, 64 - COUNTER_BITS))[:BEAT_BITS]))
        with m.If(loads):
            m.d.sync += [beats.valid.eq(1), second.eq(~second)]
        with m.If(self.clear):
            m.d.sync += [
                second.eq(0), owed.eq(0), some_owed.eq(0), asking.eq(0), self.open.eq(0), beats.valid.eq(0)]

    def _send_words(self, m, queue):
        """As :meth:`_send`, in short beats."""
        source, beats, head = self.source, self.source.beats, queue.o.p
        bits = len(beats.p)
        record = Cat(
            head.node, head.causes, Const(0, 64 - 8 - len(GATE_CAUSES)), head.lost, Const(0, 64 - COUNTER_BITS),
            head.first, head.last)
        at = Signal(range(8 * LOSS_RECORD.bytes // bits))
        owed = Signal.like(queue.level)
        some_owed, loads = Signal(), Signal()
        m.d.comb += [
            source.length.eq(queue.level * LOSS_RECORD.bytes), source.time.eq(self.now),
            loads.eq(some_owed & (~beats.valid | beats.ready)), queue.o.ready.eq(loads & at.all()),
        ]
        m.d.sync += source.request.eq((queue.level != 0) & ~some_owed & ~source.grant)
        with m.If(beats.ready):
            m.d.sync += beats.valid.eq(0)
        with m.If(loads):
            m.d.sync += [beats.p.eq(record.word_select(at, bits)), beats.valid.eq(1), at.eq(at + 1)]
        with m.If(source.grant):
            m.d.sync += [owed.eq(queue.level), some_owed.eq(1)]
        with m.Elif(queue.o.ready):
            m.d.sync += [owed.eq(owed - 1), some_owed.eq(owed != 1)]
        with m.If(self.clear):
            m.d.sync += [
                at.eq(0), owed.eq(0), some_owed.eq(0), source.request.eq(0), self.open.eq(0), beats.valid.eq(0)]
