"""Node FIFOs: 64 nibbles per node by default (section 3.2.1)."""

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import EVENT_SIZE_BITS, PORT_BITS
from ..lib.bit_sliced import planes, stepped
from ..lib.lfsr import lfsr_next
from ..lib.ram import at_once, style

__all__ = ["NodeFifos"]


class NodeFifos(wiring.Component):
    """One FIFO of exactly ``depth`` nibbles per node, in distributed memory.

    A full FIFO reports that; the gate then refuses, so no nibble is ever admitted to a full FIFO
    (proved). The frame builder pops only nibbles that a strobe vector has announced, so no pop
    ever meets an empty one (proved).

    Parameters
    ----------
    nodes : number of FIFOs.
    depth : number of nibbles, a power of two of at least 4.
    framed : items may be more than one nibble; otherwise the members that are marked so do not exist.
    port_bits : data bits of a port; with 8, everything said of nibbles applies to bytes.
    ram : see :func:`~.ram.at_once`.

    Members
    -------
    admit, data : one bit and one nibble per node; the nibble is accepted at this edge and is in the
        FIFO one clock later.
    pop : one bit per node; the oldest nibble leaves at this edge ...
    nibble : ... and is valid here in the next clock. A nibble can be popped from the clock after its
        push on.
    full, half : FIFOs that are full; that are at most half full, less than half with ``items``.
    items : (framed) nodes whose items are more than one nibble.
    cut : (framed) with ``admit``: the nibble is marked, because it ends an item that was cut short.
    fresh : (framed) with ``pop``: the first nibble of an item is popped. Until then a FIFO whose item was cut
        short returns the mark again and again, and nothing leaves.
    mark : (framed) with ``nibble``: it is marked.
    level, enters : (framed) planes of the number of nibbles inside, and nibbles that enter: they are inside one clock
        later.
    need, misfit : (framed) one clock later, ``misfit`` reports that an item of one nibble and twice ``need``
        does not fit, for ``need`` above 0; of one byte and ``need`` with 8-bit ports. Two nibbles are reserved
        for those on their way.

    Raises
    ------
    ValueError
        if the depth is not a power of two or is below 4.
    """

    def __init__(self, nodes: int, depth: int, framed: bool = False, port_bits: int = PORT_BITS,
                 ram: str = "portable"):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"node FIFO depth must be a power of two of at least 4, not {depth!r}")
        self.nodes, self.depth, self.framed, self.port_bits, self.ram = nodes, depth, framed, port_bits, ram
        super().__init__({
            "admit": In(nodes), "data": In(port_bits * nodes),
            "pop": In(nodes), "nibble": Out(port_bits * nodes),
            "full": Out(nodes), "half": Out(nodes),
        } | ({
            "items": In(nodes), "cut": In(nodes), "fresh": In(1), "mark": Out(nodes),
            "need": In(nodes).array(EVENT_SIZE_BITS), "misfit": Out(nodes),
            "level": Out(nodes).array(depth.bit_length()), "enters": Out(nodes),
        } if framed else {}))

    def elaborate(self, platform):
        m = Module()
        # The level includes the nibble that was admitted one clock ago. "Full" may not be late: it is computed
        # from level and newcomer together, one clock ahead, from registers, with the admission last.
        push = Signal(self.nodes)
        data = Signal.like(self.data, reset_less=True)
        m.d.sync += [push.eq(self.admit), data.eq(self.data)]
        pop = Signal(self.nodes)
        if self.framed:
            m.d.comb += pop.eq(self.pop & ~(self.mark & ~self.fresh.replicate(self.nodes)))
        else:
            m.d.comb += pop.eq(self.pop)
        # Its top bit, which means full, is kept with the levels near the top.
        level = planes(self.depth.bit_length() - 1, self.nodes, "level")
        with m.If((push ^ pop).any()):
            m.d.sync += [plane.eq(new) for plane, new in zip(level, stepped(level, push, pop), strict=True)]

        up = push & ~pop
        down = pop & ~push
        still = ~up & ~down
        # Levels near the top have one bit each, kept in addition to the number.
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
        some = reduce(or_, lower, Const(0, self.nodes))
        width = port_bits = self.port_bits
        if self.framed:
            some = some | self.items
            width += 1
            marked = Signal(self.nodes)
            asks = reduce(or_, self.need)
            if port_bits == 8:
                # One byte of an item is one of our entries.
                beyond = Cat((Cat(p[i] for p in level) + Cat(n[i] for n in self.need) >= top - 2)
                             for i in range(self.nodes))
            else:
                # Half the level and `need` together are at least one short of half the depth: with both cut to
                # `need`'s bits, level >= ~need, bit by bit from below; bits of the level above those must be ones.
                beyond = Const(-1, self.nodes)
                for half_level, need in zip(level[1:], self.need, strict=False):
                    beyond = (half_level & need) | ((half_level | need) & beyond)
                for half_level in level[1 + len(self.need):]:
                    beyond = beyond & half_level
                for need in self.need[len(level) - 1:]:
                    beyond = beyond | need
            m.d.sync += [marked.eq(self.cut), self.misfit.eq(asks & (at[top] | beyond))]
            m.d.comb += [
                self.enters.eq(push), *(mine.eq(its) for mine, its in zip(self.level, (*level, at[top]), strict=True))]
        m.d.comb += self.half.eq(~at[top] & ~(upper & some))
        reads = at_once(m, self.ram)
        heads = Signal(port_bits * self.nodes, reset_less=True)
        marks = Signal(self.nodes, reset_less=True)
        m.d.comb += self.nibble.eq(heads)
        if self.framed:
            m.d.comb += self.mark.eq(marks)
        for i in range(self.nodes):
            m.submodules[f"memory{i}"] = mem = memory.Memory(
                shape=width, depth=self.depth, init=[], attrs=style(self.ram))
            write, read = mem.write_port(), mem.read_port(domain=reads)
            m.d.comb += [write.en.eq(push[i]), write.data.eq(data.word_select(i, port_bits))]
            if self.framed:
                m.d.comb += write.data[port_bits].eq(marked[i])
            with m.If(push[i]):
                m.d.sync += write.addr.eq(lfsr_next(write.addr))
            with m.If(pop[i]):
                m.d.sync += [
                    Cat(heads.word_select(i, port_bits), marks[i]).eq(read.data), read.addr.eq(lfsr_next(read.addr))]
        return m
