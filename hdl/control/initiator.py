"""Bus initiator: carries out register accesses that a link requests."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import ADDRESS_BITS
from .pbx import pbx_signature

__all__ = ["Initiator", "access_layout"]


def access_layout() -> data.StructLayout:
    """One access: ``write``, ``addr`` in bytes, ``wdata``."""
    return data.StructLayout({"write": 1, "addr": ADDRESS_BITS, "wdata": 32})


class Initiator(wiring.Component):
    """Turns each command into one handshake on the bus, and returns one reply for it.

    Only ``ack`` crosses clock domains here, through two flip-flops. The bundle is valid from one clock before
    ``req`` rises until ``ack`` has fallen, and ``rdata`` is read while ``ack`` is high. A
    command is accepted only when the board has completed the handshake of the one before. The initiator must not be
    reset while an access is under way.

    Members
    -------
    command : accesses; see :func:`access_layout`.
    reply : ``rdata`` of each, in order, for writes too. The next command is accepted after it.
    bus : to the board, see :func:`~.pbx.pbx_signature`.
    """

    def __init__(self):
        super().__init__({
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
            "bus": Out(pbx_signature()),
        })

    def elaborate(self, platform):
        m = Module()
        ack = Signal()
        m.submodules.ack_sync = FFSynchronizer(self.bus.ack, ack)
        with m.If(self.reply.ready):
            m.d.sync += self.reply.valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.command.ready.eq(~ack & ~self.reply.valid)
                with m.If(self.command.valid & self.command.ready):
                    m.d.sync += [
                        self.bus.write.eq(self.command.p.write), self.bus.addr.eq(self.command.p.addr),
                        self.bus.wdata.eq(self.command.p.wdata),
                    ]
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += self.bus.req.eq(1)
                m.next = "REQUEST"
            with m.State("REQUEST"):
                with m.If(ack):
                    m.d.sync += [self.reply.p.eq(self.bus.rdata), self.reply.valid.eq(1), self.bus.req.eq(0)]
                    m.next = "IDLE"
        return m
