"""LOSS records on a narrow board: processes one 16-bit word per clock."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import GATE_CAUSES, LOSS_RECORD, NARROW_BYTES
from ..lib.bit_sliced import column, counted, planes
from ..lib.ram import at_once, style
from ..stream.block_source import block_source
from .counters import counter_rows
from .loss_records import QUEUE_DEPTH

__all__ = ["NarrowLossRecords"]

_BITS = 8 * NARROW_BYTES
#: Words of a record, and positions of the counts and windows in it.
_WORDS = LOSS_RECORD.bytes // NARROW_BYTES
_AT = {field.name: at // NARROW_BYTES for at, field in LOSS_RECORD.offsets()}
#: Words that can be nonzero: the words before `lost`, and its highest word, are zero in every record.
_LOST = range(_AT["lost"], _AT["first"] - 1)
_FIRST, _LAST = range(_AT["first"], _AT["last"]), range(_AT["last"], _WORDS)
#: Clocks of a visit: one to take the refusals, and one per word.
VISIT = 2 + len(_LOST) + len(_FIRST) + len(_LAST)


class NarrowLossRecords(wiring.Component):
    """Same function as :class:`~.loss_records.LossRecords`, with the same contents of blocks.

    Refusals enter the same small bit-sliced counters, with the low bits of the first and the last window. A node
    is visited when its outage has grown, or is over: its record in memory is processed word by word, and is written to
    the queue at the same time if the outage is over. Refusals during the visit wait for the next one.

    Parameters
    ----------
    nodes : number of nodes.
    ram : kind of the two memories, see :func:`~.ram.at_once`.

    Members
    -------
    Those of :class:`~.loss_records.LossRecords`, except that the source's beats have 2 bytes.
    """

    def __init__(self, nodes: int, ram: str = "portable"):
        self.nodes, self.ram, self.rows = nodes, ram, counter_rows(nodes)
        super().__init__({
            "refused_by": In(nodes).array(len(GATE_CAUSES)), "some": In(1), "closed": In(nodes), "now": In(64),
            "live": In(1), "clear": In(1),
            "source": Out(block_source(NARROW_BYTES)), "open": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        nodes = self.nodes
        # The low bits of a window number, and the next one, identify the window of a refusal: the next visit comes
        # within one round of visits, in which less than 2**bits windows can end.
        bits = (self.rows * VISIT).bit_length()
        refused = Signal(nodes)
        visited = Signal(nodes)
        m.d.comb += refused.eq(self.refused_by[0] | self.refused_by[1] | self.refused_by[2])
        small = planes(bits, nodes, "small")
        first, last = planes(bits + 1, nodes, "first"), planes(bits + 1, nodes, "last")
        causes = planes(len(GATE_CAUSES), nodes, "causes")
        stale = Signal(nodes)       # something has been refused since the last visit
        begun = Signal(nodes)       # there is a record
        begin = Signal(nodes)
        kept = [plane & ~visited for plane in small]
        m.d.comb += begin.eq(refused & ~(stale & ~visited))
        m.d.sync += [
            stale.eq((stale & ~visited) | refused),
            *(p.eq(new) for p, new in zip(small, counted(kept, refused), strict=True)),
            *(c.eq((c & ~visited) | r) for c, r in zip(causes, self.refused_by, strict=True)),
        ]
        for b in range(bits + 1):
            stamp = self.now[b].replicate(nodes)
            m.d.sync += [
                first[b].eq((stamp & begin) | (first[b] & ~begin)),
                last[b].eq((stamp & refused) | (last[b] & ~refused)),
            ]

        # The node to visit.
        node = Signal(range(self.rows))
        busy = Signal()
        level = Signal(range(QUEUE_DEPTH + 1))
        node_stale, node_begun, node_closed = (
            Signal(name=f"node_{name}") for name in ("stale", "begun", "closed"))
        over = Signal()             # the outage is over; the record goes to the queue
        add = Signal(bits)
        first_low, last_low = Signal(bits + 1), Signal(bits + 1)
        new_causes = Signal(len(GATE_CAUSES))
        had = Signal()              # the record exists already
        hit = Signal()              # the outage has grown
        now = Signal(64)
        at = Signal(range(_WORDS))
        carry = Signal()
        m.d.comb += [
            Cat(node_stale, node_begun, node_closed).eq(
                column([stale, begun, self.closed & self.live.replicate(nodes)], node)),
        ]
        one = Signal(nodes)
        m.d.comb += one.eq(1 << node)
        is_over = ~node_closed & ~level[-1]
        with m.If(~busy):
            m.d.sync += [
                add.eq(column(small, node)), first_low.eq(column(first, node)), last_low.eq(column(last, node)),
                new_causes.eq(column(causes, node)), had.eq(node_begun), hit.eq(node_stale), over.eq(is_over),
                now.eq(self.now), at.eq(0), carry.eq(0),
            ]
            with m.If(node_stale | (node_begun & is_over)):
                m.d.comb += visited.eq(one)
                m.d.sync += [busy.eq(1), begun.eq((begun & ~one) | (one & (~is_over).replicate(nodes)))]
            with m.Else():
                m.d.sync += node.eq(node + 1)

        # The visit. A window is the present one except for its low bits; the bits above those are one less if
        # the lowest of them differs.
        m.submodules.records = records = memory.Memory(
            shape=_BITS, depth=self.rows * _WORDS, init=[], attrs=style(self.ram))
        m.submodules.queue = queue = memory.Memory(
            shape=_BITS, depth=QUEUE_DEPTH * _WORDS, init=[], attrs=style(self.ram))
        domain = at_once(m, self.ram)
        read, write = records.read_port(domain=domain), records.write_port()
        old = Signal(_BITS)
        new = Signal(_BITS)
        total = Signal(_BITS + 1)
        is_lost, is_first = (Signal(name=name) for name in ("is_lost", "is_first"))
        starts = Signal()           # of a row of words that form one number
        low = Signal(bits + 1)
        stamp = Signal(_BITS)
        borrows = Signal()
        m.d.comb += [
            is_lost.eq(at[2:] == 1), is_first.eq(at[2:] == 2), starts.eq(at[:2] == 0),
            old.eq(Mux(had, read.data, 0)), low.eq(Mux(is_first, first_low, last_low)),
            borrows.eq(low[bits] ^ now[bits]),
            stamp.eq(Mux(starts, Cat(low[:bits], now[bits:_BITS]), Array(now[k:k + _BITS] for k in range(0, 64, _BITS))[
                at[:2]])),
            total.eq(Mux(is_lost, old, stamp) + Mux(
                is_lost, Mux(starts, add, 0),
                Mux(borrows, Mux(starts, (1 << _BITS) - (1 << bits), (1 << _BITS) - 1), 0)) + (carry & ~starts)),
            new.eq(Mux(at == 0, Cat(node, Const(0, 8 - len(node)), old[8:8 + len(GATE_CAUSES)] | new_causes),
                       Mux(is_lost | Mux(is_first, ~had, hit), total[:_BITS], old))),
            read.addr.eq(Cat(at, node)),
        ]
        # Both memories are written a clock later: on an iCE40 the read leaves half a clock for the sum.
        m.d.sync += [write.addr.eq(read.addr), write.data.eq(new), write.en.eq(busy)]
        put = Signal(range(QUEUE_DEPTH))
        enters = Signal()
        queue_read, queue_write = queue.read_port(domain=domain), queue.write_port()
        m.d.comb += [queue_write.data.eq(write.data), enters.eq(busy & over & at.all())]
        m.d.sync += [queue_write.addr.eq(Cat(at, put)), queue_write.en.eq(busy & over)]
        with m.If(busy):
            m.d.sync += [
                carry.eq(total[_BITS]), at.eq(Mux(at == 0, _LOST.start, Mux(at == _LOST[-1], _FIRST.start, at + 1)))]
            with m.If(at.all()):
                m.d.sync += [busy.eq(0), node.eq(node + 1)]
        with m.If(enters):
            m.d.sync += put.eq(put + 1)
        some_outage = stale.any() | begun.any()
        m.d.sync += self.open.eq(self.some | some_outage | busy)

        # The words of the queue are the beats.
        source = self.source
        beats = source.beats
        get = Signal(range(QUEUE_DEPTH))
        word = Signal(range(_WORDS))
        owed = Signal.like(level)
        leaves = Signal()
        m.d.comb += [
            source.length.eq(level * LOSS_RECORD.bytes), source.time.eq(self.now),
            queue_read.addr.eq(Cat(word, get)), beats.p.eq(queue_read.data), beats.valid.eq(owed != 0),
            leaves.eq(beats.valid & beats.ready & word.all()),
        ]
        m.d.sync += [
            source.request.eq((level != 0) & (owed == 0) & ~source.grant),
            level.eq(level + enters - leaves),
        ]
        with m.If(source.grant):
            m.d.sync += owed.eq(level)
        with m.Elif(leaves):
            m.d.sync += owed.eq(owed - 1)
        with m.If(beats.valid & beats.ready):
            m.d.sync += word.eq(word + 1)
        with m.If(leaves):
            m.d.sync += get.eq(get + 1)
        with m.If(self.clear):
            m.d.sync += [
                *(p.eq(0) for p in small), *(p.eq(0) for p in causes), stale.eq(0), begun.eq(0), busy.eq(0), node.eq(0),
                level.eq(0), put.eq(0), get.eq(0), word.eq(0), owed.eq(0), source.request.eq(0), self.open.eq(0),
            ]
        return m
