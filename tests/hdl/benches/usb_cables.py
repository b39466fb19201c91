"""The other end of a USB cable at full speed, clock by clock: through a UTMI PHY, or on D+ and D- themselves.

Each cable has ``idle(microseconds)`` and ``exchange(packet)``: sends a packet, and gives what the device answers,
or b"" if it says nothing, which is ``expected``.
"""

from cocotb.triggers import Timer

__all__ = ["CABLES"]

_SE0, _J, _K = 0, 1, 2
#: D+ and D-.
_LEVELS = ((0, 0), (1, 0), (0, 1))


class _Utmi:
    """Bytes at a UTMI bus: a clock each, though a real one takes 40, because a simulation is slow."""

    def __init__(self, dut):
        self.dut = dut
        self.line_state, self.rx_active, self.rx_valid, self.rx_data, self.tx_ready = _J, 0, 0, 0, 0

    async def clock(self, clocks: int = 1) -> None:
        dut = self.dut
        dut.utmi_line_state.value, dut.utmi_tx_ready.value = self.line_state, self.tx_ready
        dut.utmi_rx_active.value, dut.utmi_rx_valid.value = self.rx_active, self.rx_valid
        dut.utmi_rx_data.value = self.rx_data
        for _ in range(clocks):
            await Timer(8, "ns")
            dut.usb_clk.value = 1
            await Timer(8, "ns")
            dut.usb_clk.value = 0
            await Timer(1, "ps")

    @property
    def sent(self) -> int | None:
        """The byte that the device sends."""
        return int(self.dut.utmi_tx_data.value) if int(self.dut.utmi_tx_valid.value) else None

    async def idle(self, us: int) -> None:
        await self.clock(60 * us)

    async def exchange(self, packet: bytes, expected: bool = True) -> bytes:
        self.line_state, self.rx_active = _K, 1
        await self.clock(2)
        for self.rx_data in packet:
            self.rx_valid = 1
            await self.clock()
            self.rx_valid = 0
        self.rx_active, self.line_state = 0, _J
        for _ in range(120 if expected else 4):
            await self.clock()
            if self.sent is not None:
                break
        came = bytearray()
        self.tx_ready = 1
        while (byte := self.sent) is not None:
            came.append(byte)
            await self.clock()
        self.tx_ready = 0
        await self.clock(12)
        return bytes(came)


class _Pins:
    """Bits on D+ and D- at 12 Mbit/s (USB 2.0, 7.1): NRZI, stuffed, four clocks of ``usb_io`` each."""

    def __init__(self, dut):
        self.dut = dut

    async def _bit(self, state: int) -> int | None:
        """A bit time; what the device drives at its end: J, K, SE0 or None."""
        dut = self.dut
        for quarter in range(4):
            dut.usb_io_clk.value, dut.usb_clk.value = 1, quarter < 2
            if not quarter:
                dut.usb_d_p_i.value, dut.usb_d_n_i.value = _LEVELS[state]
            await Timer(10, "ns")
            dut.usb_io_clk.value = 0
            await Timer(10, "ns")
        if not int(dut.usb_d_p_oe.value):
            return None
        return _LEVELS.index((int(dut.usb_d_p_o.value), int(dut.usb_d_n_o.value)))

    async def idle(self, us: int) -> None:
        for _ in range(12 * us):
            await self._bit(_J)

    async def exchange(self, packet: bytes, expected: bool = True) -> bytes:
        state, ones = _J, 0
        for bit in [*b"\0\0\0\0\0\0\0\1", *(byte >> k & 1 for byte in packet for k in range(8))]:
            ones = ones + 1 if bit else 0
            state = state if bit else _J ^ _K ^ state
            await self._bit(state)
            if ones == 6:
                ones, state = 0, _J ^ _K ^ state
                await self._bit(state)
        for state in (_SE0, _SE0, _J):
            await self._bit(state)
        states = []
        # 16 to 18 bit times until an answer begins (7.1.19.1).
        for wait in range(2000):
            driven = await self._bit(_J)
            if driven is not None:
                states.append(driven)
            elif states or wait > (30 if expected else 4):
                break
        return self._decoded(states)

    @staticmethod
    def _decoded(states: list[int]) -> bytes:
        bits, last, ones = [], _J, 0
        for state in states:
            if state == _SE0:
                break
            bit, last = int(state == last), state
            if ones == 6:
                assert not bit, "stuffing"
                ones = 0
                continue
            ones = ones + 1 if bit else 0
            bits.append(bit)
        if not bits:
            return b""
        start = bits.index(1) + 1    # behind SYNC
        assert not (len(bits) - start) % 8, bits
        return bytes(sum(bits[at + k] << k for k in range(8)) for at in range(start, len(bits), 8))


CABLES = {"utmi": _Utmi, "pins": _Pins}
