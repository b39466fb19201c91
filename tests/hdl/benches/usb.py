"""The USB device behind each kind of PHY: enumeration, a register, the stream."""

import cocotb
from hypermon.hdl.layout import USB_STREAM, UsbRequest
from hypermon.hdl.transport.usb.descriptors import descriptors

from ..harness.usb_packets import ACK, DATA0, DATA1, IN, NAK, OUT, SETUP, data, pid, setup, token
from .case import CASE
from .usb_cables import CABLES

_ADDRESS = 9


class _Host:
    """Control transfers without errors."""

    def __init__(self, cable):
        self.cable, self.address = cable, 0

    async def _in(self, endpoint: int = 0) -> bytes:
        """A data packet, with its PID and without its sum; acknowledged."""
        for _ in range(1000):
            came = await self.cable.exchange(token(IN, endpoint, self.address))
            if came != pid(NAK):
                break
        assert came == data(came[0] & 15, came[1:-2]), came.hex()
        assert await self.cable.exchange(pid(ACK), False) == b""
        return came[:-2]

    async def _said(self, first: bytes, second: bytes) -> bytes:
        assert await self.cable.exchange(first, False) == b""
        return await self.cable.exchange(second)

    async def read(self, *request: int) -> bytes:
        assert await self._said(token(SETUP, 0, self.address), setup(*request)) == pid(ACK)
        came, toggle = b"", DATA1
        while len(came) < request[-1]:
            packet = await self._in()
            assert packet[:1] == pid(toggle)
            came, toggle = came + packet[1:], DATA0 ^ DATA1 ^ toggle
            if len(packet) <= 64:
                break
        assert await self._said(token(OUT, 0, self.address), data(DATA1, b"")) == pid(ACK)
        return came

    async def act(self, *request: int) -> None:
        assert await self._said(token(SETUP, 0, self.address), setup(*request, 0)) == pid(ACK)
        assert await self._in() == pid(DATA1)

    async def stream(self, size: int) -> bytes:
        came, toggle = b"", DATA0
        while len(came) < size:
            packet = await self._in(USB_STREAM & 15)
            assert packet[:1] == pid(toggle)
            came, toggle = came + packet[1:], DATA0 ^ DATA1 ^ toggle
        return came


@cocotb.test(timeout_time=60, timeout_unit="ms")
async def enumeration(dut):
    """All that a host asks a new device, then a register, and a block of the stream."""
    cable = CABLES[CASE["phy"]](dut)
    dut.usb_clk.value, dut.usb_rst.value = 0, 0
    if CASE["phy"] == "pins":
        dut.usb_io_clk.value = 0
    await cable.idle(20)
    host = _Host(cable)
    due = descriptors(CASE["serial"], False, CASE["phy"] != "pins")
    assert await host.read(0x80, 6, 0x100, 0, 64) == due[1, 0]
    await host.act(0x00, 5, _ADDRESS, 0)
    host.address = _ADDRESS
    for (kind, index), answer in due.items():
        assert await host.read(0x80, 6, kind << 8 | index, 0, 255) == answer
    await host.act(0x00, 9, 1, 0)
    # The bench's board answers with the address; its stream is a block of bytes that count up.
    assert await host.read(0xc0, UsbRequest.READ, 0, 0x128, 8) == b"\x28\1\0\0\x2c\1\0\0"
    assert await host.stream(CASE["block"]) == bytes(k & 255 for k in range(CASE["block"]))
