"""Node FIFOs: 64 nibbles a node (section 3.2.1)."""

from functools import reduce
from operator import or_

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .layout import PORT_BITS
from .vertical import planes, stepped

__all__ = ["NodeFifos"]


class NodeFifos(wiring.Component):
    """One FIFO of exactly ``depth`` nibbles a node, in distributed memory.

    When one is full it says so; the gate then refuses, so a push into a full FIFO does not happen
    (proved). The frame builder pops only what a strobe vector has promised, so neither does a pop
    from an empty one (proved).

    Parameters
    ----------
    nodes : number of FIFOs.
    depth : nibbles, a power of two of at least 4.

    Members
    -------
    push, data : a bit and a nibble a node; the nibble enters at this edge.
    pop : a bit a node; the oldest nibble leaves at this edge ...
    nibble : ... and stands here in the next clock. A nibble can be popped from the clock after its
        push on.
    full, half : FIFOs that are full; that are at most half full.

    Raises
    ------
    ValueError
        for a depth that is not a power of two or below 4.
    """

    def __init__(self, nodes: int, depth: int):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"node FIFO depth must be a power of two of at least 4, not {depth!r}")
        self.nodes, self.depth = nodes, depth
        super().__init__({
            "push": In(nodes), "data": In(PORT_BITS * nodes),
            "pop": In(nodes), "nibble": Out(PORT_BITS * nodes),
            "full": Out(nodes), "half": Out(nodes),
        })

    def elaborate(self, platform):
        m = Module()
        level = planes(self.depth.bit_length(), self.nodes, "level")
        m.d.sync += [plane.eq(new) for plane, new in zip(level, stepped(level, self.push, self.pop), strict=True)]
        # The levels are exact and the depth is a power of two: the top plane alone says full.
        *lower, quarter_up, full = level
        m.d.comb += [
            self.full.eq(full),
            self.half.eq(~full & ~(quarter_up & reduce(or_, lower, Const(0, self.nodes)))),
        ]
        for i in range(self.nodes):
            m.submodules[f"memory{i}"] = mem = memory.Memory(shape=PORT_BITS, depth=self.depth, init=[])
            write, read = mem.write_port(), mem.read_port(domain="comb")
            head = Signal(PORT_BITS, name=f"head{i}", reset_less=True)
            m.d.comb += [
                write.en.eq(self.push[i]), write.data.eq(self.data.word_select(i, PORT_BITS)),
                self.nibble.word_select(i, PORT_BITS).eq(head),
            ]
            with m.If(self.push[i]):
                m.d.sync += write.addr.eq(write.addr + 1)
            with m.If(self.pop[i]):
                m.d.sync += [head.eq(read.data), read.addr.eq(read.addr + 1)]
        return m
