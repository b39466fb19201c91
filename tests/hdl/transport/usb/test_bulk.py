"""The bulk endpoint: every byte once, whatever becomes of packets; after a restart, from the next block on."""

import random

import pytest

from ...harness.usb_endpoint import Bus, simulate

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

IDLE = 40


def play(case, blocks: list[bytes], seed: int, high: bool = False) -> None:
    """Runs a case while the blocks are offered."""
    from hypermon.hdl.transport.usb.bulk import UsbBulk

    dut = UsbBulk(1, IDLE)
    rng = random.Random(seed)

    async def source(context):
        for block in blocks:
            for at, byte in enumerate(block):
                context.set(dut.i.p, {"data": byte, "last": at == len(block) - 1})
                context.set(dut.i.valid, 1)
                ready = False
                while not ready:
                    _, _, ready = await context.tick("usb").sample(dut.i.ready)
                context.set(dut.i.valid, 0)

    async def bench(context):
        context.set(dut.high, high)
        context.set(dut.open, 1)
        await case(Bus(context, dut.interface, rng), context, dut, rng)

    simulate(dut, bench, source)


async def ask(bus):
    from luna.gateware.usb.usb2 import USBPacketID

    return await bus.token(USBPacketID.IN, 1)


def made(rng, count: int, most: int) -> list[bytes]:
    return [rng.randbytes(16 * rng.randrange(1, most // 16)) for _ in range(count)]


@pytest.mark.parametrize("high", [False, True], ids=["full", "high"])
def test_every_byte(high):
    rng = random.Random(1)
    blocks = made(rng, 4, 700 if high else 200)
    whole = b"".join(blocks)

    async def case(bus, context, dut, rng):
        came, toggle, sizes = b"", 0, []
        while len(came) < len(whole):
            packet = await ask(bus)
            if packet == "nak":
                await bus.idle(IDLE)
                continue
            if rng.random() < 0.3:  # lost; perhaps the host speaks with another device
                await bus.token(None)
                await bus.acknowledge()
                continue
            assert bus.pid == toggle
            await bus.acknowledge()
            came, toggle = came + packet, toggle ^ 1
            sizes.append(len(packet))
        assert came == whole
        most = 512 if high else 64
        assert max(sizes) == most
        assert await ask(bus) == "nak"

    play(case, blocks, 2, high)


def test_ends():
    """What ends with a full packet has an empty one behind it, once."""
    async def case(bus, context, dut, rng):
        await bus.idle(400)
        for length in (64, 64, 0):
            assert len(await ask(bus)) == length
            await bus.acknowledge()
        await bus.idle(4 * IDLE)
        assert await ask(bus) == "nak"

    play(case, [bytes(128)], 3)


def test_halted():
    async def case(bus, context, dut, rng):
        await bus.idle(200)
        context.set(dut.halted, 1)
        assert await ask(bus) == "stall"
        context.set(dut.halted, 0)
        assert len(await ask(bus)) == 64
        context.set(dut.open, 0)
        assert await ask(bus) is None

    play(case, [bytes(128)], 4)


@pytest.mark.parametrize("seed", range(5))
def test_restart(seed):
    """The first byte behind a restart is the first one of a block that the host has not begun."""
    blocks = [bytes([number]) * 80 for number in range(1, 30)]

    async def case(bus, context, dut, rng):
        await bus.idle(rng.randrange(1, 400))
        before = b""
        for _ in range(rng.randrange(4)):
            packet = await ask(bus)
            if packet != "nak":
                before += packet
                await bus.acknowledge()
        context.set(dut.restart, 1)
        await context.tick("usb")
        context.set(dut.restart, 0)
        await bus.idle(500)
        packet = await ask(bus)
        assert bus.pid == 0
        assert packet == bytes([packet[0]]) * 64
        assert not before or packet[0] > before[-1]
        await bus.acknowledge()
        second = await ask(bus)
        assert second[:16] == packet[:16]
        assert second[16:] == bytes([packet[0] + 1]) * 48

    play(case, blocks, seed)
