"""On-chip node port: a register on the bus of a soft core inside the board's own FPGA."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layout import PORT_BITS
from .wishbone import wishbone_signature

__all__ = ["OnchipPort", "STORE_NIBBLE", "STORE_WORD"]

#: Addresses, in words.
STORE_NIBBLE, STORE_WORD = 0, 1


class OnchipPort(wiring.Component):
    """Each store writes one nibble with its strobe, or a whole word of them.

    It is in the capture clock domain, and takes the place of a port's pads. The same flip-flops as after the pads
    follow it. Nothing is asynchronous to them here, so they synchronize nothing, but every node's events take equally
    long, and their times are comparable. The node's settings are the defaults: rising edge, sample point before.

    =====  ==========================================================================================
    word   store
    =====  ==========================================================================================
    0      one write of the low bits; the lowest byte must be selected, so both ``sb`` and ``sw`` work
    1      the whole word in writes of ``port_bits``, the lowest first; all bytes must be selected
    =====  ==========================================================================================

    An invalid store ends with ``err``, and nothing is written. A store that comes while the last one is still being
    written out waits for it. A load returns 1 when everything has been written out, else 0.

    Parameters
    ----------
    port_bits : data bits of the board's ports.
    hold : number of clocks for which each level of the strobe lasts: 1, or the number that the glitch filter requires
        if that is used. A write takes twice as long.

    Members
    -------
    bus : see :func:`~.wishbone.wishbone_signature`.
    strobe, data : to the board's inputs of that node; from flip-flops.

    Raises
    ------
    ValueError
        for an invalid ``hold``.
    """

    def __init__(self, port_bits: int = PORT_BITS, hold: int = 1):
        if hold < 1:
            raise ValueError(f"hold must be at least 1, not {hold!r}")
        self.port_bits, self.hold = port_bits, hold
        super().__init__({"bus": In(wishbone_signature(1)), "strobe": Out(1), "data": Out(port_bits)})

    def elaborate(self, platform):
        m = Module()
        bus, wide = self.bus, self.port_bits
        writes = len(bus.dat_w) // wide
        busy = Signal()                     # a write is under way
        queue = Signal(len(bus.dat_w) - wide, reset_less=True)
        left = Signal(range(writes))        # writes after this one
        since = Signal(range(self.hold))    # clocks of this level
        turns = Signal()                    # the level ends with this clock
        room = Signal()
        asked, wrong, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            turns.eq(since == self.hold - 1), room.eq(~busy | (self.strobe & turns & (left == 0))),
            asked.eq(bus.cyc & bus.stb),
            wrong.eq(bus.we & Mux(bus.adr == STORE_WORD, ~bus.sel.all(), ~bus.sel[0])),
            taken.eq(asked & bus.we & ~wrong & room),
            bus.err.eq(asked & wrong), bus.ack.eq(taken | (asked & ~bus.we)), bus.dat_r.eq(~busy),
        ]
        m.d.sync += since.eq(Mux(busy & ~turns, since + 1, 0))
        with m.If(busy & turns):
            m.d.sync += self.strobe.eq(~self.strobe)
            with m.If(self.strobe):
                m.d.sync += [
                    self.data.eq(queue[:wide]), queue.eq(queue[wide:]), busy.eq(left != 0),
                    left.eq(Mux(left == 0, 0, left - 1)),
                ]
        with m.If(taken):
            m.d.sync += [
                self.data.eq(bus.dat_w[:wide]), queue.eq(bus.dat_w[wide:]), busy.eq(1),
                left.eq(Mux(bus.adr == STORE_WORD, writes - 1, 0)),
            ]
        return m
