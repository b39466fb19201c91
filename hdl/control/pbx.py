"""Host bus, like the PBX of the paper's host: asynchronous master and slave, 32 bits, memory-mapped (sections 3.3,
5.1).
"""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import ADDRESS_BITS

__all__ = ["Pbx", "access_signature", "pbx_signature"]


def pbx_signature() -> wiring.Signature:
    """The bus as seen from the master (initiator).

    A four-phase handshake with a held bundle: the master sets ``write``, ``addr`` (in bytes) and
    ``wdata``, then raises ``req`` and keeps all of them; the board raises ``ack``, with ``rdata``
    valid as long as ``ack`` is high; the master lowers ``req``; the board lowers ``ack``. Neither
    side needs the other's clock.

    In a *burst*, each edge of ``req`` requests another read of the same address, and the edge of ``ack`` that follows
    it reports that ``rdata`` is valid, until the next edge of ``req``. ``more`` is set together with an edge that
    another one of the burst will follow; it is 0 with the last one. If that was a rise, ``req`` and ``ack`` fall
    afterwards as they do otherwise. The board reads a word ahead: an acknowledge follows a request after three of its
    clocks, and another acknowledge after four, or after five at the first word of a frame.
    """
    return wiring.Signature({
        "req": Out(1), "more": Out(1), "write": Out(1), "addr": Out(ADDRESS_BITS), "wdata": Out(32),
        "ack": In(1), "rdata": In(32),
    })


def access_signature() -> wiring.Signature:
    """One access inside the capture domain, as seen from its initiator.

    ``start`` is high for one clock; ``write``, ``addr`` and ``wdata`` are held until ``done``. ``rdata`` is valid from
    ``done`` until the next ``start``. ``again`` together with ``start`` repeats the last access, which was a read; a
    repeated read of FRAME_FIFO takes fewer clocks than the first one.
    """
    return wiring.Signature({
        "start": Out(1), "again": Out(1), "write": Out(1), "addr": Out(ADDRESS_BITS), "wdata": Out(32),
        "done": In(1), "rdata": In(32),
    })


class Pbx(wiring.Component):
    """Bus target: turns each handshake into exactly one access, and each word of a burst.

    Only ``req`` crosses clock domains here, through two flip-flops; the rest of the bundle has
    been held since before it rose. ``ack`` and ``rdata`` come from flip-flops.

    Parameters
    ----------
    direct : the bundle is not registered here: the access reads the master's own registers, which hold as long. In a
        burst, no word is read ahead.

    Members
    -------
    bus : the bus, from the master.
    access : the registers.
    busy : a handshake is in progress.
    """

    def __init__(self, direct: bool = False):
        self.direct = direct
        super().__init__({
            "bus": In(pbx_signature()), "access": Out(access_signature()), "busy": Out(1)})

    def elaborate(self, platform):
        m = Module()
        req = Signal()
        m.submodules.req_sync = FFSynchronizer(self.bus.req, req)
        m.d.comb += self.busy.eq(1)
        taken = [
            self.access.write.eq(self.bus.write), self.access.addr.eq(self.bus.addr),
            self.access.wdata.eq(self.bus.wdata),
        ]
        if self.direct:
            m.d.comb += [*taken, self.bus.rdata.eq(self.access.rdata)]
        has = Signal()

        def acknowledge() -> None:
            m.d.sync += self.bus.ack.eq(req)
            with m.If(self.bus.more & ~self.access.write):
                m.d.sync += [self.access.again.eq(1), has.eq(0)]
                if not self.direct:
                    m.d.sync += self.access.start.eq(1)
                m.next = "AGAIN" if self.direct else "AHEAD"
            with m.Elif(req):
                m.next = "RELEASE"
            with m.Else():
                m.next = "IDLE"
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.busy.eq(req)
                m.d.sync += self.access.again.eq(0)
                with m.If(req):
                    m.d.sync += [self.access.start.eq(1), *([] if self.direct else taken)]
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                m.d.sync += self.access.start.eq(0)
                if not self.direct:
                    m.d.sync += self.bus.rdata.eq(self.access.rdata)
                with m.If(self.access.done):
                    acknowledge()
            if self.direct:
                with m.State("AGAIN"):
                    with m.If(req != self.bus.ack):
                        m.d.sync += self.access.start.eq(1)
                        m.next = "ACCESS"
            else:
                with m.State("AHEAD"):
                    # The next word of a burst is read, and must wait until the master has requested it.
                    m.d.sync += [self.access.start.eq(0), has.eq(has | self.access.done)]
                    with m.If((has | self.access.done) & (req != self.bus.ack)):
                        m.d.sync += self.bus.rdata.eq(self.access.rdata)
                        acknowledge()
            with m.State("RELEASE"):
                with m.If(~req):
                    m.d.sync += self.bus.ack.eq(0)
                    m.next = "IDLE"
        return m
