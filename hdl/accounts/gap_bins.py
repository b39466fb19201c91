"""Gaps: the time from each item to the next one of its node, as a power of two."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["GAP_BINS", "Gaps"]

#: Bins of a node: one per bit of a time stamp.
GAP_BINS = 64
_HALF = GAP_BINS // 2


class Gaps(wiring.Component):
    """Measures how long after the previous item of the same node each item came.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    clear : forgets all items.
    item, node, time : an item, at most one per clock, those of one node in order.
    valid, of, bin : seven clocks later, unless the item is the first of its node. ``of``: its node. ``bin``: the
        position of the highest bit that is set in the difference of the two stamps, which is at least ``2**bin``
        windows and less than twice that. (0 for a difference of 0, which two items of a node never have.)
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        node_bits = max(1, (nodes - 1).bit_length())
        super().__init__({
            "clear": In(1), "item": In(1), "node": In(node_bits), "time": In(64),
            "valid": Out(1), "of": Out(node_bits), "bin": Out(range(GAP_BINS)),
        })

    def elaborate(self, platform):
        m = Module()
        # The last stamp of every node, including an item of one clock ago.
        m.submodules.last = last = memory.Memory(shape=64, depth=max(2, self.nodes), init=[])
        write, read = last.write_port(), last.read_port(domain="comb")
        seen = Signal(1 << len(self.node))
        node = [Signal.like(self.node, name=f"node{k}") for k in range(6)]
        valid = Signal(7)
        time = [Signal(64, name=f"time{k}") for k in range(2)]
        before = Signal(64)
        # A stage loads only what is valid.
        with m.If(self.item):
            m.d.sync += [time[0].eq(self.time), node[0].eq(self.node)]
        with m.If(valid[0]):
            m.d.sync += [time[1].eq(time[0]), before.eq(read.data)]
        for k, (old, new) in enumerate(pairwise((*node, self.of))):
            with m.If(valid[k]):
                m.d.sync += new.eq(old)
        m.d.sync += [
            valid.eq(Mux(self.clear, 0, Cat(self.item, valid[0] & seen.bit_select(node[0], 1), valid[1:]))),
        ]
        m.d.comb += [
            self.valid.eq(valid[6]), read.addr.eq(node[0]), write.addr.eq(node[0]), write.data.eq(time[0]),
            write.en.eq(valid[0]),
        ]
        with m.If(self.clear):
            m.d.sync += seen.eq(0)
        with m.Elif(valid[0]):
            m.d.sync += seen.bit_select(node[0], 1).eq(1)

        # The difference, in two halves, one per clock.
        low = [Signal(_HALF, name=f"low{k}") for k in range(2)]
        borrow = Signal()
        upper = [Signal(_HALF, name=f"upper{k}") for k in range(2)]
        high = Signal(_HALF)
        with m.If(valid[1]):
            m.d.sync += [
                Cat(low[0], borrow).eq(time[1][:_HALF] - before[:_HALF]),
                upper[0].eq(time[1][_HALF:]), upper[1].eq(before[_HALF:]),
            ]
        with m.If(valid[2]):
            m.d.sync += [low[1].eq(low[0]), high.eq(upper[0] - upper[1] - borrow)]

        # Its highest bit: within four, among four of those, among four of these.
        some = Cat(low[1], high)
        found = []     # pairs: is any set, and the position of the highest
        for k in range(GAP_BINS):
            found.append((some[k], None))
        for level in range(3):
            groups = []
            for k in range(0, len(found), 4):
                a, b, c, d = found[k:k + 4]
                any_set = Signal(name=f"any{level}_{k // 4}")
                top = Signal(2 * level + 2, name=f"top{level}_{k // 4}")
                with m.If(valid[3 + level]):
                    m.d.sync += [
                        any_set.eq(a[0] | b[0] | c[0] | d[0]),
                        top[-2:].eq(Mux(d[0], 3, Mux(c[0], 2, Mux(b[0], 1, 0)))),
                    ]
                    if level:
                        chosen = Mux(d[0], d[1], Mux(c[0], c[1], Mux(b[0], b[1], a[1])))
                        m.d.sync += top[:-2].eq(chosen)
                groups.append((any_set, top))
            found = groups
        m.d.comb += self.bin.eq(found[0][1])
        return m
