"""Store port: a node writes an event as a few 32-bit stores; the nibbles are written to the board from here."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layout import PORT_BITS
from .lib.fifo import SmallFifo
from .wishbone import wishbone_signature

__all__ = ["STORE_EVENT_BYTES", "StorePort"]

#: Bytes of an event in its first word, and in each further one.
STORE_EVENT_BYTES = 3, 4
#: Refused events that wait to be reported.
_UNTOLD = 15


class StorePort(wiring.Component):
    """A bus slave at a node, and the node's port.

    An event of n bytes (1 to 15, the first is its id) takes one store if n is at most 3, and one more for each further
    four bytes:

    =======  ======  ===============================================
    word     bits    contents
    =======  ======  ===============================================
    first    3..0    n; 0: no event, the word has no effect
    first    7..4    0
    first    31..8   bytes 0 to 2, the first lowest
    next     31..0   four more bytes, the first lowest
    =======  ======  ===============================================

    A store of a whole word never waits for the nibbles. The event becomes an item of a node in event mode: n, then two
    nibbles per byte, the lower one first, one every ``2 * hold`` clocks. If the FIFO has no room for the whole event
    when its first word comes, all of its words are discarded, and the event is counted in ``refused``. Nothing is
    admitted from then on until the FIFO is half empty. So an item is always whole.

    Parameters
    ----------
    depth : words in the FIFO, a power of two of at least 8.
    hold : clocks from a nibble to the edge of its strobe, and from there to the next nibble.

    Members
    -------
    bus : see :func:`~.wishbone.wishbone_signature`, with one word. A store that does not select all bytes ends with
        ``err``. A store waits only while 15 refused events have not been taken. A load returns the number of free
        words.
    strobe, data : the port; every change of ``strobe`` is active, and data are sampled before it. From flip-flops.
    refused : an event was refused; one per clock.
    """

    def __init__(self, depth: int = 16, hold: int = 1):
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two of at least 8, not {depth!r}")
        if hold < 1:
            raise ValueError(f"hold must be at least 1, not {hold!r}")
        self.depth, self.hold = depth, hold
        super().__init__({
            "bus": In(wishbone_signature(0)), "strobe": Out(1), "data": Out(PORT_BITS),
            "refused": Out(stream.Signature(0)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SmallFifo(32, self.depth)
        pops = Signal()
        m.d.comb += fifo.o.ready.eq(pops)
        self._admit(m, fifo, pops)
        self._write(m, fifo, pops)
        return m

    def _admit(self, m: Module, fifo: SmallFifo, pops: Signal) -> None:
        """Stores: whole events are queued or refused. Room is reserved with the first word."""
        bus, word = self.bus, self.bus.dat_w
        asked, whole, stored = Signal(), Signal(), Signal()
        untold = Signal(range(_UNTOLD + 1))
        more = Signal(2)        # further words of this event
        keeps = Signal()        # it was admitted
        free = Signal(range(self.depth + 1), init=self.depth)
        need, taken = Signal(3), Signal(3)
        closed, first, admits, refuses = (Signal(name=name) for name in ("closed", "first", "admits", "refuses"))
        m.d.comb += [
            asked.eq(bus.cyc & bus.stb), whole.eq(bus.sel.all()), stored.eq(bus.ack & bus.we),
            bus.err.eq(asked & bus.we & ~whole),
            bus.ack.eq(asked & (~bus.we | (whole & (untold != _UNTOLD)))), bus.dat_r.eq(free),
            first.eq(stored & (more == 0) & word[:4].any()), need.eq(word[2:4] + 1),
            admits.eq(first & ~closed & (free >= need)), refuses.eq(first & ~admits), taken.eq(Mux(admits, need, 0)),
            fifo.i.p.eq(word), fifo.i.valid.eq(admits | (stored & (more != 0) & keeps)),
            self.refused.valid.eq(untold != 0),
        ]
        popped = Signal()       # the FIFO counts a word for one more clock
        m.d.sync += [
            popped.eq(pops), free.eq(free - taken + popped),
            untold.eq(untold + refuses - (self.refused.valid & self.refused.ready)),
            closed.eq((closed | refuses) & ((free < self.depth // 2) | refuses)),
        ]
        with m.If(first):
            m.d.sync += [more.eq(word[2:4]), keeps.eq(admits)]
        with m.Elif(stored & (more != 0)):
            m.d.sync += more.eq(more - 1)

    def _write(self, m: Module, fifo: SmallFifo, pops: Signal) -> None:
        """Nibbles of the events in the FIFO."""
        left, here = Signal(5), Signal(4)       # nibbles of the event, and of the word, after this one
        rest = Signal(32)
        since = Signal(range(self.hold))
        turns, final = Signal(), Signal()
        m.d.comb += [turns.eq(since == self.hold - 1), final.eq(left == 0)]
        with m.FSM() as fsm:
            with m.State("NEXT"):
                with m.If(fifo.o.valid):
                    m.d.comb += pops.eq(1)
                    with m.If(final):
                        m.d.sync += [
                            self.data.eq(fifo.o.p[:4]), rest.eq(fifo.o.p[8:]), left.eq(Cat(Const(0, 1), fifo.o.p[:4])),
                            here.eq(2 * STORE_EVENT_BYTES[0]),
                        ]
                    with m.Else():
                        m.d.sync += [
                            self.data.eq(fifo.o.p[:4]), rest.eq(fifo.o.p[4:]), left.eq(left - 1),
                            here.eq(2 * STORE_EVENT_BYTES[1] - 1),
                        ]
                    m.next = "DATA"
            with m.State("DATA"):
                with m.If(turns):
                    m.d.sync += self.strobe.eq(~self.strobe)
                    m.next = "STROBE"
            with m.State("STROBE"):
                with m.If(turns):
                    m.next = "NEXT"
                    with m.If(~final & (here != 0)):
                        m.d.sync += [
                            self.data.eq(rest[:4]), rest.eq(rest[4:]), left.eq(left - 1), here.eq(here - 1)]
                        m.next = "DATA"
        m.d.sync += since.eq(Mux(turns | fsm.ongoing("NEXT"), 0, since + 1))
