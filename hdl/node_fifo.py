"""Node FIFOs: 64 nibbles a node (section 3.2.1)."""

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .layout import PORT_BITS
from .vertical import planes, stepped

__all__ = ["NodeFifos"]


class NodeFifos(wiring.Component):
    """One FIFO of exactly ``depth`` nibbles a node, in distributed memory.

    When one is full it says so; the gate then refuses, so an admission to a full FIFO does not happen
    (proved). The frame builder pops only what a strobe vector has promised, so neither does a pop
    from an empty one (proved).

    Parameters
    ----------
    nodes : number of FIFOs.
    depth : nibbles, a power of two of at least 4.

    Members
    -------
    admit, data : a bit and a nibble a node; the nibble is taken at this edge and stands in the
        FIFO one clock later.
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
            "admit": In(nodes), "data": In(PORT_BITS * nodes),
            "pop": In(nodes), "nibble": Out(PORT_BITS * nodes),
            "full": Out(nodes), "half": Out(nodes),
        })

    def elaborate(self, platform):
        m = Module()
        # The level takes in what was admitted a clock ago. "Full" may not be late: it is level and
        # newcomer together, looked ahead from registers, with the admission last.
        push = Signal(self.nodes)
        data = Signal.like(self.data)
        m.d.sync += [push.eq(self.admit), data.eq(self.data)]
        # Its top bit, which means full, stands with the levels near the top.
        level = planes(self.depth.bit_length() - 1, self.nodes, "level")
        m.d.sync += [plane.eq(new) for plane, new in zip(level, stepped(level, push, self.pop), strict=True)]

        up = push & ~self.pop
        down = self.pop & ~push
        still = ~up & ~down
        # Levels near the top have a bit each, kept along with the number.
        top = self.depth
        at = {n: Signal(self.nodes, name=f"at{n}") for n in (top - 2, top - 1, top)}
        below = reduce(and_, (plane if (top - 3) >> b & 1 else ~plane for b, plane in enumerate(level)))
        becomes_full = (at[top] & still) | (at[top - 1] & up)
        becomes_one_short = (at[top - 1] & still) | (at[top - 2] & up) | (at[top] & down)
        m.d.sync += [
            at[top].eq(becomes_full), at[top - 1].eq(becomes_one_short),
            at[top - 2].eq((at[top - 2] & still) | (below & up) | (at[top - 1] & down)),
            self.full.eq(becomes_full | (becomes_one_short & self.admit)),
        ]
        *lower, upper = level
        m.d.comb += self.half.eq(~at[top] & ~(upper & reduce(or_, lower, Const(0, self.nodes))))
        for i in range(self.nodes):
            m.submodules[f"memory{i}"] = mem = memory.Memory(shape=PORT_BITS, depth=self.depth, init=[])
            write, read = mem.write_port(), mem.read_port(domain="comb")
            head = Signal(PORT_BITS, name=f"head{i}", reset_less=True)
            m.d.comb += [
                write.en.eq(push[i]), write.data.eq(data.word_select(i, PORT_BITS)),
                self.nibble.word_select(i, PORT_BITS).eq(head),
            ]
            with m.If(push[i]):
                m.d.sync += write.addr.eq(write.addr + 1)
            with m.If(self.pop[i]):
                m.d.sync += [head.eq(read.data), read.addr.eq(read.addr + 1)]
        return m
