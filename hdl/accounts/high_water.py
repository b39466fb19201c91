"""High-water marks: the highest fill level of each FIFO, which shows how near a burst came to a loss."""

from functools import reduce
from operator import and_

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.bit_sliced import counted, late_column, planes

__all__ = ["HighWater", "NodeHighWater"]


class HighWater(wiring.Component):
    """The largest value that a level has had.

    Parameters
    ----------
    bits : width of the level.

    Members
    -------
    clear : zeroes the mark.
    level : the present level.
    high : the largest level, not counting the present clock and the one before.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__({"clear": In(1), "level": In(bits), "high": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        level = Signal(self.bits)
        m.d.sync += level.eq(self.level)
        with m.If(self.clear):
            m.d.sync += [level.eq(0), self.high.eq(0)]
        with m.Elif(level > self.high):
            m.d.sync += self.high.eq(level)
        return m


class NodeHighWater(wiring.Component):
    """The largest number of nibbles that each node FIFO has held.

    Parameters
    ----------
    nodes : number of nodes.
    depth : number of nibbles that a node FIFO holds.

    Members
    -------
    clear : zeroes the marks.
    level : number of nibbles inside each node FIFO, in planes. A nibble that leaves in that clock still counts.
    enters : one more nibble enters, one bit per node.
    node : the node whose mark ``high`` shows, two clocks later.
    high : the mark, not counting the last two clocks.
    """

    def __init__(self, nodes: int, depth: int):
        self.nodes, self.bits = nodes, depth.bit_length()
        super().__init__({
            "clear": In(1), "level": In(nodes).array(self.bits), "enters": In(nodes),
            "node": In(range(max(2, nodes))), "high": Out(self.bits),
        })

    def elaborate(self, platform):
        m = Module()
        # A level grows by one at a time: it equals the mark before it exceeds it.
        mark = planes(self.bits, self.nodes, "mark")
        half = self.bits // 2
        ones = Signal(self.nodes)      # the lower half of the mark is all ones
        record = Signal(self.nodes)
        m.d.comb += record.eq(reduce(and_, (~(a ^ b) for a, b in zip(self.level, mark, strict=True)), self.enters))
        lower = counted(mark[:half], record)
        upper = counted(mark[half:], record & ones)
        with m.If(record.any()):
            m.d.sync += [
                ones.eq(reduce(and_, lower)),
                *(plane.eq(after) for plane, after in zip(mark, (*lower, *upper), strict=True)),
            ]
        with m.If(self.clear):
            m.d.sync += [ones.eq(0), *(plane.eq(0) for plane in mark)]
        m.d.sync += self.high.eq(late_column(m, mark, self.node, "mark"))
        return m
