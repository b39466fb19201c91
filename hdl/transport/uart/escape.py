"""Packets in a byte stream: escaping and unescaping."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import UART_ESCAPE, UartMark

__all__ = ["Escape", "Unescape", "symbol_layout"]


def symbol_layout() -> data.StructLayout:
    """A byte, or if ``packet`` is set, the beginning of a packet."""
    return data.StructLayout({"data": 8, "packet": 1})


class Escape(wiring.Component):
    """Symbols to bytes: one for most, two for the beginning of a packet and for the escape byte itself.

    Members
    -------
    i : symbols.
    o : bytes.
    """

    def __init__(self):
        super().__init__({"i": In(stream.Signature(symbol_layout())), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        second = Signal()    # the mark after an escape byte comes next
        packet = Signal()    # ... which one
        m.d.comb += self.i.ready.eq(~self.o.valid & ~second)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                self.o.valid.eq(1), self.o.p.eq(Mux(self.i.p.packet, UART_ESCAPE, self.i.p.data)),
                packet.eq(self.i.p.packet), second.eq(self.i.p.packet | (self.i.p.data == UART_ESCAPE)),
            ]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += [
                self.o.valid.eq(second), second.eq(0), self.o.p.eq(Mux(packet, UartMark.PACKET, UartMark.LITERAL))]
        return m


class Unescape(wiring.Component):
    """Bytes to symbols.

    An escape byte that is followed by anything but a mark is damaged: both bytes are dropped. If the second one is
    an escape byte, too, it counts as the first of another pair.

    Members
    -------
    i : bytes, without back-pressure.
    o : symbols, without back-pressure.
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(8, always_ready=True)),
            "o": Out(stream.Signature(symbol_layout(), always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        escaped = Signal()
        m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid):
            m.d.sync += [
                escaped.eq(self.i.p == UART_ESCAPE), self.o.p.data.eq(Mux(escaped, UART_ESCAPE, self.i.p)),
                self.o.p.packet.eq(escaped & (self.i.p == UartMark.PACKET)),
                self.o.valid.eq(Mux(escaped, (self.i.p == UartMark.PACKET) | (self.i.p == UartMark.LITERAL),
                                    self.i.p != UART_ESCAPE)),
            ]
        return m
