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


class _Request:
    """A SETUP, and what it asks for. At most one of ``gives``, ``reads``, ``writes`` and ``acts`` is set; if none
    is, the request is stalled."""

    def __init__(self):
        self.setup = Signal(data.StructLayout({
            "recipient": 5, "type": 2, "is_in": 1, "request": 8, "value": 16, "index": 16, "length": 16}))
        self.begun = Signal()       # a SETUP has been received whole
        self.decoded = Signal()     # ... one clock ago
        self.gives = Signal()       # bytes of the ROM
        self.reads = Signal()       # registers
        self.writes = Signal()      # a register
        self.acts = Signal()        # ... which is one of:
        self.addresses = Signal()
        self.configures = Signal()
        self.restarts = Signal()
        self.halts = Signal()
        self.start = Signal(range(1 << 10))     # in the ROM
        self.total = Signal(range(USB_BURST_BYTES + 1))

    @property
    def kinds(self) -> tuple[Signal, ...]:
        return (
            self.gives, self.reads, self.writes, self.acts,
            self.addresses, self.configures, self.restarts, self.halts)

    def give(self, rom: _Rom, answer: bytes):
        """The request is answered with these bytes."""
        where, length = rom.add(answer)
        asked = self.setup.length
        return [self.gives.eq(1), self.start.eq(where), self.total.eq(Mux(asked < length, asked, length))]

    def act(self, *which: Signal):
        """The request is answered with a status alone, and sets these."""
        return [self.acts.eq(1), *(kind.eq(1) for kind in which)]


class _Host:
    """What the host does in this clock."""

    def __init__(self):
        self.data_requested = Signal()      # an IN token of the data stage
        self.data_came = Signal()           # an OUT packet of the data stage
        self.status_requested = Signal()
        self.came = Signal(range(10))       # bytes of the packet


class _Progress:
    """How far the request has been answered."""

    def __init__(self, total: Signal):
        self.left = Signal.like(total)      # bytes still to be sent
        self.at = Signal(range(1 << 10))    # the next one, in the ROM
        self.buffered = Signal()            # the buffer holds the registers that belong to the next packet
        self.status = Signal()              # the present transmission is a status
        self.in_status = Signal()           # the last transmission was one
        self.words = Signal(range(_WORDS + 1))      # in the buffer
        self.fresh = Signal()               # the address is still to be accepted
        self.complete = Signal()            # the four bytes to be written have come
        self.done = Signal()                # what is to be done once has been done
        self.now = Signal()                 # ... is done in this clock
        self.write_now = Signal()           # the register is to be written


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
        m.submodules.sender = sender = Sender(self.interface, 0)
        request, host, rom = _Request(), _Host(), _Rom()
        progress = _Progress(request.total)
        ours_next = self._receive(m, request, host)
        self._decode(m, request, rom)
        fill = self._connect_memories(m, request, progress, sender, rom)
        self._answer_data_stages(m, request, host, progress, sender, ours_next)
        self._answer_status_stages(m, request, host, progress, sender)
        self._access_registers(m, request, progress, fill)
        self._advance(m, request, progress, sender)
        return m

    def _receive(self, m, request, host):
        """Tokens and packets: what the host does. Returns whether a byte for this endpoint comes."""
        interface, token = self.interface, self.interface.tokenizer
        setup = request.setup
        ours = token.endpoint == 0
        answers = Signal()          # there is an IN data stage
        # Data belong to the token before them. Data after a damaged token are not for us, whatever the last
        # good token was: taken as a SETUP's, they would end the request before it.
        expected = Signal()
        m.d.comb += answers.eq(setup.is_in & (setup.length != 0))
        with m.If(interface.rx_ready_for_response | interface.rx_invalid):
            m.d.usb += expected.eq(0)
        with m.If(token.new_token):
            m.d.usb += [host.came.eq(0), expected.eq(1)]
        ours_next = interface.rx.next & ours & expected
        with m.If(ours_next):
            m.d.usb += host.came.eq(Mux(host.came == 9, 9, host.came + 1))
            with m.If(token.is_setup):
                m.d.usb += setup.eq(Cat(setup.as_value()[8:], interface.rx.payload))
        with m.If(interface.rx_ready_for_response & ours & expected):
            m.d.comb += [
                request.begun.eq(token.is_setup & (host.came == 8)), interface.handshakes_out.ack.eq(request.begun),
                host.data_came.eq(token.is_out & ~answers), host.status_requested.eq(token.is_out & answers),
            ]
        with m.If(token.ready_for_response & ours):
            m.d.comb += [
                host.data_requested.eq(token.is_in & answers),
                interface.handshakes_out.ack.eq(token.is_ping),
            ]
            with m.If(token.is_in & ~answers):
                m.d.comb += host.status_requested.eq(1)
        m.d.usb += request.decoded.eq(request.begun)
        return ours_next

    def _decode(self, m, request, rom):
        """The table of requests (USB 2.0, table 9-4; ``docs/links.md``)."""
        interface, token = self.interface, self.interface.tokenizer
        setup = request.setup
        configured = interface.active_config == 1
        nothing = (setup.value == 0) & (setup.index == 0)
        bare = setup.length == 0
        inside = (setup.index[:2] == 0) & (setup.index[ADDRESS_BITS:] == 0) & (setup.value == 0)

        def case(recipient, number):
            return m.Case(recipient | number << 8)

        with m.If(request.begun):
            m.d.usb += [signal.eq(0) for signal in request.kinds]
            with m.Switch(setup.as_value()[:16]):
                for recipient in (_OF_DEVICE, _OF_INTERFACE):
                    with case(recipient, _GET_STATUS):
                        with m.If(nothing):
                            m.d.usb += request.give(rom, bytes(2))
                with case(_OF_ENDPOINT, _GET_STATUS):
                    with m.If((setup.index == USB_STREAM) & self.halted):
                        m.d.usb += request.give(rom, bytes((1, 0)))
                    with m.Elif((setup.index == USB_STREAM) | (setup.index[:7] == 0)):
                        m.d.usb += request.give(rom, bytes(2))
                with case(_TO_ENDPOINT, _CLEAR_FEATURE):
                    with m.If(bare & (setup.value == _ENDPOINT_HALT) & (setup.index == USB_STREAM)):
                        m.d.usb += request.act(request.restarts)
                    with m.Elif(bare & (setup.value == _ENDPOINT_HALT) & (setup.index[:7] == 0)):
                        m.d.usb += request.act()
                with case(_TO_ENDPOINT, _SET_FEATURE):
                    with m.If(bare & configured & (setup.value == _ENDPOINT_HALT) & (setup.index == USB_STREAM)):
                        m.d.usb += request.act(request.halts)
                with case(_TO_DEVICE, _SET_ADDRESS):
                    with m.If(bare & (setup.index == 0) & (setup.value < 128)):
                        m.d.usb += request.act(request.addresses)
                with case(_OF_DEVICE, _GET_DESCRIPTOR):
                    for speed in (False, True) if self.both else (False,):
                        with m.If(self.high == speed):
                            with m.Switch(setup.value):
                                for (of, index), answer in descriptors(self.serial, speed, self.both).items():
                                    with m.Case(of << 8 | index):
                                        m.d.usb += request.give(rom, answer)
                with case(_OF_DEVICE, _GET_CONFIGURATION):
                    with m.If(nothing):
                        with m.If(configured):
                            m.d.usb += request.give(rom, b"\x01")
                        with m.Else():
                            m.d.usb += request.give(rom, b"\x00")
                with case(_TO_DEVICE, _SET_CONFIGURATION):
                    with m.If(bare & (setup.index == 0) & (setup.value < 2)):
                        m.d.usb += request.act(request.configures, request.restarts)
                with case(_OF_INTERFACE, _GET_INTERFACE):
                    with m.If(configured & nothing):
                        m.d.usb += request.give(rom, b"\x00")
                with case(_TO_INTERFACE, _SET_INTERFACE):
                    with m.If(bare & configured & nothing):
                        m.d.usb += request.act(request.restarts)
                with case(_VENDOR_IN, UsbRequest.MICROSOFT):
                    with m.If((setup.index == MICROSOFT_INDEX) & (setup.value == 0)):
                        m.d.usb += request.give(rom, microsoft_set())
                with case(_VENDOR_IN, UsbRequest.READ):
                    with m.If(inside & ~bare & (setup.length <= USB_BURST_BYTES) & (setup.length[:2] == 0)
                              & (setup.index + setup.length <= 1 << ADDRESS_BITS)):
                        m.d.usb += [request.reads.eq(1), request.total.eq(setup.length)]
                with case(_VENDOR_OUT, UsbRequest.WRITE):
                    with m.If(inside & (setup.length == 4)):
                        m.d.usb += request.writes.eq(1)
        with m.If(self.reset | (token.new_token & token.is_setup)):
            m.d.usb += [signal.eq(0) for signal in request.kinds]

    def _connect_memories(self, m, request, progress, sender, rom):
        """The bytes of a packet come from the ROM, or from the buffer of registers. Returns the buffer's write port."""
        m.submodules.rom = bytes_of = memory.Memory(shape=8, depth=1 << 10, init=rom.bytes)
        m.submodules.buffer = buffer = memory.Memory(shape=32, depth=_WORDS, init=[])
        from_rom = bytes_of.read_port(domain="usb")
        fill = buffer.write_port(domain="usb")
        from_buffer = buffer.read_port(domain="usb")
        lane = Signal(2)
        with m.If(sender.fetch):
            m.d.usb += lane.eq(sender.next)
        m.d.comb += [
            from_rom.addr.eq(progress.at + sender.next), from_buffer.addr.eq(sender.next[2:]),
            from_rom.en.eq(sender.fetch), from_buffer.en.eq(sender.fetch),
            sender.payload.eq(Mux(request.reads, Array(from_buffer.data[8 * k:8 * k + 8] for k in range(4))[lane],
                                  from_rom.data)),
        ]
        return fill

    def _answer_data_stages(self, m, request, host, progress, sender, ours_next):
        """Data stages: a packet of the answer, or the four bytes for a register."""
        interface, token = self.interface, self.interface.tokenizer
        left = progress.left
        m.d.comb += sender.length.eq(Mux(
            progress.in_status | progress.status, 0, Mux(left > CONTROL_PACKET, CONTROL_PACKET, left)))
        with m.If(host.data_requested):
            m.d.comb += [
                sender.go.eq(request.gives | (request.reads & progress.buffered)),
                interface.handshakes_out.nak.eq(request.reads & ~progress.buffered),
                interface.handshakes_out.stall.eq(~(request.gives | request.reads)),
            ]
        # The host sends the bytes again if it has not heard the acknowledgement.
        with m.If(token.new_token & token.is_out):
            m.d.usb += progress.complete.eq(0)
        with m.If(ours_next & token.is_out):
            m.d.usb += self.command.p.wdata.eq(Cat(self.command.p.wdata[8:], interface.rx.payload))
        with m.If(host.data_came):
            taken = request.writes & (host.came == 4)
            m.d.comb += [interface.handshakes_out.ack.eq(taken), interface.handshakes_out.stall.eq(~taken)]
            m.d.usb += progress.complete.eq(taken)

    def _answer_status_stages(self, m, request, host, progress, sender):
        """Status stages: what is to be done once is done here."""
        interface, token = self.interface, self.interface.tokenizer
        setup = request.setup
        with m.If(host.status_requested & token.is_out):
            m.d.comb += [
                interface.handshakes_out.ack.eq(request.gives | request.reads),
                interface.handshakes_out.stall.eq(~(request.gives | request.reads)),
            ]
        with m.Elif(host.status_requested & request.writes & progress.complete & ~progress.done):
            m.d.comb += [interface.handshakes_out.nak.eq(1), progress.write_now.eq(1)]
        with m.Elif(host.status_requested):
            sensible = request.acts | request.gives | (request.writes & progress.done)
            m.d.comb += [progress.status.eq(1), sender.go.eq(sensible), interface.handshakes_out.stall.eq(~sensible)]
            m.d.comb += progress.now.eq(request.acts & ~progress.done)
            m.d.usb += progress.done.eq(request.acts | progress.done)
        with m.If(sender.go):
            m.d.usb += progress.in_status.eq(progress.status)
        m.d.comb += [
            interface.address_changed.eq(sender.acked & progress.in_status & request.addresses),
            interface.new_address.eq(setup.value),
            interface.config_changed.eq(progress.now & request.configures), interface.new_config.eq(setup.value),
            self.restart.eq((progress.now & request.restarts) | self.reset),
        ]
        with m.If(self.restart):
            m.d.usb += self.halted.eq(0)
        with m.Elif(progress.now & request.halts):
            m.d.usb += self.halted.eq(1)

    def _access_registers(self, m, request, progress, fill):
        """Reads registers into the buffer, or writes one. An access under way is waited for, even if its request has
        been abandoned."""
        setup = request.setup
        command, reply = self.command, self.reply
        stale = Signal()
        m.d.comb += [fill.addr.eq(progress.words), fill.data.eq(reply.p)]
        with m.FSM(domain="usb"):
            with m.State("IDLE"):
                m.d.usb += [stale.eq(0), command.p.write.eq(request.writes)]
                with m.If(progress.fresh):
                    m.d.usb += [command.p.addr.eq(setup.index), progress.fresh.eq(0)]
                read_now = request.reads & ~progress.buffered & (progress.left != 0)
                with m.If(~request.begun & ~progress.fresh & (read_now | progress.write_now)):
                    m.d.usb += command.valid.eq(1)
                    m.next = "ACCESS"
            with m.State("ACCESS"):
                with m.If(command.ready):
                    m.d.usb += command.valid.eq(0)
                with m.If(request.begun):
                    m.d.usb += stale.eq(1)
                m.d.comb += reply.ready.eq(1)
                with m.If(reply.valid):
                    m.next = "IDLE"
                    with m.If(~stale & ~request.begun & command.p.write):
                        m.d.usb += progress.done.eq(1)
                    with m.Elif(~stale & ~request.begun):
                        m.d.comb += fill.en.eq(1)
                        m.d.usb += [
                            command.p.addr.eq(command.p.addr + 4), progress.words.eq(progress.words + 1),
                            progress.buffered.eq(
                                (progress.words == _WORDS - 1) | ((progress.words + 1) << 2 == progress.left)),
                        ]

    def _advance(self, m, request, progress, sender):
        """To the next packet of an answer, or to the next request."""
        interface = self.interface
        with m.If(sender.acked & ~progress.in_status):
            m.d.usb += [
                progress.at.eq(progress.at + CONTROL_PACKET), progress.left.eq(progress.left - sender.length),
                interface.tx_pid_toggle.eq(interface.tx_pid_toggle ^ 1), progress.buffered.eq(0), progress.words.eq(0),
            ]
        with m.If(request.begun):
            m.d.usb += [
                interface.tx_pid_toggle.eq(1), progress.in_status.eq(0), progress.fresh.eq(1), progress.buffered.eq(0),
                progress.words.eq(0), progress.left.eq(0), progress.done.eq(0), progress.complete.eq(0),
            ]
        with m.If(request.decoded):
            m.d.usb += [progress.at.eq(request.start), progress.left.eq(request.total)]
