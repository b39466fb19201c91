"""Requests of the host, from the symbols received over the line."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import UART_REQUEST
from .byte_crc import ByteCrc
from .escape import symbol_layout

__all__ = ["UartRequests", "request_layout"]


def request_layout() -> data.StructLayout:
    """Contents of a request: the fields of its record, without the CRC."""
    return data.StructLayout({f.name: f.bits for f in UART_REQUEST.fields if f.name != "crc"})


class UartRequests(wiring.Component):
    """Symbols to requests: a request counts only if it is complete and has the right CRC.

    The beginning of a packet ends the packet before it, wherever that was. Bytes outside of packets are ignored, and so
    are packets that begin while a request waits: a host makes one request at a time.

    Members
    -------
    i : symbols, without back-pressure.
    o : requests; see :func:`request_layout`.
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(symbol_layout(), always_ready=True)),
            "o": Out(stream.Signature(request_layout())),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = ByteCrc()
        request = self.o.p.as_value()
        head = len(request) // 8
        left = Signal(range(UART_REQUEST.bytes + 1))
        arrived = Signal()
        begins = Signal()
        m.d.comb += [
            begins.eq(self.i.valid & self.i.p.packet),
            crc.clear.eq(begins), crc.valid.eq(self.i.valid), crc.data.eq(self.i.p.data),
        ]
        m.d.sync += arrived.eq(0)
        with m.If(self.o.valid):
            m.d.sync += left.eq(0)
            with m.If(self.o.ready):
                m.d.sync += self.o.valid.eq(0)
        with m.Elif(begins):
            m.d.sync += left.eq(UART_REQUEST.bytes)
        with m.Elif(self.i.valid & (left != 0)):
            m.d.sync += [left.eq(left - 1), arrived.eq(left == 1)]
            with m.If(left > UART_REQUEST.bytes - head):
                m.d.sync += request.eq(Cat(request[8:], self.i.p.data))
        with m.Elif(arrived):
            m.d.sync += self.o.valid.eq(crc.good)
        return m
