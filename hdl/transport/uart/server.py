"""Executes each request of a host once, and replies to every repetition of the request."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...control.initiator import access_layout
from ...layout import ADDRESS_BITS, UART_WORDS_MAX, UartOp
from ...lib.ram import Ram
from .byte_crc import ByteCrc
from .escape import symbol_layout
from .requests import request_layout

__all__ = ["UartServer"]


class UartServer(wiring.Component):
    """Requests to register accesses, and their results to replies.

    The words that were read are kept until the next request. A request with the sequence number of the last one is not
    executed again: if the reply to a read that pops is lost, a repetition must return the same words. All accesses
    of a request are done before its reply begins, and no other access comes between them.

    Parameters
    ----------
    ram : kind of the memory for the words that were read, see :class:`~.ram.Ram`.

    Members
    -------
    i : requests.
    command, reply : to the registers, see :class:`~.initiator.Initiator`.
    o : the symbols of replies.
    busy : a reply has begun and is not complete: no other bytes may be sent between its own.
    """

    def __init__(self, ram: str = "portable"):
        self.ram = ram
        super().__init__({
            "i": In(stream.Signature(request_layout())),
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)),
            "o": Out(stream.Signature(symbol_layout())), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = Ram(32, UART_WORDS_MAX, self.ram, register=self.ram != "ice40")
        m.submodules.crc = crc = ByteCrc()
        request = self.i.p
        sequence = Signal(8)
        known = Signal()                             # there was a request
        repeated = Signal()
        countable = Signal()
        refused = Signal()
        write = Signal()
        address = Signal(ADDRESS_BITS)
        total = Signal(range(UART_WORDS_MAX + 1))    # words of the reply
        left = Signal.like(total)                    # words to be read, then to be sent
        last = Signal()                              # left == 1
        m.d.comb += [
            repeated.eq(known & (request.sequence == sequence) & (request.op != UartOp.HELLO)),
            countable.eq((request.value != 0) & (request.value <= UART_WORDS_MAX)),
            self.command.p.write.eq(write), self.command.p.addr.eq(address), ram.w_data.eq(self.reply.p),
        ]

        word = Signal(32)
        at = Signal(2)                   # byte of the word
        summed = Signal()                # the word is the CRC
        m.d.comb += [
            ram.r_en.eq(1), ram.r_next.eq(1),
            crc.clear.eq(~self.busy), crc.data.eq(word[:8]),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [ram.w_addr.eq(0), ram.r_addr.eq(0), summed.eq(0), at.eq(0)]
                with m.If(self.i.valid & repeated):
                    m.next = "BEGIN"
                with m.Elif(self.i.valid):
                    m.d.sync += [
                        known.eq(1), sequence.eq(request.sequence), refused.eq(0), total.eq(0),
                        write.eq(request.op == UartOp.WRITE), address.eq(request.address),
                        self.command.p.wdata.eq(request.value), left.eq(1),
                    ]
                    m.next = "BEGIN"
                    with m.Switch(request.op):
                        with m.Case(UartOp.HELLO):
                            pass
                        with m.Case(UartOp.WRITE):
                            m.next = "COMMAND"
                        with m.Case(UartOp.READ):
                            m.d.sync += refused.eq(~countable)
                            with m.If(countable):
                                m.d.sync += [total.eq(request.value), left.eq(request.value)]
                                m.next = "COMMAND"
                        with m.Default():
                            m.d.sync += refused.eq(1)

            # The accesses.
            with m.State("COMMAND"):
                m.d.comb += self.command.valid.eq(1)
                m.d.sync += last.eq(left == 1)
                with m.If(self.command.ready):
                    m.next = "RESULT"
            with m.State("RESULT"):
                m.d.comb += [self.reply.ready.eq(1), ram.w_en.eq(self.reply.valid & ~write)]
                with m.If(self.reply.valid):
                    m.d.sync += [left.eq(left - 1), address.eq(address + 4), ram.w_addr.eq(ram.w_addr + 1)]
                    m.next = "COMMAND"
                    with m.If(last):
                        m.next = "BEGIN"

            # The reply.
            with m.State("BEGIN"):
                m.d.comb += [self.o.valid.eq(1), self.o.p.packet.eq(1)]
                m.d.sync += [
                    left.eq(total), word.eq(Cat(sequence, refused, Const(0, 7), total))]
                with m.If(self.o.ready):
                    m.d.sync += self.busy.eq(1)
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += [self.o.valid.eq(1), self.o.p.data.eq(word[:8]), crc.valid.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.d.sync += [word.eq(word[8:]), at.eq(at + 1)]
                    with m.If(at == 3):
                        m.next = "NEXT"
            with m.State("NEXT"):
                with m.If(summed):
                    m.d.sync += self.busy.eq(0)
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += [
                        summed.eq(left == 0), left.eq(left - 1), ram.r_addr.eq(ram.r_addr + 1),
                        word.eq(Mux(left == 0, crc.crc, ram.r_data)),
                    ]
                    m.next = "BYTES"
        return m
