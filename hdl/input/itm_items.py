"""ITM items: nibbles of events from the packets of a Cortex-M's Instrumentation Trace Macrocell."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring

from ..layout import EVENT_SIZE_BITS, ITM_OVERFLOW, PORT_BITS
from .byte_items import ABORT_CLOCKS, AfterError, byte_items_signature

__all__ = ["ItmItems"]

#: Zero bytes that a synchronization packet has at least, before its last byte.
_ZEROS = 5
#: Maximum number of bytes after a header that has continuation bytes.
_MORE_MAX = 6


class ItmItems(wiring.Component):
    """Reads packets as the ARMv7-M Architecture Reference Manual, appendix D4, defines them. Source packets are events:
    the first byte is the number of the stimulus port, 0 to 31; of a hardware source (DWT) 32 + its discriminator. The
    1, 2 or 4 bytes of the packet follow, the lowest one first.

    ==============================  =====================================================
    header, bits 7..0               packet
    ==============================  =====================================================
    aaaaa0ss, ss not 00             instrumentation, port a, 1, 2 or 4 bytes
    aaaaa1ss, ss not 00             hardware source, discriminator a, 1, 2 or 4 bytes
    00000000, and more of them      synchronization: at least five, then 10000000
    01110000                        overflow: the ITM has lost packets; an event of one byte, ITM_OVERFLOW
    0ttt0000                        time stamp, no event
    11tt0000, 10010100, 10110100    time stamps with more bytes, no event
    cxxx1x00                        extension, with more bytes if c is 1, no event
    others                          reserved: an error
    ==============================  =====================================================

    Of packets with more bytes, each byte but the last has bit 7 set; there are up to six.

    The event has the time of the header's first edge. There is no check in a packet: a byte that was changed on the
    wire, but has its stop bit, is not noticed unless it becomes a reserved header. After an error, bytes are discarded
    until the line has paused or a synchronization packet has come. If the node is not in event mode, each byte is two
    nibbles, the lower one first, whatever its meaning; with ``single``, an event of this one byte.

    Members: see :func:`~.byte_items.byte_items_signature`.
    """

    def __init__(self):
        super().__init__(byte_items_signature())

    def elaborate(self, platform):
        m = Module()
        byte = self.byte
        size, source, number = byte[:2], byte[2], byte[3:]
        one = Const(1, PORT_BITS)
        left = Signal(range(_MORE_MAX))         # bytes of the packet after the next one
        zeros = Signal(range(_ZEROS + 1))
        settle = Signal(range(ABORT_CLOCKS))
        synchronized, more, single = (Signal(name=name) for name in ("synchronized", "more", "single"))
        m.d.comb += [
            synchronized.eq((zeros == _ZEROS) & (byte == 0x80)),
            more.eq(((byte[6:] == 3) & (byte[:4] == 0)) | (byte == 0x94) | (byte == 0xb4)
                    | (byte[7] & byte[3] & (size == 0))),
            single.eq(~byte[7] & ((byte[:4] == 0) | (byte[3] & (size == 0)))),
        ]
        error = AfterError(m, self, settle, ABORT_CLOCKS)
        wrong = error.wrong
        # Zeros count between packets alone: a packet may contain them.
        with m.If(self.valid):
            m.d.sync += zeros.eq(0)
        with m.FSM(init="HUNT") as fsm:
            m.d.sync += self.begun.eq(self.expired | fsm.ongoing("PAYLOAD"))
            with m.State("HUNT"):
                m.d.sync += self.rejected.eq(self.fault | (self.valid & (byte != 0) & ~synchronized))
                self._count(m, zeros)
                with m.If((self.pause & ~(self.valid | self.fault)) | (self.valid & synchronized)):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += wrong.eq(self.fault | self.expired)
                with m.If(self.valid & (~self.events | self.single)):
                    m.d.comb += [self.load.eq(1), self.nibbles.eq(Mux(self.events, Cat(one, byte), byte)),
                                 self.count.eq(Mux(self.events, 3, 2))]
                with m.Elif(self.valid & (zeros != 0)):
                    self._count(m, zeros)
                    m.d.comb += wrong.eq((byte != 0) & ~synchronized)
                with m.Elif(self.valid & (size != 0)):
                    nibble = Signal(EVENT_SIZE_BITS)
                    m.d.comb += [
                        nibble.eq(1 + Cat(size == 1, size == 2, size == 3)), self.load.eq(1), self.count.eq(3),
                        self.nibbles.eq(Cat(nibble, number, source, Const(0, 2))),
                    ]
                    m.d.sync += left.eq(Cat(size[1], size == 3))
                    m.next = "PAYLOAD"
                with m.Elif(self.valid):
                    self._count(m, zeros)
                    m.d.sync += left.eq(_MORE_MAX - 1)
                    m.d.comb += wrong.eq(~(more | single))
                    with m.If(byte == 0x70):
                        m.d.comb += [self.load.eq(1), self.count.eq(3),
                                     self.nibbles.eq(Cat(one, Const(ITM_OVERFLOW, 8)))]
                    with m.If(more):
                        m.next = "MORE"
                error.leave(m)
            with m.State("PAYLOAD"):
                m.d.comb += [
                    wrong.eq(self.fault | self.expired), self.load.eq(self.valid & ~wrong), self.nibbles.eq(byte),
                    self.count.eq(2),
                ]
                with m.If(self.valid):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 0):
                        m.next = "HEADER"
                error.leave(m)
            with m.State("MORE"):
                m.d.comb += wrong.eq(self.fault | self.expired | (self.valid & byte[7] & (left == 0)))
                with m.If(self.valid):
                    m.d.sync += left.eq(left - 1)
                    with m.If(~byte[7]):
                        m.next = "HEADER"
                error.leave(m)
            error.abort(m)
        m.d.comb += self.busy.eq(fsm.ongoing("ABORT") | self.rejected | self.abort)
        return m

    def _count(self, m: Module, zeros: Signal) -> None:
        """Counts the zeros of a synchronization packet."""
        with m.If(self.valid & (self.byte == 0)):
            m.d.sync += zeros.eq(zeros + (zeros != _ZEROS))
