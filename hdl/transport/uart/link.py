"""The UART as a link: sends the stream, receives requests, and inserts replies between bytes of the stream."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...control.initiator import access_layout
from ..beats_to_bytes import byte_layout
from .escape import Escape, Unescape
from .line import UartReceiver, UartTransmitter
from .requests import UartRequests
from .server import UartServer

__all__ = ["UartLink"]


class UartLink(wiring.Component):
    """Connects the parts of the link, in the link's clock domain.

    A byte of the stream that is lost or damaged costs its block; the host notices that by the block's CRC. A damaged
    request or reply costs a repetition. Neither has further consequences: after any loss, both sides resynchronize at
    the next escape byte with its mark. The line never waits for a
    block to be complete, so there is nothing to flush.

    Parameters
    ----------
    clock_hz, baud : rates of the domain and of the line.
    ram : see :class:`~.server.UartServer`.

    Members
    -------
    bytes, command, reply : to the board, see :class:`~.crossing.Crossing`.
    rx, tx : the line.
    """

    def __init__(self, clock_hz: int, baud: int, ram: str = "portable"):
        self.receiver, self.transmitter = UartReceiver(clock_hz, baud), UartTransmitter(clock_hz, baud)
        self.ram = ram
        super().__init__({
            "bytes": In(stream.Signature(byte_layout())),
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)),
            "rx": In(1, init=1), "tx": Out(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = self.receiver
        m.submodules.transmitter = transmitter = self.transmitter
        m.submodules.unescape = unescape = Unescape()
        m.submodules.requests = requests = UartRequests()
        m.submodules.server = server = UartServer(self.ram)
        m.submodules.escape = escape = Escape()
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        wiring.connect(m, receiver.o, unescape.i)
        wiring.connect(m, unescape.o, requests.i)
        wiring.connect(m, requests.o, server.i)
        wiring.connect(m, server.command, wiring.flipped(self.command))
        wiring.connect(m, wiring.flipped(self.reply), server.reply)
        wiring.connect(m, escape.o, transmitter.i)

        # A reply has priority, and is sent whole.
        replies = Signal()
        m.d.comb += [
            replies.eq(server.busy | server.o.valid),
            escape.i.valid.eq(Mux(replies, server.o.valid, self.bytes.valid)),
            escape.i.p.data.eq(Mux(replies, server.o.p.data, self.bytes.p.data)),
            escape.i.p.packet.eq(replies & server.o.p.packet),
            server.o.ready.eq(escape.i.ready), self.bytes.ready.eq(escape.i.ready & ~replies),
        ]
        return m
