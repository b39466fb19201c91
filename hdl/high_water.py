"""High-water marks: the most that FIFOs have held, which says how near a burst came to a loss."""

from functools import reduce
from operator import and_

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .vertical import counted, late_column, planes, stepped

__all__ = ["HighWater", "NodeHighWater"]


class HighWater(wiring.Component):
    """The largest value that a level has had.

    Parameters
    ----------
    bits : of the level.

    Members
    -------
    clear : it is zeroed.
    level : now.
    high : the largest one, but for that of the present clock and the one before.
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
    """The most nibbles that each node FIFO has held.

    Parameters
    ----------
    nodes : number of nodes.
    depth : nibbles a node FIFO holds.

    Members
    -------
    clear : the FIFOs are empty, and the marks are zeroed.
    enters, leaves : a nibble enters the FIFO, or leaves it, a bit a node.
    node : whose mark ``high`` shows, two clocks later.
    high : the mark, but for what happened in the last four clocks.
    """

    def __init__(self, nodes: int, depth: int):
        self.nodes, self.bits = nodes, (depth + 1).bit_length()
        super().__init__({
            "clear": In(1), "enters": In(nodes), "leaves": In(nodes),
            "node": In(range(max(2, nodes))), "high": Out(self.bits),
        })

    def elaborate(self, platform):
        m = Module()
        level = planes(self.bits, self.nodes, "level")
        # One more than the mark: a level grows by one at a time, so it must meet that first.
        beyond = [Signal(self.nodes, name=f"beyond{b}") for b in range(self.bits)]
        enters = Signal(self.nodes)
        leaves = Signal(self.nodes)
        record = Signal(self.nodes)
        m.d.comb += record.eq(reduce(and_, (~(a ^ b) for a, b in zip(level, beyond, strict=True))))
        m.d.sync += [
            enters.eq(self.enters), leaves.eq(self.leaves),
            *(plane.eq(after) for plane, after in zip(level, stepped(level, enters, leaves), strict=True)),
            *(plane.eq(after) for plane, after in zip(beyond, counted(beyond, record), strict=True)),
        ]
        with m.If(self.clear):
            m.d.sync += [
                enters.eq(0), leaves.eq(0), *(plane.eq(0) for plane in level),
                *(plane.eq(-1 if b == 0 else 0) for b, plane in enumerate(beyond)),
            ]
        m.d.sync += self.high.eq(late_column(m, beyond, self.node, "beyond") - 1)
        return m
