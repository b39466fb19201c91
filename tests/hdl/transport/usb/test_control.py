"""The control endpoint: requests as a host makes them, and as it should not."""

import random
import struct

import pytest
from hypermon.hdl.layout import UsbRequest

from ...harness.resets import same_as_fresh
from ...harness.usb_endpoint import Bus, CutError, Cutting, Ported, simulate

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

READ, WRITE = (0xc0, UsbRequest.READ), (0x40, UsbRequest.WRITE)


class Host:
    """A control transfer at a time, with errors on the bus."""

    def __init__(self, context, dut, rng, errors: float = 0.0):
        from luna.gateware.usb.usb2 import USBPacketID

        self.context, self.dut, self.rng, self.errors = context, dut, rng, errors
        self.bus = Bus(context, dut.interface, rng)
        self.pids = USBPacketID

    def fails(self) -> bool:
        return self.rng.random() < self.errors

    async def setup(self, kind, request, value=0, index=0, length=0):
        packet = struct.pack("<BBHHH", kind, request, value, index, length)
        while self.fails():  # a spoilt one is not answered, nor is one behind a spoilt token
            if self.rng.random() < 0.5:
                await self.bus.token(self.pids.SETUP)
                assert await self.bus.data(bytes(b ^ 1 for b in packet), good=False) is None
            else:
                assert await self.bus.data(packet) is None
        assert await self.bus.token(self.pids.SETUP) is None
        assert await self.bus.data(packet) == "ack"

    async def ask(self, empty: bool) -> bytes | str:
        """A packet of the device's; asked for until it does not say nak, and again if it got lost."""
        toggle = None
        while True:
            answer = await self.bus.token(self.pids.IN)
            if answer == "nak":
                continue
            if answer == "stall":
                return answer
            assert toggle in (None, (self.bus.pid, answer))
            toggle = self.bus.pid, answer
            if not self.fails():
                break
            if self.fails():  # the host speaks with another device, whose packet it acknowledges
                await self.bus.token(None)
                await self.bus.acknowledge()
        assert self.bus.pid == (1 if empty else self.due)
        await self.bus.acknowledge()
        self.due ^= 1
        return answer

    async def read(self, kind, request, value=0, index=0, length=0) -> bytes | str:
        await self.setup(kind, request, value, index, length)
        self.due, came = 1, b""
        while len(came) < length:
            packet = await self.ask(False)
            if packet == "stall":
                return packet
            came += packet
            if len(packet) < 64:
                break
        await self.bus.token(self.pids.OUT)
        assert await self.bus.data(b"") == "ack"
        return came

    async def write(self, kind, request, value=0, index=0, data=b"") -> str | None:
        await self.setup(kind, request, value, index, len(data))
        while data:
            if self.fails():
                assert await self.bus.data(data) is None
            await self.bus.token(self.pids.OUT)
            if self.fails():
                assert await self.bus.data(data, good=False) is None
                continue
            answer = await self.bus.data(data)
            if answer == "stall":
                return answer
            assert answer == "ack"
            if not self.fails():  # else the host has not heard it, and sends them again
                break
        self.due = 1
        answer = await self.ask(True)
        return answer or None


def play(case, seed: int, errors: float = 0.0):
    """Runs a case; the registers' accesses are answered, and returned: (address, value or None)."""
    from hypermon.hdl.transport.usb.control import UsbRequests

    dut = UsbRequests("7")
    accesses = []
    rng = random.Random(seed)

    async def registers(context):
        while True:
            while not context.get(dut.command.valid):
                await context.tick("usb")
            command = context.get(dut.command.p)
            accesses.append((command.addr, command.wdata if command.write else None))
            context.set(dut.command.ready, 1)
            await context.tick("usb")
            context.set(dut.command.ready, 0)
            for _ in range(rng.randrange(1, 30)):
                await context.tick("usb")
            context.set(dut.reply.p, len(accesses) << 24 | command.addr)
            context.set(dut.reply.valid, 1)
            await context.tick("usb")
            context.set(dut.reply.valid, 0)

    async def bench(context):
        await case(Host(context, dut, rng, errors), context)

    simulate(dut, bench, registers)
    return accesses


@pytest.mark.parametrize("errors", [0.0, 0.3], ids=["quiet", "noisy"])
def test_registers(errors):
    """Each register is read once and written once, however often its packet is asked for."""
    async def case(host, context):
        await host.write(*WRITE, 0, 0x40, b"\x78\x56\x34\x12")
        came = await host.read(*READ, 0, 0x100, 100)
        words = struct.unpack("<25I", came)
        assert [word & 0xffff for word in words] == [0x100 + 4 * k for k in range(25)]
        assert [word >> 24 for word in words] == list(range(2, 27))
        assert await host.read(*READ, 0, 0x1ffc, 4) == (27 << 24 | 0x1ffc).to_bytes(4, "little")

    accesses = play(case, 1, errors)
    assert accesses == [(0x40, 0x12345678), *((0x100 + 4 * k, None) for k in range(25)), (0x1ffc, None)]


def test_refused():
    async def case(host, context):
        for index, length in ((0x41, 4), (0x40, 6), (0x2000, 4), (0x1ffc, 8), (0, 4100)):
            assert await host.read(*READ, 0, index, length) == "stall"
        assert await host.write(*WRITE, 0, 0x40, bytes(3)) == "stall"
        assert await host.write(*WRITE, 0, 0x42, bytes(4)) == "stall"
        assert await host.read(0x80, 6, 0x400, 0, 64) == "stall"
        assert await host.write(0x00, 9, 2) == "stall"
        assert await host.write(0x00, 5, 128) == "stall"

    assert play(case, 2) == []


def test_given_up():
    """A request in the middle of another one; of a read that was under way nothing comes later."""
    async def case(host, context):
        from hypermon.hdl.transport.usb.descriptors import Type, descriptors

        device = descriptors("7", False)[Type.DEVICE, 0]
        for clocks in range(1, 60, 3):
            await host.setup(*READ, 0, 0x100, 64)
            await host.bus.idle(clocks)
            assert await host.read(0x80, 6, 0x100, 0, 18) == device
            await host.setup(*READ, 0, 0x200, 64)
            await host.bus.idle(clocks)
            assert int.from_bytes(await host.read(*READ, 0, 0x300, 4), "little") & 0xffff == 0x300

    play(case, 3)


def test_forgotten():
    """Behind a bus reset, and behind a SETUP whose data did not come, nothing of the request before is answered."""
    async def case(host, context):
        await host.setup(0x80, 6, 0x100, 0, 18)
        assert await host.bus.token(host.pids.SETUP) is None
        assert await host.bus.token(host.pids.IN) == "stall"
        await host.setup(0x80, 6, 0x100, 0, 18)
        context.set(host.dut.reset, 1)
        await context.tick("usb")
        context.set(host.dut.reset, 0)
        assert await host.bus.token(host.pids.IN) == "stall"

    play(case, 6)


@pytest.mark.parametrize("errors", [0.0, 0.3], ids=["quiet", "noisy"])
def test_standard(errors):
    """Descriptors in packets, an empty one behind a full one; what changes, changes once and when it should."""
    from hypermon.hdl.transport.usb.descriptors import descriptors

    async def case(host, context):
        dut = host.dut
        for high in (False, True):
            context.set(dut.high, high)
            for (kind, index), data in descriptors("7", high).items():
                assert await host.read(0x80, 6, kind << 8 | index, 0, 255) == data
        assert await host.read(0x80, 8, 0, 0, 1) == b"\0"
        context.set(dut.interface.active_config, 1)
        assert await host.read(0x80, 8, 0, 0, 1) == b"\1"
        await host.write(0x02, 3, 0, 0x81)
        assert context.get(dut.halted)
        assert await host.read(0x82, 0, 0, 0x81, 2) == b"\1\0"
        await host.write(0x02, 1, 0, 0x81)
        assert not context.get(dut.halted)

    play(case, 4, errors)


def test_states():
    """Requests that USB 2.0 allows in a state alone (section 9.4): before and after the device is configured."""
    async def case(host, context):
        dut = host.dut
        for kind in (0x80, 0x81):                                                       # GET_STATUS
            assert await host.read(kind, 0, 0, 0, 2) == b"\0\0"
            assert await host.read(kind, 0, 0, 1, 2) == "stall"
        for endpoint, status in ((0, b"\0\0"), (0x80, b"\0\0"), (0x81, b"\0\0"), (1, "stall"), (0x82, "stall")):
            assert await host.read(0x82, 0, 0, endpoint, 2) == status
        for endpoint, refused in ((0, None), (0x80, None), (0x81, None), (0x82, "stall")):
            assert await host.write(0x02, 1, 0, endpoint) == refused                    # CLEAR_FEATURE
        assert await host.write(0x02, 1, 1, 0) == "stall"
        for configured in (0, 1):
            context.set(dut.interface.active_config, configured)
            refused = None if configured else "stall"
            assert await host.read(0x81, 10, 0, 0, 1) == (b"\0" if configured else "stall")     # GET_INTERFACE
            assert await host.write(0x01, 11, 0, 0) == refused                          # SET_INTERFACE
            assert await host.write(0x01, 11, 1, 0) == "stall"
            assert await host.write(0x02, 3, 0, 0x81) == refused                        # SET_FEATURE
            assert context.get(dut.halted) == configured
        assert await host.write(0x02, 3, 0, 0) == "stall"
        assert await host.read(0x80, 8, 1, 0, 1) == "stall"                             # GET_CONFIGURATION
        assert await host.read(0xc0, UsbRequest.MICROSOFT, 0, 7, 10) != "stall"
        assert await host.read(0xc0, UsbRequest.MICROSOFT, 0, 6, 10) == "stall"

    assert play(case, 7) == []


def test_address():
    """The address changes when the status is acknowledged, and not when another device's packet is."""
    async def case(host, context):
        interface = host.dut.interface
        await host.setup(0x00, 5, 77)
        assert await host.bus.token(host.pids.IN) == b""
        await host.bus.token(None)
        context.set(interface.handshakes_in.ack, 1)
        assert not context.get(interface.address_changed)
        context.set(interface.handshakes_in.ack, 0)
        assert await host.bus.token(host.pids.IN) == b""
        context.set(interface.handshakes_in.ack, 1)
        assert context.get(interface.address_changed)
        assert context.get(interface.new_address) == 77

    play(case, 5)


async def some_requests(host, context, rng):
    """Transfers one after the other, for ever."""
    while True:
        kind = rng.randrange(4)
        if kind == 0:
            await host.read(0x80, 6, rng.choice((0x100, 0x200)), 0, rng.choice((9, 64, 255)))
        elif kind == 1:
            await host.read(*READ, 0, 4 * rng.randrange(100), 4 * rng.randrange(1, 40))
        elif kind == 2:
            await host.write(*WRITE, 0, 4 * rng.randrange(100), rng.randbytes(4))
        else:
            await host.write(0x02, 3, 0, 0x81)


async def settled_answers(host, context):
    """What a host asks first, and the answers, without the numbers of accesses."""
    context.set(host.dut.interface.active_config, 1)
    return [
        await host.bus.token(host.pids.IN), await host.read(0x80, 6, 0x200, 0, 255),
        await host.read(0x82, 0, 0, 0x81, 2),
        await host.write(*WRITE, 0, 0x40, b"\x78\x56\x34\x12"),
        [word & 0xffff for word in struct.unpack("<20I", await host.read(*READ, 0, 0x100, 80))],
        await host.write(0x00, 9, 1), await host.read(0x80, 8, 0, 0, 1)]


@pytest.mark.parametrize("seed", range(3))
def test_a_bus_reset_at_any_moment(seed):
    """Ten times, in transfers that it cuts off: after it, every answer is that of an endpoint that was never asked."""
    fresh, rng = [], random.Random(seed)

    async def first(host, context):
        fresh.extend(await settled_answers(host, context))

    async def case(host, context):
        interface = host.dut.interface
        context.set(interface.active_config, 1)
        for _ in range(10):
            cutting = Cutting(context, rng.randrange(2, 400))
            with pytest.raises(CutError):
                await some_requests(Host(cutting, host.dut, rng, 0.1), cutting, rng)
            # The device hears nothing in a reset, which is longer than the packet that it may be sending.
            for given in (interface.tokenizer.new_token, interface.tokenizer.ready_for_response, interface.rx.next,
                          interface.rx_ready_for_response, interface.rx_invalid, interface.handshakes_in.ack):
                context.set(given, 0)
            context.set(interface.tx.ready, 1)
            await context.tick("usb").repeat(70)
            context.set(interface.tx.ready, 0)
            context.set(host.dut.reset, 1)
            await context.tick("usb")
            context.set(host.dut.reset, 0)
            assert await settled_answers(host, context) == fresh

    play(first, seed)
    play(case, seed)


def bus():
    """A host that asks for descriptors and registers, and listens or not."""
    steps, levels = [], {}

    def token(name, rng):
        yield {**{f"bus_tokenizer_is_{kind}": int(kind == name) for kind in ("in", "out", "setup", "ping")},
               "bus_tokenizer_endpoint": int(rng.random() < 0.05), "bus_tokenizer_new_token": 1}
        yield from [{}] * rng.randrange(1, 4)

    def data(payload, rng):
        yield from ({"bus_rx_next": 1, "bus_rx_payload": byte} for byte in payload)
        yield {"bus_rx_invalid": 1} if rng.random() < 0.1 else {"bus_rx_ready_for_response": 1}

    def transfer(rng):
        yield from token("setup", rng)
        yield from data(struct.pack("<BBHHH", *rng.choice((
            (0x80, 6, 0x100, 0, 18), (*READ, 0, 0x40, 8), (*READ, 0, 0x80, 80), (*WRITE, 0, 0x44, 4),
            (0x02, 3, 0, 0x81, 0), (0x00, 5, 77, 0, 0), (0x00, 9, 1, 0, 0)))), rng)
        for _ in range(rng.randrange(8)):
            kind = rng.choice(("in", "in", "in", "out"))
            yield from token(kind, rng)
            yield from data(rng.randbytes(rng.choice((0, 4))), rng) if kind == "out" else [
                {"bus_tokenizer_ready_for_response": 1}, *[{}] * rng.randrange(4, 90), {"bus_handshakes_in_ack": 1}]

    def play(traffic):
        rng = traffic.rng
        if not steps:
            steps.extend(transfer(rng))
        step = steps.pop(0)
        levels.update({name: value for name, value in step.items() if "_is_" in name or name.endswith("endpoint")})
        pulses = dict.fromkeys((
            "bus_tokenizer_new_token", "bus_tokenizer_ready_for_response", "bus_rx_next", "bus_rx_ready_for_response",
            "bus_rx_invalid", "bus_handshakes_in_ack", "reset"), 0)
        return {**pulses, **levels, **step}
    return play


def test_power_up_reset():
    """In each state of the endpoint and of its sender."""
    from hypermon.hdl.transport.usb.control import UsbRequests

    same_as_fresh(
        lambda: Ported(UsbRequests("7")), {"reply.valid": lambda rng: rng.random() < 0.1}, player=bus, domain="usb",
        settings={"bus_active_config": lambda rng: rng.randrange(2), "high": lambda rng: rng.getrandbits(1)},
        before=300, after=300, meaning={
            "bus_tx_payload": "bus_tx_byte", "bus_tx_first": "bus_tx_valid", "bus_tx_last": "bus_tx_valid",
            "bus_new_address": "bus_address_changed", "bus_new_config": "bus_config_changed"})
