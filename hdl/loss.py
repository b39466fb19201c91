"""Outages: what the gate refused, one record a node and outage."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .block_source import BEAT_BITS, block_source
from .counters import sweep_length
from .fifo import StreamFifo
from .layout import COUNTER_BITS, LOSS_RECORD, Cause
from .vertical import column, counted, planes

__all__ = ["Loss", "QUEUE_DEPTH"]

#: Records that wait for a block. While the queue is full, outages grow instead.
QUEUE_DEPTH = 16


class Loss(wiring.Component):
    """Writes a LOSS record of every outage: how many items, first and last window, causes.

    Every refused item is in a record, whatever happens. Refusals enter a small bit-sliced counter
    with the low bits of the first and the last window; the sweep adds them to the node's open
    outage in memory. An outage is over when the gate is open again, or capture is off; its record
    is then queued, and if the queue is full the outage stays open and takes in what follows.

    Members
    -------
    refused_by : refusals of this clock by cause, a bit a node, belonging to the window ``now``.
    closed : gates that are closed, at the same time.
    now : window number.
    node : the sweep, see :class:`~.counters.Counters`.
    live : capture is on; when it is off all outages are over.
    clear : hold for two sweeps to forget everything.
    source : LOSS blocks.
    open : some refused item is not yet in a queued record.
    """

    def __init__(self, nodes: int, ram: str = "portable"):
        self.nodes, self.sweep = nodes, sweep_length(nodes)
        super().__init__({
            "refused_by": In(nodes).array(len(Cause)), "closed": In(nodes), "now": In(64),
            "node": In(range(self.sweep)), "live": In(1), "clear": In(1),
            "source": Out(block_source()), "open": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes, bits = self.nodes, self.sweep.bit_length()
        record = data.StructLayout({
            "node": 8, "causes": len(Cause), "lost": COUNTER_BITS, "first": 64, "last": 64})
        m.submodules.queue = queue = StreamFifo(record, QUEUE_DEPTH)

        # Small counters. The low bits of a window number place a refusal: the next visit comes
        # within one sweep, in which less than 2**bits windows can end.
        visited, refused = Signal(nodes), Signal(nodes)
        m.d.comb += [
            visited.eq(Const(1, self.sweep) << self.node),
            refused.eq(self.refused_by[0] | self.refused_by[1] | self.refused_by[2]),
        ]
        small = planes(bits, nodes, "small")
        place = bits + 1
        first, last, causes = planes(place, nodes, "first"), planes(place, nodes, "last"), \
            planes(len(Cause), nodes, "causes")
        fresh = Signal(nodes)  # nothing refused since the last visit
        kept = [plane & ~visited for plane in small]
        m.d.comb += fresh.eq(~Cat((Cat(p[i] for p in kept)).any() for i in range(nodes)))
        m.d.sync += [p.eq(new) for p, new in zip(small, counted(kept, refused), strict=True)]
        for b in range(place):
            stamp = self.now[b].replicate(nodes)
            begin = refused & fresh
            m.d.sync += [
                first[b].eq((stamp & begin) | (first[b] & ~begin)),
                last[b].eq((stamp & refused) | (last[b] & ~refused)),
            ]
        for c in range(len(Cause)):
            m.d.sync += causes[c].eq((causes[c] & ~visited) | self.refused_by[c])
        with m.If(self.clear):
            m.d.sync += [p.eq(0) for p in (*small, *causes)]

        # Stage 1: the visited node's small counters and its open outage.
        rows = {}
        for name, width in (("lost", COUNTER_BITS), ("first", 64), ("last", 64), ("causes", len(Cause))):
            m.submodules[name] = mem = memory.Memory(shape=width, depth=self.sweep, init=[])
            rows[name] = mem.read_port(domain="comb"), mem.write_port()
        s1 = Signal(data.StructLayout({
            "node": len(self.node), "add": bits, "first": place, "last": place, "causes": len(Cause),
            "closed": 1, "now": 64}))
        row = Signal(record)
        m.d.comb += [read.addr.eq(self.node) for read, _ in rows.values()]
        m.d.sync += [
            s1.node.eq(self.node), s1.add.eq(column(small, self.node)),
            s1.first.eq(column(first, self.node)), s1.last.eq(column(last, self.node)),
            s1.causes.eq(column(causes, self.node)), s1.closed.eq((self.closed >> self.node)[0]),
            s1.now.eq(self.now),
            row.node.eq(self.node), row.lost.eq(rows["lost"][0].data), row.first.eq(rows["first"][0].data),
            row.last.eq(rows["last"][0].data), row.causes.eq(rows["causes"][0].data),
        ]
        # Stage 2: add.
        s2 = Signal(record)
        hit, begun, closed2 = Signal(), Signal(), Signal()
        age = {"first": Signal(place, name="first_age"), "last": Signal(place, name="last_age")}
        m.d.comb += [age[k].eq(s1.now[:place] - s1[k]) for k in age]
        fresh_outage = row.lost == 0
        m.d.sync += [
            s2.node.eq(row.node), s2.lost.eq(row.lost + s1.add), s2.causes.eq(row.causes | s1.causes),
            s2.first.eq(Mux(fresh_outage, s1.now - age["first"], row.first)),
            s2.last.eq(Mux(s1.add != 0, s1.now - age["last"], row.last)),
            hit.eq(s1.add != 0), begun.eq(~fresh_outage), closed2.eq(s1.closed),
        ]
        # Stage 3: write back, or queue if it is over.
        some, over = Signal(), Signal()
        m.d.comb += [
            some.eq(hit | begun),
            over.eq(some & (~closed2 | ~self.live) & queue.i.ready & ~self.clear),
            queue.i.valid.eq(over), queue.i.p.eq(s2),
        ]
        idle = Mux(over | self.clear, 0, Const(-1, 1))
        for name, (_, write) in rows.items():
            m.d.comb += [
                write.addr.eq(s2.node[:len(self.node)]), write.en.eq(some | self.clear),
                write.data.eq(s2[name] & idle.replicate(len(write.data))),
            ]

        # Open from the refusal until its record is queued: two whole sweeps without a trace.
        quiet_for = Signal(range(2 * self.sweep + 1))
        with m.If(refused.any() | some):
            m.d.sync += [quiet_for.eq(0), self.open.eq(1)]
        with m.Elif(quiet_for == 2 * self.sweep):
            m.d.sync += self.open.eq(0)
        with m.Else():
            m.d.sync += quiet_for.eq(quiet_for + 1)

        # Two beats a record.
        second, owed = Signal(), Signal.like(queue.level)
        head = queue.o.p
        source = self.source
        m.d.comb += [
            source.request.eq((queue.level != 0) & (owed == 0)),
            source.length.eq(queue.level * LOSS_RECORD.bytes),
            source.time.eq(self.now),
            source.beats.valid.eq(queue.o.valid & (owed != 0)),
            source.beats.p.eq(Mux(
                second, Cat(head.first, head.last),
                Cat(head.node, head.causes, Const(0, 64 - 8 - len(Cause)), head.lost,
                    Const(0, 64 - COUNTER_BITS))[:BEAT_BITS])),
            queue.o.ready.eq(source.beats.ready & second & (owed != 0)),
        ]
        with m.If(source.grant):
            m.d.sync += owed.eq(queue.level)
        with m.Elif(queue.o.valid & queue.o.ready):
            m.d.sync += owed.eq(owed - 1)
        with m.If(source.beats.valid & source.beats.ready):
            m.d.sync += second.eq(~second)
        return m
