"""Endpoint 0: the standard requests, and those that access the registers."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from luna.gateware.usb.usb2.endpoint import EndpointInterface

from ...control.initiator import access_layout
from ...layout import ADDRESS_BITS, USB_BURST_BYTES, USB_STREAM, UsbRequest
from .descriptors import CONTROL_PACKET, MICROSOFT_INDEX, descriptors, microsoft_set
from .sender import Sender

__all__ = ["UsbRequests"]

_WORDS = CONTROL_PACKET // 4
_ENDPOINT_HALT = 0             # a feature (USB 2.0, table 9-6)
# bmRequestType
_TO_DEVICE, _TO_INTERFACE, _TO_ENDPOINT = 0x00, 0x01, 0x02
_OF_DEVICE, _OF_INTERFACE, _OF_ENDPOINT = 0x80, 0x81, 0x82
_VENDOR_OUT, _VENDOR_IN = 0x40, 0xc0
# bRequest (USB 2.0, table 9-4)
_GET_STATUS, _CLEAR_FEATURE, _SET_FEATURE, _SET_ADDRESS, _GET_DESCRIPTOR = 0, 1, 3, 5, 6
_GET_CONFIGURATION, _SET_CONFIGURATION, _GET_INTERFACE, _SET_INTERFACE = 8, 9, 10, 11


class _Rom:
    """Byte strings in one memory; equal ones are stored once."""

    def __init__(self):
        self.bytes = b""

    def add(self, data: bytes) -> tuple[int, int]:
        """Start and length of the string."""
        start = self.bytes.find(data)
        if start < 0:
            start = len(self.bytes)
            self.bytes += data
        return start, len(data)


class UsbRequests(wiring.Component):
    """The control endpoint, in the domain ``usb``.

    LUNA's own control endpoint loses requests after a packet with a wrong checksum, and continues with a request that
    the host has abandoned. Here every SETUP starts over, whatever the state of the request before it. A request takes
    effect once, when the host asks for the status. For a register write, the status is answered when the register has
    been written; only the address takes effect when the status is acknowledged. A register is read once,
    however often the host asks for the packet that contains it. Invalid requests are stalled.

    Parameters
    ----------
    serial : serial number of the board.
    both : the device supports high speed as well as full speed.

    Members
    -------
    command, reply : register accesses, see :class:`~.initiator.Initiator`.
    reset : a bus reset, for one clock.
    high : the device runs at high speed.
    restart : the stream's endpoint starts over, for one clock.
    halted : the stream's endpoint stalls.
    """

    def __init__(self, serial: str, both: bool = True):
        self.serial, self.both = serial, both
        self.interface = EndpointInterface()
        super().__init__({
            "command": Out(stream.Signature(access_layout())), "reply": In(stream.Signature(32)),
            "reset": In(1), "high": In(1), "restart": Out(1), "halted": Out(1)})

    def elaborate(self, platform):
        m = Module()
        interface = self.interface
        token = interface.tokenizer
        setup = Signal(data.StructLayout({
            "recipient": 5, "type": 2, "is_in": 1, "request": 8, "value": 16, "index": 16, "length": 16}))
        m.submodules.sender = sender = Sender(interface, 0)

        rom = _Rom()
        begun = Signal()      # a SETUP has been received whole
        decoded = Signal()    # ... one clock ago
        # Type of the request; none of them: a stall.
        gives = Signal()      # bytes of the ROM
        reads = Signal()      # registers
        writes = Signal()     # a register
        acts = Signal()       # ... which is one of:
        addresses = Signal()
        configures = Signal()
        restarts = Signal()
        halts = Signal()
        kinds = (gives, reads, writes, acts, addresses, configures, restarts, halts)
        start = Signal(range(1 << 10))
        total = Signal(range(USB_BURST_BYTES + 1))

        def give(answer: bytes):
            where, length = rom.add(answer)
            return [gives.eq(1), start.eq(where), total.eq(Mux(setup.length < length, setup.length, length))]

        def act(*which):
            return [acts.eq(1), *(kind.eq(1) for kind in which)]

        # The data that the host has sent, and when it is time to answer.
        ours = token.endpoint == 0
        data_requested = Signal()
        data_came = Signal()
        status_requested = Signal()
        came = Signal(range(10))    # bytes of the packet
        answers = Signal()          # there is an IN data stage
        # Data belong to the token before them. Data after a damaged token are not for us, whatever the last
        # good token was: taken as a SETUP's, they would end the request before it.
        expected = Signal()
        m.d.comb += answers.eq(setup.is_in & (setup.length != 0))
        with m.If(interface.rx_ready_for_response | interface.rx_invalid):
            m.d.usb += expected.eq(0)
        with m.If(token.new_token):
            m.d.usb += [came.eq(0), expected.eq(1)]
        ours_next = interface.rx.next & ours & expected
        with m.If(ours_next):
            m.d.usb += came.eq(Mux(came == 9, 9, came + 1))
            with m.If(token.is_setup):
                m.d.usb += setup.eq(Cat(setup.as_value()[8:], interface.rx.payload))
        with m.If(interface.rx_ready_for_response & ours & expected):
            m.d.comb += [
                begun.eq(token.is_setup & (came == 8)), interface.handshakes_out.ack.eq(begun),
                data_came.eq(token.is_out & ~answers), status_requested.eq(token.is_out & answers),
            ]
        with m.If(token.ready_for_response & ours):
            m.d.comb += [
                data_requested.eq(token.is_in & answers),
                interface.handshakes_out.ack.eq(token.is_ping),
            ]
            with m.If(token.is_in & ~answers):
                m.d.comb += status_requested.eq(1)
        m.d.usb += decoded.eq(begun)
        configured = interface.active_config == 1
        nothing = (setup.value == 0) & (setup.index == 0)
        bare = setup.length == 0
        inside = (setup.index[:2] == 0) & (setup.index[ADDRESS_BITS:] == 0) & (setup.value == 0)

        def case(recipient, request):
            return m.Case(recipient | request << 8)

        with m.If(begun):
            m.d.usb += [signal.eq(0) for signal in kinds]
            with m.Switch(setup.as_value()[:16]):
                for recipient in (_OF_DEVICE, _OF_INTERFACE):
                    with case(recipient, _GET_STATUS):
                        with m.If(nothing):
                            m.d.usb += give(bytes(2))
                with case(_OF_ENDPOINT, _GET_STATUS):
                    with m.If((setup.index == USB_STREAM) & self.halted):
                        m.d.usb += give(bytes((1, 0)))
                    with m.Elif((setup.index == USB_STREAM) | (setup.index[:7] == 0)):
                        m.d.usb += give(bytes(2))
                with case(_TO_ENDPOINT, _CLEAR_FEATURE):
                    with m.If(bare & (setup.value == _ENDPOINT_HALT) & (setup.index == USB_STREAM)):
                        m.d.usb += act(restarts)
                    with m.Elif(bare & (setup.value == _ENDPOINT_HALT) & (setup.index[:7] == 0)):
                        m.d.usb += act()
                with case(_TO_ENDPOINT, _SET_FEATURE):
                    with m.If(bare & configured & (setup.value == _ENDPOINT_HALT) & (setup.index == USB_STREAM)):
                        m.d.usb += act(halts)
                with case(_TO_DEVICE, _SET_ADDRESS):
                    with m.If(bare & (setup.index == 0) & (setup.value < 128)):
                        m.d.usb += act(addresses)
                with case(_OF_DEVICE, _GET_DESCRIPTOR):
                    for speed in (False, True) if self.both else (False,):
                        with m.If(self.high == speed):
                            with m.Switch(setup.value):
                                for (of, index), answer in descriptors(self.serial, speed, self.both).items():
                                    with m.Case(of << 8 | index):
                                        m.d.usb += give(answer)
                with case(_OF_DEVICE, _GET_CONFIGURATION):
                    with m.If(nothing):
                        with m.If(configured):
                            m.d.usb += give(b"\x01")
                        with m.Else():
                            m.d.usb += give(b"\x00")
                with case(_TO_DEVICE, _SET_CONFIGURATION):
                    with m.If(bare & (setup.index == 0) & (setup.value < 2)):
                        m.d.usb += act(configures, restarts)
                with case(_OF_INTERFACE, _GET_INTERFACE):
                    with m.If(configured & nothing):
                        m.d.usb += give(b"\x00")
                with case(_TO_INTERFACE, _SET_INTERFACE):
                    with m.If(bare & configured & nothing):
                        m.d.usb += act(restarts)
                with case(_VENDOR_IN, UsbRequest.MICROSOFT):
                    with m.If((setup.index == MICROSOFT_INDEX) & (setup.value == 0)):
                        m.d.usb += give(microsoft_set())
                with case(_VENDOR_IN, UsbRequest.READ):
                    with m.If(inside & ~bare & (setup.length <= USB_BURST_BYTES) & (setup.length[:2] == 0)
                              & (setup.index + setup.length <= 1 << ADDRESS_BITS)):
                        m.d.usb += [reads.eq(1), total.eq(setup.length)]
                with case(_VENDOR_OUT, UsbRequest.WRITE):
                    with m.If(inside & (setup.length == 4)):
                        m.d.usb += writes.eq(1)
        with m.If(self.reset | (token.new_token & token.is_setup)):
            m.d.usb += [signal.eq(0) for signal in kinds]

        # The packet that is to be sent.
        left = Signal.like(total)
        at = Signal(range(1 << 10))
        buffered = Signal()     # the buffer holds the registers that belong to it
        m.submodules.rom = bytes_of = memory.Memory(shape=8, depth=1 << 10, init=rom.bytes)
        m.submodules.buffer = buffer = memory.Memory(shape=32, depth=_WORDS, init=[])
        from_rom = bytes_of.read_port(domain="usb")
        fill = buffer.write_port(domain="usb")
        from_buffer = buffer.read_port(domain="usb")
        lane = Signal(2)
        with m.If(sender.fetch):
            m.d.usb += lane.eq(sender.next)
        m.d.comb += [
            from_rom.addr.eq(at + sender.next), from_buffer.addr.eq(sender.next[2:]),
            from_rom.en.eq(sender.fetch), from_buffer.en.eq(sender.fetch),
            sender.payload.eq(Mux(reads, Array(from_buffer.data[8 * k:8 * k + 8] for k in range(4))[lane],
                                  from_rom.data)),
        ]

        # Data stages.
        status = Signal()       # the present transmission is one
        in_status = Signal()    # the last transmission was one
        complete = Signal()     # the four bytes to be written have come
        m.d.comb += sender.length.eq(Mux(in_status | status, 0, Mux(left > CONTROL_PACKET, CONTROL_PACKET, left)))
        with m.If(data_requested):
            m.d.comb += [
                sender.go.eq(gives | (reads & buffered)),
                interface.handshakes_out.nak.eq(reads & ~buffered),
                interface.handshakes_out.stall.eq(~(gives | reads)),
            ]
        # The host sends the bytes again if it has not heard the acknowledgement.
        with m.If(token.new_token & token.is_out):
            m.d.usb += complete.eq(0)
        with m.If(ours_next & token.is_out):
            m.d.usb += self.command.p.wdata.eq(Cat(self.command.p.wdata[8:], interface.rx.payload))
        with m.If(data_came):
            taken = writes & (came == 4)
            m.d.comb += [interface.handshakes_out.ack.eq(taken), interface.handshakes_out.stall.eq(~taken)]
            m.d.usb += complete.eq(taken)

        # Status stages.
        done = Signal()         # actions to be taken once
        now = Signal()
        write_now = Signal()
        with m.If(status_requested & token.is_out):
            m.d.comb += [
                interface.handshakes_out.ack.eq(gives | reads), interface.handshakes_out.stall.eq(~(gives | reads))]
        with m.Elif(status_requested & writes & complete & ~done):
            m.d.comb += [interface.handshakes_out.nak.eq(1), write_now.eq(1)]
        with m.Elif(status_requested):
            sensible = acts | gives | (writes & done)
            m.d.comb += [status.eq(1), sender.go.eq(sensible), interface.handshakes_out.stall.eq(~sensible)]
            m.d.comb += now.eq(acts & ~done)
            m.d.usb += done.eq(acts | done)
        with m.If(sender.go):
            m.d.usb += in_status.eq(status)
        m.d.comb += [
            interface.address_changed.eq(sender.acked & in_status & addresses), interface.new_address.eq(setup.value),
            interface.config_changed.eq(now & configures), interface.new_config.eq(setup.value),
            self.restart.eq((now & restarts) | self.reset),
        ]
        with m.If(self.restart):
            m.d.usb += self.halted.eq(0)
        with m.Elif(now & halts):
            m.d.usb += self.halted.eq(1)

        # The registers. An access under way is waited for, even if its request has been abandoned.
        command, reply = self.command, self.reply
        words = Signal(range(_WORDS + 1))    # in the buffer
        stale = Signal()
        fresh = Signal()                     # the address is still to be accepted
        m.d.comb += [fill.addr.eq(words), fill.data.eq(reply.p)]
        with m.FSM(domain="usb"):
            with m.State("IDLE"):
                m.d.usb += [stale.eq(0), command.p.write.eq(writes)]
                with m.If(fresh):
                    m.d.usb += [command.p.addr.eq(setup.index), fresh.eq(0)]
                with m.If(~begun & ~fresh & ((reads & ~buffered & (left != 0)) | write_now)):
                    m.d.usb += command.valid.eq(1)
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                with m.If(command.ready):
                    m.d.usb += command.valid.eq(0)
                with m.If(begun):
                    m.d.usb += stale.eq(1)
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid):
                    m.next = "IDLE"
                    with m.If(~stale & ~begun & command.p.write):
                        m.d.usb += done.eq(1)
                    with m.Elif(~stale & ~begun):
                        m.d.comb += fill.en.eq(1)
                        m.d.usb += [
                            command.p.addr.eq(command.p.addr + 4), words.eq(words + 1),
                            buffered.eq((words == _WORDS - 1) | ((words + 1) << 2 == left)),
                        ]
        with m.If(sender.acked & ~in_status):
            m.d.usb += [
                at.eq(at + CONTROL_PACKET), left.eq(left - sender.length),
                interface.tx_pid_toggle.eq(interface.tx_pid_toggle ^ 1), buffered.eq(0), words.eq(0),
            ]
        with m.If(begun):
            m.d.usb += [
                interface.tx_pid_toggle.eq(1), in_status.eq(0), fresh.eq(1), buffered.eq(0), words.eq(0), left.eq(0),
                done.eq(0), complete.eq(0),
            ]
        with m.If(decoded):
            m.d.usb += [at.eq(start), left.eq(total)]
        return m
