"""Per-node counters: narrow in flip-flops, swept into memory, latched for whoever reads."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .layout import COUNTER_BITS, Counter
from .vertical import column, counted, planes

__all__ = ["Counters", "SWEPT", "sweep_length"]

#: Counters that are sums of one-clock events; LAG_MAX is kept as a maximum by the window.
SWEPT = tuple(c for c in Counter if c is not Counter.LAG_MAX)


def sweep_length(nodes: int) -> int:
    """Clocks in which every node is visited once: 16 or 32."""
    return 16 if nodes <= 16 else 32


class Counters(wiring.Component):
    """Counts events of every node and kind, any number of them in every clock.

    Each event enters a small bit-sliced counter; the sweep visits one node a clock, adds its small
    counters to its row in memory and empties them. A row is updated at once, so the counters of a
    node always belong to one instant. A *latch* copies each row during one whole sweep; what has
    been latched stays until its owner asks again. There are two independent latches, one for the
    census and one for the bus.

    Members
    -------
    event : for each of :data:`SWEPT`, a bit a node.
    beyond : two more than the largest lag of each node, in planes; copied along.
    node, visited : the node whose row the sweep is about to update, as a number and as one bit;
        it goes round freely, for others that sweep.
    clear : hold for two sweeps to zero everything.
    latch : a pulse starts a copy, one bit a latch.
    latched : the copy asked for is complete.
    index : row to read, one a latch.
    row : its counters, in the order of :class:`~.layout.Counter`, combinational with ``index``.
    """

    def __init__(self, nodes: int, lag_bits: int):
        self.nodes, self.lag_bits = nodes, lag_bits
        self.sweep = sweep_length(nodes)
        super().__init__({
            "event": In(nodes).array(len(SWEPT)), "beyond": In(nodes).array(lag_bits),
            "node": Out(range(self.sweep)), "visited": Out(self.sweep, init=1), "clear": In(1),
            "latch": In(2), "latched": Out(2),
            "index": In(range(self.sweep)).array(2),
            "row": Out(COUNTER_BITS).array(2 * len(Counter)),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.node.eq(self.node + 1)
        visited = self.visited
        m.d.sync += visited.eq(visited.rotate_left(1))

        copying = Signal(2)
        asked = Signal(2)

        # Without events for more than a sweep every small counter is empty, and all rests.
        events = [Signal(self.nodes, name=f"event_{c.name.lower()}") for c in SWEPT]
        any_event = Signal(len(SWEPT) + 1)
        some = Signal()
        resting = Signal(range(2 * self.sweep + 1))
        active = Signal()
        m.d.sync += [
            *(e.eq(self.event[k]) for k, e in enumerate(events)),
            any_event.eq(Cat(*(e.any() for e in self.event), self.clear | self.latch.any())),
        ]
        m.d.comb += some.eq(any_event.any())
        with m.If(some | copying.any() | asked.any()):
            m.d.sync += [resting.eq(0), active.eq(1)]
        with m.Elif(resting[-1]):
            m.d.sync += active.eq(0)
        with m.Else():
            m.d.sync += resting.eq(resting + 1)

        # One row at a time goes through: read, add, write. A row comes round again after 16 clocks
        # at the earliest, so it never meets itself.
        adding = Signal(2)
        writing = Signal()
        target1 = Signal.like(self.node)
        target2 = Signal.like(self.node)
        target = Signal.like(self.node)
        m.d.sync += [
            target1.eq(self.node), target2.eq(target1), target.eq(target2),
            adding.eq(Cat(active, adding)), writing.eq(adding[1]),
        ]

        for side in range(2):
            with m.If(self.latch[side]):
                m.d.sync += [asked[side].eq(1), self.latched[side].eq(0)]
            with m.If(target == self.sweep - 1):
                m.d.sync += [copying[side].eq(asked[side] & ~copying[side] & adding[1])]
                with m.If(copying[side]):
                    m.d.sync += [asked[side].eq(0), self.latched[side].eq(1)]
            with m.If(self.clear):
                m.d.sync += [asked[side].eq(0), copying[side].eq(0), self.latched[side].eq(0)]

        small_bits = self.sweep.bit_length()
        updated = []
        for position, counter in enumerate(SWEPT):
            name = counter.name.lower()
            small = planes(small_bits, self.nodes, name)
            kept = [plane & ~visited[:self.nodes] for plane in small]
            m.d.sync += [plane.eq(new)
                         for plane, new in zip(small, counted(kept, events[position]), strict=True)]
            with m.If(self.clear):
                m.d.sync += [plane.eq(0) for plane in small]
            m.submodules[name] = mem = memory.Memory(shape=COUNTER_BITS, depth=self.sweep, init=[])
            read, write = mem.read_port(domain="comb"), mem.write_port()
            # The number of the visited node has a copy for each memory: it drives much.
            node = Signal.like(self.node, name=f"{name}_node")
            m.d.sync += node.eq(node + 1)
            base = Signal(COUNTER_BITS, name=f"{name}_base")
            add = Signal(small_bits, name=f"{name}_add")
            m.d.comb += read.addr.eq(node)
            with m.If(active):
                m.d.sync += [base.eq(read.data), add.eq(column(small, node))]
            # Half of the sum a clock.
            half = COUNTER_BITS // 2
            lower = Signal(half + 1, name=f"{name}_lower")
            upper = Signal(half, name=f"{name}_upper")
            with m.If(adding[0]):
                m.d.sync += [lower.eq(base[:half] + add), upper.eq(base[half:])]
            total = Signal(COUNTER_BITS, name=f"{name}_total")
            m.d.comb += [write.addr.eq(target), write.data.eq(total), write.en.eq(writing)]
            with m.If(adding[1]):
                m.d.sync += total.eq(Cat(lower[:half], upper + lower[half]))
            with m.If(self.clear):
                m.d.sync += total.eq(0)
            updated.append((counter, total))
        lag = Signal(self.lag_bits)
        m.d.sync += lag.eq(column(list(self.beyond), target2) - 2)
        updated.append((Counter.LAG_MAX, lag))

        for side in range(2):
            for counter, value in updated:
                m.submodules[f"{counter.name.lower()}_latch{side}"] = mem = memory.Memory(
                    shape=len(value), depth=self.sweep, init=[])
                read, write = mem.read_port(domain="comb"), mem.write_port()
                m.d.comb += [
                    write.addr.eq(target), write.data.eq(value), write.en.eq(copying[side]),
                    read.addr.eq(self.index[side]),
                    self.row[side * len(Counter) + counter].eq(read.data),
                ]
        return m
