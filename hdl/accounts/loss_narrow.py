"""Outages on a board of few cells: processes one 16-bit word per clock."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LOSS_RECORD, NARROW_BYTES, Cause
from ..lib.bit_sliced import column, counted, planes
from ..lib.ram import at_once, style
from ..stream.block_source import block_source
from .counters import counter_rows
from .loss import QUEUE_DEPTH

__all__ = ["SerialLoss"]

_BITS = 8 * NARROW_BYTES
#: Words of a record, and positions of the counts and windows in it.
_WORDS = LOSS_RECORD.bytes // NARROW_BYTES
_AT = {field.name: at // NARROW_BYTES for at, field in LOSS_RECORD.offsets()}
#: Words that can be nonzero: the words before `lost`, and its highest word, are zero in every record.
_LOST = range(_AT["lost"], _AT["first"] - 1)
_FIRST, _LAST = range(_AT["first"], _AT["last"]), range(_AT["last"], _WORDS)
#: Clocks of a visit: one to take the refusals, and one per word.
VISIT = 2 + len(_LOST) + len(_FIRST) + len(_LAST)


class _Refusals:
    """Refusals of every node since its last visit: their number, the low bits of the first and of the last window,
    their causes.

    The low bits say how long ago a window was: the next visit comes within one round of visits, in which less than
    2**bits windows can end.
    """

    def __init__(self, nodes: int, rows: int):
        self.bits = bits = (rows * VISIT).bit_length()
        self.small = planes(bits, nodes, "small")
        self.first, self.last = planes(bits, nodes, "first"), planes(bits, nodes, "last")
        self.causes = planes(len(Cause), nodes, "causes")
        self.stale = Signal(nodes)      # there are any
        self.visited = Signal(nodes)    # now, one bit


class _Visit:
    """The node that is visited, and what has been taken in the first clock."""

    def __init__(self, rows: int, bits: int):
        self.node = Signal(range(rows))
        self.busy = Signal()
        self.over = Signal()            # the outage is over; the record goes to the queue
        self.had = Signal()             # the record exists already
        self.hit = Signal()             # the outage has grown
        self.add = Signal(bits)
        self.first_age, self.last_age = Signal(bits, name="first_age"), Signal(bits, name="last_age")
        self.causes = Signal(len(Cause), name="new_causes")
        self.now = Signal(64)
        self.at = Signal(range(_WORDS))     # the word of this clock


class SerialLoss(wiring.Component):
    """Same function as :class:`~.loss.Loss`, with the same contents of blocks.

    Refusals enter the same small bit-sliced counters, with the low bits of the first and the last window. A node
    is visited when its outage has grown, or is over: its record in memory is processed word by word, and is written to
    the queue at the same time if the outage is over. Refusals during the visit wait for the next one.

    A visit takes :data:`VISIT` clocks. In the first one the node's refusals are taken, and their windows become ages:
    how many windows ago. Then comes a word per clock. All three numbers are made alike, the lowest word first, by one
    adder: a number and a small change of it.

    =====  ======  ============  =====================================  ===========================
    clock  words   of            new value                              if
    =====  ======  ============  =====================================  ===========================
    1      0       node, causes  node, the old causes and the new ones
    2..4   4..6    ``lost``      the old one + the refusals
    5..8   8..11   ``first``     the window of the visit - the age      there was no record
    9..12  12..15  ``last``      the window of the visit - the age      something has been refused
    =====  ======  ============  =====================================  ===========================

    Other words of a record are always zero. A number that is not replaced keeps its old value.

    Parameters
    ----------
    nodes : number of nodes.
    ram : kind of the two memories, see :func:`~.ram.at_once`.

    Members
    -------
    As of :class:`~.loss.Loss`; the source's beats have 2 bytes.
    """

    def __init__(self, nodes: int, ram: str = "portable"):
        self.nodes, self.ram, self.rows = nodes, ram, counter_rows(nodes)
        super().__init__({
            "refused_by": In(nodes).array(len(Cause)), "some": In(1), "closed": In(nodes), "now": In(64),
            "live": In(1), "clear": In(1),
            "source": Out(block_source(NARROW_BYTES)), "open": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        refusals = _Refusals(self.nodes, self.rows)
        visit = _Visit(self.rows, refusals.bits)
        begun = Signal(self.nodes)              # there is a record
        level = Signal(range(QUEUE_DEPTH + 1))  # records in the queue
        self._count_refusals(m, refusals)
        self._choose(m, refusals, visit, begun, full=level[-1])
        domain = at_once(m, self.ram)
        word = self._rewrite(m, visit, domain)
        enters, leaves = self._queue(m, visit, word, level, domain)
        m.d.sync += [
            level.eq(level + enters - leaves),
            self.open.eq(self.some | refusals.stale.any() | begun.any() | visit.busy),
        ]
        with m.If(self.clear):
            m.d.sync += [
                *(p.eq(0) for p in (*refusals.small, *refusals.causes)), refusals.stale.eq(0), begun.eq(0),
                visit.busy.eq(0), visit.node.eq(0), level.eq(0), self.open.eq(0),
            ]
        return m

    def _count_refusals(self, m, refusals):
        """Counts a clock's refusals. The visited node's counters begin again."""
        nodes, stale, visited = self.nodes, refusals.stale, refusals.visited
        refused = Signal(nodes)
        begin = Signal(nodes)
        m.d.comb += [
            refused.eq(self.refused_by[0] | self.refused_by[1] | self.refused_by[2]),
            begin.eq(refused & ~(stale & ~visited)),
        ]
        kept = [plane & ~visited for plane in refusals.small]
        m.d.sync += [
            stale.eq((stale & ~visited) | refused),
            *(p.eq(new) for p, new in zip(refusals.small, counted(kept, refused), strict=True)),
            *(c.eq((c & ~visited) | r) for c, r in zip(refusals.causes, self.refused_by, strict=True)),
        ]
        for b, (first, last) in enumerate(zip(refusals.first, refusals.last, strict=True)):
            stamp = self.now[b].replicate(nodes)
            m.d.sync += [
                first.eq((stamp & begin) | (first & ~begin)), last.eq((stamp & refused) | (last & ~refused)),
            ]

    def _choose(self, m, refusals, visit, begun, full):
        """Goes from node to node. A visit begins if the outage has grown, or is over and the queue has a place."""
        node, bits = visit.node, refusals.bits
        stale, has_begun, closed = (Signal(name=f"node_{name}") for name in ("stale", "begun", "closed"))
        one = Signal(self.nodes)
        m.d.comb += [
            Cat(stale, has_begun, closed).eq(
                column([refusals.stale, begun, self.closed & self.live.replicate(self.nodes)], node)),
            one.eq(1 << node),
        ]
        is_over = ~closed & ~full
        with m.If(~visit.busy):
            m.d.sync += [
                visit.add.eq(column(refusals.small, node)), visit.causes.eq(column(refusals.causes, node)),
                visit.first_age.eq(self.now[:bits] - column(refusals.first, node)),
                visit.last_age.eq(self.now[:bits] - column(refusals.last, node)),
                visit.had.eq(has_begun), visit.hit.eq(stale), visit.over.eq(is_over), visit.now.eq(self.now),
                visit.at.eq(0),
            ]
            with m.If(stale | (has_begun & is_over)):
                m.d.comb += refusals.visited.eq(one)
                m.d.sync += [
                    visit.busy.eq(1), begun.eq((begun & ~one) | (one & (~is_over).replicate(self.nodes)))]
            with m.Else():
                m.d.sync += node.eq(node + 1)

    def _rewrite(self, m, visit, domain):
        """A word of the record per clock, by the table above. Returns the word."""
        at, old = visit.at, Signal(_BITS)
        m.submodules.records = records = memory.Memory(
            shape=_BITS, depth=self.rows * _WORDS, init=[], attrs=style(self.ram))
        read, write = records.read_port(domain=domain), records.write_port()
        is_lost, is_first, lowest = at[2:] == 1, at[2:] == 2, at[:2] == 0
        # The change is small: above the lowest word there is only its sign.
        change = Signal(signed(len(visit.add) + 1))
        addend = Signal(_BITS)
        total = Signal(_BITS + 1)
        carry = Signal()
        word = Signal(_BITS)
        m.d.comb += [
            change.eq(Mux(is_lost, visit.add, -Mux(is_first, visit.first_age, visit.last_age))),
            addend.eq(Mux(lowest, change, change[-1].replicate(_BITS))),
            old.eq(Mux(visit.had, read.data, 0)),
            total.eq(Mux(is_lost, old, visit.now.word_select(at[:2], _BITS)) + addend + (carry & ~lowest)),
            word.eq(Mux(is_lost | Mux(is_first, ~visit.had, visit.hit), total[:_BITS], old)),
            read.addr.eq(Cat(at, visit.node)), write.addr.eq(read.addr), write.data.eq(word), write.en.eq(visit.busy),
        ]
        with m.If(at == 0):
            m.d.comb += word.eq(Cat(
                visit.node, Const(0, 8 - len(visit.node)), old[8:8 + len(Cause)] | visit.causes))
        with m.If(visit.busy):
            m.d.sync += [
                carry.eq(total[_BITS]), at.eq(Mux(at == 0, _LOST.start, Mux(at == _LOST[-1], _FIRST.start, at + 1)))]
            with m.If(at.all()):
                m.d.sync += [visit.busy.eq(0), visit.node.eq(visit.node + 1)]
        return word

    def _queue(self, m, visit, written, level, domain):
        """Records of outages that are over; their words are the beats. Returns whether one enters, and whether one
        leaves."""
        source, beats = self.source, self.source.beats
        m.submodules.queue = queue = memory.Memory(
            shape=_BITS, depth=QUEUE_DEPTH * _WORDS, init=[], attrs=style(self.ram))
        read, write = queue.read_port(domain=domain), queue.write_port()
        put, get = Signal(range(QUEUE_DEPTH)), Signal(range(QUEUE_DEPTH))
        word = Signal(range(_WORDS))
        owed = Signal.like(level)
        enters, leaves = Signal(), Signal()
        m.d.comb += [
            write.addr.eq(Cat(visit.at, put)), write.data.eq(written), write.en.eq(visit.busy & visit.over),
            enters.eq(write.en & visit.at.all()),
            source.length.eq(level * LOSS_RECORD.bytes), source.time.eq(self.now),
            read.addr.eq(Cat(word, get)), beats.p.eq(read.data), beats.valid.eq(owed != 0),
            leaves.eq(beats.valid & beats.ready & word.all()),
        ]
        m.d.sync += source.request.eq((level != 0) & (owed == 0) & ~source.grant)
        with m.If(source.grant):
            m.d.sync += owed.eq(level)
        with m.Elif(leaves):
            m.d.sync += owed.eq(owed - 1)
        with m.If(beats.valid & beats.ready):
            m.d.sync += word.eq(word + 1)
        with m.If(enters):
            m.d.sync += put.eq(put + 1)
        with m.If(leaves):
            m.d.sync += get.eq(get + 1)
        with m.If(self.clear):
            m.d.sync += [put.eq(0), get.eq(0), word.eq(0), owed.eq(0), source.request.eq(0)]
        return enters, leaves
