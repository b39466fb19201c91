"""Stream FIFO on a memory of latency two."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .ram import Ram

__all__ = ["StreamFifo"]


class StreamFifo(wiring.Component):
    """FIFO of exactly ``depth`` items, one in and one out every clock.

    Never drops: when full it is not ready, and the item waits with whoever offers it. The two
    clocks of the memory are hidden by prefetch, so a full FIFO drains without a bubble; an item
    that enters an empty FIFO leaves three clocks later.

    Parameters
    ----------
    shape : of the payload.
    depth : items, a power of two of at least 4 (two may wait in the memory's output registers).
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : streams of ``shape``.
    level : items inside, 0..depth, counting what waits at the output.

    Raises
    ------
    ValueError
        for a depth that is not a power of two or below 4.
    """

    def __init__(self, shape, depth: int, ram: str = "portable"):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"FIFO depth must be a power of two of at least 4, not {depth!r}")
        self.shape, self.depth, self.ram = shape, depth, ram
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        payload = self.i.p
        m.submodules.ram = ram = Ram(len(payload.as_value()) if hasattr(payload, "as_value") else len(payload),
                                     self.depth, self.ram)
        bits = len(ram.w_addr)
        write = Signal(bits)
        read = Signal(bits)
        stored = Signal(bits + 1)  # in the memory, not yet on their way out
        some = Signal()            # stored != 0, kept apart because it starts every read
        latched = Signal()
        ready_out = Signal()
        push = Signal()
        pop = Signal()
        issue = Signal()
        move = Signal()

        # level is exact and depth a power of two: the top bit alone says full.
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            move.eq(latched & (~ready_out | self.o.ready)),
            issue.eq(some & (~latched | move)),
            self.o.valid.eq(ready_out),
            ram.w_en.eq(push), ram.w_addr.eq(write), ram.w_data.eq(payload),
            ram.r_en.eq(issue), ram.r_addr.eq(read), ram.r_next.eq(move),
            self.o.p.eq(ram.r_data),
        ]
        with m.If(push):
            m.d.sync += write.eq(write + 1)
        with m.If(issue):
            m.d.sync += read.eq(read + 1)
        with m.If(push & ~issue):
            m.d.sync += [stored.eq(stored + 1), some.eq(1)]
        with m.Elif(~push & issue):
            m.d.sync += [stored.eq(stored - 1), some.eq(stored != 1)]
        with m.If(push & ~pop):
            m.d.sync += self.level.eq(self.level + 1)
        with m.Elif(~push & pop):
            m.d.sync += self.level.eq(self.level - 1)
        with m.If(issue):
            m.d.sync += latched.eq(1)
        with m.Elif(move):
            m.d.sync += latched.eq(0)
        with m.If(move):
            m.d.sync += ready_out.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += ready_out.eq(0)
        return m
