"""Bulk IN endpoint: sends the stream in packets, with four packet buffers."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In
from luna.gateware.usb.usb2.endpoint import EndpointInterface

from ..beats_to_bytes import byte_layout
from .descriptors import BULK_FULL, BULK_HIGH
from .sender import Sender

__all__ = ["UsbBulk"]

_SLOTS = 4


class UsbBulk(wiring.Component):
    """Packets of the stream, in the domain ``usb``.

    A packet leaves when it is full, or when nothing has come for ``idle`` clocks. In the latter case the host's
    transfer ends, with an empty packet if the last one was full. A packet is kept until the host has
    acknowledged it. ``restart`` discards packets and data toggle, and the rest of a block that has begun.
    The next byte that the host receives is therefore the first of a block, and the sequence numbers of
    the blocks reveal which ones are missing.

    Parameters
    ----------
    number : number of the endpoint.
    idle : clocks.

    Members
    -------
    i : the stream. Nothing is accepted unless ``open``.
    open : the host has configured the device.
    high : the device runs at high speed, which changes at a restart only.
    halted : the host has halted the endpoint, which then stalls.
    restart : for one clock.
    """

    def __init__(self, number: int, idle: int):
        self.number, self.idle = number, idle
        self.interface = EndpointInterface()
        super().__init__({
            "i": In(stream.Signature(byte_layout())),
            "open": In(1), "high": In(1), "halted": In(1), "restart": In(1)})

    def elaborate(self, platform):
        m = Module()
        interface = self.interface
        m.submodules.sender = sender = Sender(interface, self.number)
        m.submodules.packets = packets = memory.Memory(shape=8, depth=_SLOTS * BULK_HIGH, init=[])
        write = packets.write_port(domain="usb")
        read = packets.read_port(domain="usb")
        lengths = Array(Signal(range(BULK_HIGH + 1), name=f"length{slot}") for slot in range(_SLOTS))
        fill = Signal(range(_SLOTS))              # the slot that is being filled
        count = Signal(range(BULK_HIGH + 1))      # bytes in it
        send = Signal(range(_SLOTS))              # the oldest packet
        used = Signal(range(_SLOTS + 1))          # packets
        toggle = Signal()
        middle = Signal()                         # a block has begun
        skip = Signal()                           # ... and the rest of it is discarded
        unended = Signal()                        # the last packet was full, and the host's transfer continues
        silence = Signal(range(self.idle + 1))    # clocks since the last byte

        room = Signal()
        take = Signal()
        full = Signal()
        flush = Signal()
        commit = Signal()
        length = Signal(range(BULK_HIGH + 1))
        m.d.comb += [
            room.eq(self.open & ~used[-1] & ~self.restart), self.i.ready.eq(room | skip),
            take.eq(self.i.valid & self.i.ready),
            full.eq(take & ~skip & (count + 1 == Mux(self.high, BULK_HIGH, BULK_FULL))),
            flush.eq(room & ~self.i.valid & (silence == self.idle) & ((count != 0) | unended)),
            commit.eq(full | flush), length.eq(count + full),
            write.addr.eq(Cat(count[:9], fill)), write.data.eq(self.i.p.data), write.en.eq(take & ~skip),
        ]
        with m.If(take):
            m.d.usb += [silence.eq(0), middle.eq(~self.i.p.last)]
            with m.If(skip):
                m.d.usb += skip.eq(~self.i.p.last)
            with m.Else():
                m.d.usb += count.eq(count + 1)
        with m.Elif(silence != self.idle):
            m.d.usb += silence.eq(silence + 1)
        with m.If(commit):
            m.d.usb += [lengths[fill].eq(length), fill.eq(fill + 1), count.eq(0), unended.eq(full)]

        token = interface.tokenizer
        asked = Signal()
        m.d.comb += [
            asked.eq(self.open & token.is_in & (token.endpoint == self.number) & token.ready_for_response),
            interface.handshakes_out.stall.eq(asked & self.halted),
            interface.handshakes_out.nak.eq(asked & ~self.halted & (used == 0)),
            sender.go.eq(asked & ~self.halted & (used != 0)),
            sender.length.eq(lengths[send]), sender.payload.eq(read.data),
            read.addr.eq(Cat(sender.next[:9], send)), read.en.eq(sender.fetch),
            interface.tx_pid_toggle.eq(toggle),
        ]
        m.d.usb += used.eq(used + commit - sender.acked)
        with m.If(sender.acked):
            m.d.usb += [toggle.eq(~toggle), send.eq(send + 1)]

        with m.If(self.restart):
            m.d.usb += [
                fill.eq(0), count.eq(0), send.eq(0), used.eq(0), toggle.eq(0), unended.eq(0), silence.eq(0),
                # Nothing is accepted in this clock except bytes that are being discarded already.
                skip.eq(middle & ~(take & self.i.p.last)),
            ]
        return m
