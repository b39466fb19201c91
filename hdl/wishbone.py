"""Wishbone: the registers on the bus of a system on a chip."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .control.initiator import Initiator
from .control.pbx import pbx_signature
from .layout import ADDRESS_BITS

__all__ = ["WORD_ADDRESS_BITS", "Wishbone", "wishbone_signature"]

#: Of an address in words.
WORD_ADDRESS_BITS = ADDRESS_BITS - 2


def wishbone_signature(address_bits: int) -> wiring.Signature:
    """Wishbone B4, classic cycles, 32 bits with one select per byte, as seen from the initiator.

    ``adr`` counts words. The target ends a cycle with ``ack`` or ``err`` for one clock.
    """
    return wiring.Signature({
        "cyc": Out(1), "stb": Out(1), "we": Out(1), "adr": Out(address_bits), "sel": Out(4), "dat_w": Out(32),
        "dat_r": In(32), "ack": In(1), "err": In(1),
    })


class Wishbone(wiring.Component):
    """Turns each cycle into one register access.

    It runs in the clock domain of the bus, which need not be the board's; :class:`~.initiator.Initiator` contains the
    crossing. A cycle takes some twenty clocks; a write of CONTROL with reset, or of LATCH, ends when the reset or the
    copy is complete. An initiator may abort a cycle; the access that it began is finished all the same, and the next
    cycle waits for that. Registers are written whole: a write that selects less than a word ends with ``err``, and
    nothing is written. The component must not be reset while a cycle is under way.

    Members
    -------
    bus : see :func:`wishbone_signature`.
    pbx : to the board, see :func:`~.pbx.pbx_signature`.
    """

    def __init__(self):
        super().__init__({"bus": In(wishbone_signature(WORD_ADDRESS_BITS)), "pbx": Out(pbx_signature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.initiator = initiator = Initiator()
        wiring.connect(m, initiator.bus, wiring.flipped(self.pbx))
        bus, command, reply = self.bus, initiator.command, initiator.reply
        asked = Signal()
        done = Signal()
        refused = Signal()
        given_up = Signal()     # the cycle that the access is for is over
        m.d.comb += [
            asked.eq(bus.cyc & bus.stb), bus.ack.eq(asked & done), bus.err.eq(asked & refused),
            command.p.write.eq(bus.we), command.p.addr.eq(bus.adr << 2), command.p.wdata.eq(bus.dat_w),
        ]
        m.d.sync += [done.eq(0), refused.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += given_up.eq(0)
                with m.If(asked & ~done & ~refused):
                    with m.If(bus.we & ~bus.sel.all()):
                        m.d.sync += refused.eq(1)
                    with m.Else():
                        m.d.comb += command.valid.eq(1)
                        with m.If(command.ready):
                            m.next = "ACCESS"
            with m.State("ACCESS"):
                m.d.comb += reply.ready.eq(1)
                m.d.sync += given_up.eq(given_up | ~asked)
                with m.If(reply.valid):
                    m.d.sync += [done.eq(asked & ~given_up), bus.dat_r.eq(reply.p)]
                    m.next = "IDLE"
        return m
