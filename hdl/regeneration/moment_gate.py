"""Gate and FIFO of a regeneration board: the only place on it where items are refused."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_LAG_BITS, LINK_MOMENTS, LINK_NODES, PORT_BITS
from ..lib.fifo import StreamFifo
from .link_code import MOMENT

__all__ = ["MomentGate"]


class MomentGate(wiring.Component):
    """Queues the nibbles of each clock as one moment.

    An item is admitted if the gate is open, the FIFO had room for two moments one clock ago, and its node is not held.
    A further nibble of an admitted item may find no room: its item is then cut short, with all others that are open.
    The gate closes with the first nibble that it does not take, for all nodes, and reopens when the FIFO is at most
    half full, so that an outage is one and not a thousand.

    Each node has a limit, so that one whose strobe floats does not fill the FIFO of all: a node that takes half of the
    FIFO is *held* and begins no item, from two clocks later on. With ``framed`` it is held if it takes an eighth,
    because the rest of an admitted item, of up to 30 nibbles, is not held.

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.
    depth : moments in the FIFO, a power of two of at least 8.
    limited : nodes have limits.

    Members
    -------
    start, nibble : items are offered, and the nibbles, one bit and one nibble per node.
    admit, refused : combinational with ``start``; exactly one of them for every item.
    further : further nibbles of admitted items, one bit per node; not together with ``start`` of that node.
    framed : items may have several nibbles.
    now : number of the clock.
    o : stream of moments, in order; ``mask`` is never 0.
    tears : combinational: nothing of this clock is queued although something came of a node that is not held.
    outage : one clock after the first such clock, while the gate is closed: no further nibble of an open item may come
        from the next clock on.
    """

    def __init__(self, ram: str = "portable", depth: int = LINK_MOMENTS, limited: bool = True):
        self.ram, self.depth, self.limited = ram, depth, limited
        super().__init__({
            "start": In(LINK_NODES), "further": In(LINK_NODES), "nibble": In(PORT_BITS * LINK_NODES),
            "framed": In(1), "now": In(LINK_LAG_BITS), "o": Out(stream.Signature(MOMENT)),
            "admit": Out(LINK_NODES), "refused": Out(LINK_NODES), "tears": Out(1), "outage": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = StreamFifo(MOMENT, self.depth, self.ram)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        closed, half, barred, offered = Signal(), Signal(init=1), Signal(), Signal()
        held, taken, leaves = Signal(LINK_NODES), Signal(LINK_NODES), Signal(LINK_NODES)
        m.d.comb += [
            taken.eq((self.start & ~held) | self.further), offered.eq(taken.any()),
            self.refused.eq(self.start & (held | barred.replicate(LINK_NODES))),
            self.admit.eq(self.start & ~(held | barred.replicate(LINK_NODES))), self.tears.eq(offered & barred),
            fifo.i.valid.eq(offered & ~barred), fifo.i.p.mask.eq(taken),
            fifo.i.p.more.eq(self.further), fifo.i.p.nibbles.eq(self.nibble), fifo.i.p.stamp.eq(self.now),
            leaves.eq(Mux(fifo.o.valid & fifo.o.ready, fifo.o.p.mask, 0)),
        ]
        # One flip-flop holds whether there is room, because the path from the nodes to the memory is the longest one.
        closes = Mux(closed, ~half, self.tears)
        m.d.sync += [
            half.eq(fifo.level <= self.depth // 2), closed.eq(closes),
            barred.eq(closes | (fifo.level >= self.depth - 1)), self.outage.eq(self.tears & ~closed),
        ]
        for n in range(LINK_NODES if self.limited else 0):
            # Moments of this node in the FIFO.
            own = Signal(range(self.depth + 1), name=f"own{n}")
            comes = taken[n] & ~barred
            m.d.sync += held[n].eq(own >= Mux(self.framed, self.depth // 8, self.depth // 2))
            with m.If(comes ^ leaves[n]):
                m.d.sync += own.eq(own + Mux(comes, 1, -1))
        return m
