"""Asynchronous FIFO between unrelated clock domains."""

from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AsyncFifo"]


class AsyncFifo(wiring.Component):
    """FIFO from domain ``sync`` to domain ``link``, with pointers in Gray code.

    Its flip-flops are set at power-up and never reset. If only one side of a FIFO is reset, the FIFO loses its
    contents or delivers items that never entered (Cummings, *Simulation and Synthesis Techniques for
    Asynchronous FIFO Design*, SNUG 2002, section 5). After a reset of either side, logic there therefore begins with
    the items that are still inside.

    Parameters
    ----------
    shape : shape of the payload.
    depth : number of items, a power of two of at least 8; with 16, one passes in every clock of the slower side.

    Members
    -------
    i : stream of ``shape``, in ``sync``.
    o : the same stream, in ``link``.

    Raises
    ------
    ValueError
        for any other depth.
    """

    def __init__(self, shape, depth: int = 16):
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two of at least 8, not {depth!r}")
        self.depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        m.domains.before = before = ClockDomain(local=True, reset_less=True)
        m.domains.behind = behind = ClockDomain(local=True, reset_less=True)
        item, came = (getattr(p, "as_value", lambda p=p: p)() for p in (self.i.p, self.o.p))
        m.submodules.fifo = queue = fifo.AsyncFIFO(
            width=len(item), depth=self.depth, w_domain="before", r_domain="behind")
        m.d.comb += [
            before.clk.eq(ClockSignal("sync")), behind.clk.eq(ClockSignal("link")),
            queue.w_data.eq(item), queue.w_en.eq(self.i.valid), self.i.ready.eq(queue.w_rdy),
            came.eq(queue.r_data), self.o.valid.eq(queue.r_rdy), queue.r_en.eq(self.o.ready),
        ]
        return m
