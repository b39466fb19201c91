"""Stream FIFOs: a small one in distributed memory, and a deep one in block memory behind it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .ram import Ram

__all__ = ["SmallFifo", "StreamFifo"]


def _signature(shape, depth):
    if depth < 4 or depth & (depth - 1):
        raise ValueError(f"FIFO depth must be a power of two of at least 4, not {depth!r}")
    return {
        "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
        "level": Out(range(depth + 1)),
    }


class SmallFifo(wiring.Component):
    """FIFO of exactly ``depth`` items in distributed memory, one in and one out every clock.

    Never drops: when full it is not ready. An item is at the output in the clock after it entered.

    Parameters
    ----------
    shape : of the payload.
    depth : items, a power of two of at least 4.

    Members
    -------
    i, o : streams of ``shape``.
    level : items inside, 0..depth; one that leaves is counted for one clock more.

    Raises
    ------
    ValueError
        for a depth that is not a power of two or below 4.
    """

    def __init__(self, shape, depth: int):
        super().__init__(_signature(shape, depth))
        self.shape = shape
        self.depth = depth

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(shape=self.shape, depth=self.depth, init=[])
        write = mem.write_port()
        read = mem.read_port(domain="comb")
        push = Signal()
        pop = Signal()
        left = Signal()    # an item left a clock ago
        following = Signal(read.addr.shape(), init=1)
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready),
            write.en.eq(push), write.data.eq(self.i.p), self.o.p.eq(read.data),
        ]
        # The consumer's word comes late in the clock: the rest is worked out beside it.
        m.d.sync += [
            left.eq(pop),
            self.o.valid.eq(push | (self.o.valid & ~(self.o.ready & (following == write.addr)))),
        ]
        with m.If(push):
            m.d.sync += write.addr.eq(write.addr + 1)
        with m.If(pop):
            m.d.sync += [read.addr.eq(following), following.eq(following + 1)]
        with m.If(push ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        return m


class StreamFifo(wiring.Component):
    """FIFO of exactly ``depth`` items in memory of latency two, one in and one out every clock.

    Never drops: when full it is not ready, and the item waits with whoever offers it. Items are
    read ahead into a :class:`SmallFifo`, so the memory's clocks are hidden, and what the consumer
    does reaches only the small one: reading the memory depends on nothing but registers. An item
    that enters an empty FIFO is at the output four clocks later.

    Parameters
    ----------
    shape : of the payload.
    depth : items, a power of two of at least 4.
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : streams of ``shape``.
    level : items inside, 0..depth; one that leaves is counted for one clock more.

    Raises
    ------
    ValueError
        for a depth that is not a power of two or below 4.
    """

    #: Items read ahead. Four are on their way or just gone when one leaves every clock.
    AHEAD = 8

    def __init__(self, shape, depth: int, ram: str = "portable"):
        super().__init__(_signature(shape, depth))
        self.shape = shape
        self.depth = depth
        self.ram = ram

    def elaborate(self, platform):
        m = Module()
        m.submodules.landing = landing = SmallFifo(self.shape, self.AHEAD)
        payload = landing.i.p.as_value() if hasattr(landing.i.p, "as_value") else landing.i.p
        m.submodules.ram = ram = Ram(len(payload), self.depth, self.ram)
        wiring.connect(m, landing.o, wiring.flipped(self.o))

        push = Signal()
        left = Signal()    # an item left a clock ago
        issue = Signal()
        stored = Signal(range(self.depth + 1))      # in the memory, not yet on their way
        some = Signal()                             # stored != 0
        ahead = Signal(range(self.AHEAD + 1))       # on their way, landed, or just left
        under_way = Signal(2)
        # level is exact and depth a power of two: the top bit alone says full.
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            push.eq(self.i.valid & self.i.ready),
            issue.eq(some & ~ahead[-1]),
            ram.w_en.eq(push), ram.w_data.eq(self.i.p),
            ram.r_en.eq(issue), ram.r_next.eq(1),
            landing.i.valid.eq(under_way[1]), payload.eq(ram.r_data),
        ]
        m.d.sync += [left.eq(self.o.valid & self.o.ready), under_way.eq((under_way << 1) | issue)]
        with m.If(push):
            m.d.sync += ram.w_addr.eq(ram.w_addr + 1)
        with m.If(issue):
            m.d.sync += ram.r_addr.eq(ram.r_addr + 1)
        with m.If(push ^ issue):
            m.d.sync += [stored.eq(stored + Mux(issue, -1, 1)), some.eq(push | (stored != 1))]
        with m.If(issue ^ left):
            m.d.sync += ahead.eq(ahead + Mux(left, -1, 1))
        with m.If(push ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        return m
