"""Stream FIFOs: a small one in distributed memory and a deep one in block memory."""

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .ram import Ram, at_once, style
from .skid import Skid

__all__ = ["SmallFifo", "StreamFifo"]


def _signature(shape, depth):
    if depth < 4 or depth & (depth - 1):
        raise ValueError(f"FIFO depth must be a power of two of at least 4, not {depth!r}")
    return {
        "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
        "level": Out(range(depth + 1)),
    }


class SmallFifo(wiring.Component):
    """FIFO of exactly ``depth`` items in distributed memory; accepts and delivers one item per clock.

    Never drops an item: when full it is not ready. An item is at the output in the clock after it entered.

    Parameters
    ----------
    shape : shape of the payload.
    depth : number of items, a power of two of at least 4.
    ram : see :func:`~.ram.at_once`.

    Members
    -------
    i, o : streams of ``shape``.
    level : items inside, 0..depth; an item that leaves is counted for one more clock.

    Raises
    ------
    ValueError
        if the depth is not a power of two or is below 4.
    """

    def __init__(self, shape, depth: int, ram: str = "portable"):
        super().__init__(_signature(shape, depth))
        self.shape = shape
        self.depth = depth
        self.ram = ram

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = mem = memory.Memory(
            shape=self.shape, depth=self.depth, init=[], attrs=style(self.ram))
        write = mem.write_port()
        read = mem.read_port(domain=at_once(m, self.ram))
        push = Signal()
        pop = Signal()
        left = Signal()    # an item left a clock ago
        following = Signal(read.addr.shape(), init=1)
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready),
            write.en.eq(push), write.data.eq(self.i.p), self.o.p.eq(read.data),
        ]
        # The consumer's ``ready`` arrives late in the clock: everything else is computed in parallel with it.
        m.d.sync += [
            left.eq(pop),
            self.o.valid.eq(push | (self.o.valid & ~(self.o.ready & (following == write.addr)))),
        ]
        with m.If(push ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        with m.If(push):
            m.d.sync += write.addr.eq(write.addr + 1)
        with m.If(pop):
            m.d.sync += [read.addr.eq(following), following.eq(following + 1)]
        return m


class StreamFifo(wiring.Component):
    """FIFO of exactly ``depth`` items in memory with a latency of two; accepts and delivers one item per clock.

    Never drops an item: when full it is not ready, and the producer holds the item. The two registers after the
    memory are the output stages of the FIFO: each of them accepts the next item when it is empty or when it passes
    its own on. An item that enters an empty FIFO is at the output three clocks later. On an iCE40 the memory's latch
    is the only register, and the item is at the output two clocks later.

    Parameters
    ----------
    shape : shape of the payload.
    depth : number of items, a power of two of at least 4.
    ram : kind of memory, see :class:`~.ram.Ram`.
    skid : adds a row of flip-flops and a skid buffer after the registers. Block RAMs are far away: the consumer's
        ``ready`` does not reach their enables, and nothing but flip-flops follows their outputs. An item needs one
        clock more.
    held : the consumer keeps an item that it has taken, which counts as one inside until the consumer is done with it.

    Members
    -------
    i, o : streams of ``shape``.
    level : items inside, 0..depth; an item that leaves is counted for one more clock.
    done : only with ``held``: the consumer is done with an item.

    Raises
    ------
    ValueError
        if the depth is not a power of two or is below 4.
    """

    def __init__(self, shape, depth: int, ram: str = "portable", skid: bool = False, held: bool = False):
        super().__init__(_signature(shape, depth) | ({"done": In(1)} if held else {}))
        self.shape = shape
        self.depth = depth
        self.ram = ram
        self.skid = skid
        self.held = held

    def elaborate(self, platform):
        m = Module()
        registered = self.ram != "ice40"
        m.submodules.ram = ram = Ram(Shape.cast(self.shape).width, self.depth, self.ram, registered)
        end = stream.Signature(self.shape).create()    # of the memory and its registers
        m.d.comb += Value.cast(end.p).eq(ram.r_data)
        if self.skid:
            m.submodules.skid = skid = Skid(self.shape)
            wiring.connect(m, skid.o, wiring.flipped(self.o))
            head = Signal(self.shape, reset_less=True)
            m.d.comb += [end.ready.eq(~skid.i.valid | skid.i.ready), skid.i.p.eq(head)]
            with m.If(end.ready):
                m.d.sync += skid.i.valid.eq(end.valid)
            with m.If(end.ready & end.valid):
                m.d.sync += head.eq(end.p)
        else:
            wiring.connect(m, end, wiring.flipped(self.o))

        push = Signal()
        left = Signal()       # an item left a clock ago
        some = Signal()       # the memory holds items that have not been read
        issue = Signal()
        latched = Signal()    # an item has been read ...
        go = Signal()         # ... and goes to the output
        following = Signal(range(self.depth), init=1)
        # level is exact and depth is a power of two: the top bit alone means full.
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            push.eq(self.i.valid & self.i.ready),
            go.eq(~end.valid | end.ready if registered else end.ready), issue.eq(some & (~latched | go)),
            ram.w_en.eq(push), ram.w_data.eq(self.i.p),
            ram.r_en.eq(issue), ram.r_next.eq(go),
        ]
        # The consumer's ``ready`` arrives late in the clock: everything else is computed in parallel with it.
        m.d.sync += [
            left.eq(self.done if self.held else self.o.valid & self.o.ready), latched.eq(issue | (latched & ~go)),
            some.eq(push | (some & ~(issue & (following == ram.w_addr)))),
        ]
        if not registered:
            m.d.comb += end.valid.eq(latched)
        else:
            with m.If(go):
                m.d.sync += end.valid.eq(latched)
        with m.If(push):
            m.d.sync += ram.w_addr.eq(ram.w_addr + 1)
        with m.If(issue):
            m.d.sync += [ram.r_addr.eq(following), following.eq(following + 1)]
        with m.If(push ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        return m
