"""The device on a UTMI bus, at full speed: packets bit for bit as they are on the cable."""

import pytest
from hypermon.hdl.layout import UsbRequest

from ...harness.usb_endpoint import simulate
from ...harness.usb_packets import ACK, DATA0, DATA1, IN, NAK, OUT, SETUP, data, pid, token
from ...harness.usb_packets import setup as setup_packet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_on_the_bus():
    from hypermon.hdl.transport.usb.descriptors import Type, descriptors
    from hypermon.hdl.transport.usb.link import Usb
    from luna.gateware.interface.utmi import UTMIInterface

    bus = UTMIInterface()
    dut = Usb(bus, "5")
    block = bytes(range(64))

    async def bench(context):
        tick = context.tick("usb")

        async def send(packet: bytes, answered: bool = True) -> bytes:
            context.set(bus.rx_active, 1)
            await tick.repeat(2)
            for byte in packet:
                context.set(bus.rx_data, byte)
                context.set(bus.rx_valid, 1)
                await tick
                context.set(bus.rx_valid, 0)
            context.set(bus.rx_active, 0)
            await tick
            came = bytearray()
            for _ in range(70 if answered else 10):
                if context.get(bus.tx_valid):
                    break
                await tick
            context.set(bus.tx_ready, 1)
            while context.get(bus.tx_valid):
                came.append(context.get(bus.tx_data))
                await tick
            context.set(bus.tx_ready, 0)
            await tick.repeat(4)
            return bytes(came)

        async def setup(*request: int, spoilt: bool = False) -> bytes:
            packet = setup_packet(*request)
            await send(token(SETUP), False)
            return await send(packet[:-1] + bytes([packet[-1] ^ spoilt]))

        context.set(bus.line_state, 1)
        await tick.repeat(400)
        # A SETUP with a wrong sum is not answered, and the next one is.
        assert await setup(0x80, 6, Type.DEVICE << 8, 0, 18, spoilt=True) == b""
        assert await setup(0x80, 6, Type.DEVICE << 8, 0, 18) == pid(ACK)
        device = data(DATA1, descriptors("5", False)[Type.DEVICE, 0])
        assert await send(token(IN)) == device
        assert await send(token(IN)) == device
        await send(pid(ACK), False)
        await send(token(OUT), False)
        assert await send(data(DATA1, b"")) == pid(ACK)
        # A register.
        assert await setup(0xc0, UsbRequest.READ, 0, 0x40, 4) == pid(ACK)
        assert await send(token(IN)) == pid(NAK)
        assert context.get(dut.command.valid)
        assert context.get(dut.command.p).addr == 0x40
        context.set(dut.command.ready, 1)
        await tick
        context.set(dut.command.ready, 0)
        context.set(dut.reply.p, 0x12345678)
        context.set(dut.reply.valid, 1)
        await tick
        context.set(dut.reply.valid, 0)
        assert await send(token(IN)) == data(DATA1, b"\x78\x56\x34\x12")
        await send(pid(ACK), False)
        await send(token(OUT), False)
        assert await send(data(DATA1, b"")) == pid(ACK)
        # The stream, when the device is configured.
        assert await send(token(IN, 1)) == b""
        assert await setup(0x00, 9, 1, 0, 0) == pid(ACK)
        assert await send(token(IN)) == data(DATA1, b"")
        await send(pid(ACK), False)
        for at, byte in enumerate(block):
            context.set(dut.bytes.p, {"data": byte, "last": at == len(block) - 1})
            context.set(dut.bytes.valid, 1)
            assert context.get(dut.bytes.ready)
            await tick
        context.set(dut.bytes.valid, 0)
        assert await send(token(IN, 1)) == data(DATA0, block)
        assert await send(token(IN, 1)) == data(DATA0, block)
        await send(pid(ACK), False)
        assert await send(token(IN, 1)) == pid(NAK)

    simulate(dut, bench)
