"""Models of the board's surroundings, for cocotb benches: pads, host bus, link.

They read and drive signals at the falling edge of the board's clock, or at times of their own, never at its rising
edge. No rule is therefore needed for the order of actions at the rising edge.
"""

from collections.abc import Callable, Iterable

import cocotb
from cocotb.simtime import get_sim_time
from cocotb.triggers import Event, FallingEdge, Lock, RisingEdge, Timer, with_timeout

from .port_models import Write
from .stalls import stalls

__all__ = ["Pads", "PbxMaster", "StreamSink", "now_ps", "stalls"]


def now_ps() -> int:
    """Simulation time; the simulator's resolution is one picosecond."""
    return int(get_sim_time("step"))


class Pads:
    """The board's input pads: signals ``strobe``, one bit per node, and ``data``, one nibble per node."""

    def __init__(self, strobe, data, initial: Iterable[int]):
        self._strobe, self._data = strobe, data
        self._strobes = self._nibbles = 0
        for node, value in enumerate(initial):
            self._put(node, value)
        strobe.value, data.value = self._strobes, self._nibbles

    def _put(self, node: int, value: int) -> None:
        self._strobes = self._strobes & ~(1 << node) | (value >> 4) << node
        self._nibbles = self._nibbles & ~(0xF << 4 * node) | (value & 0xF) << 4 * node

    async def play(self, writes: Iterable[Write], zero: int) -> None:
        """Play the writes of all ports, in order of time; their time 0 is simulation time ``zero``."""
        now = now_ps()
        for time, node, value in writes:
            if zero + time > now:
                self._flush()
                await Timer(zero + time - now, "step")
                now = zero + time
            self._put(node, value)
        self._flush()

    def _flush(self) -> None:
        self._strobe.value = self._strobes
        self._data.value = self._nibbles


class PbxMaster:
    """Master of the asynchronous bus: four-phase handshake, stable bundle, a separate delay before every step.

    ``delay`` returns the next one in ps. One access at a time; callers queue up.
    """

    def __init__(self, dut, delay: Callable[[], int], timeout_ns: int = 20_000):
        self.dut, self.delay, self.timeout_ns = dut, delay, timeout_ns
        self.accesses = 0
        self._lock = Lock()
        dut.pbx_req.value = 0
        dut.pbx_write.value = 0
        dut.pbx_addr.value = 0
        dut.pbx_wdata.value = 0

    async def _access(self, write: int, address: int, value: int) -> int:
        dut = self.dut
        async with self._lock:
            self.accesses += 1
            await Timer(1 + self.delay(), "step")
            dut.pbx_write.value = write
            dut.pbx_addr.value = address
            dut.pbx_wdata.value = value
            await Timer(1 + self.delay(), "step")
            dut.pbx_req.value = 1
            await with_timeout(RisingEdge(dut.pbx_ack), self.timeout_ns, "ns")
            await Timer(1 + self.delay(), "step")
            result = int(dut.pbx_rdata.value)
            dut.pbx_req.value = 0
            await with_timeout(FallingEdge(dut.pbx_ack), self.timeout_ns, "ns")
        return result

    async def read(self, address: int) -> int:
        """The 32-bit word at a byte address."""
        return await self._access(0, address, 0)

    async def write(self, address: int, value: int) -> None:
        """Write a 32-bit word."""
        await self._access(1, address, value)


class StreamSink:
    """Receives the stream's beats and assembles them into blocks.

    Members
    -------
    ready : called in every clock in which a beat is there; returns whether it is accepted.
    paused : True blocks the stream.
    blocks : whole blocks, in bytes. arrived : set at every one.
    """

    def __init__(self, dut, ready: Callable[[], bool]):
        self.dut, self.ready = dut, ready
        self.paused = False
        self.blocks: list[bytes] = []
        self.arrived = Event()
        self._beats = bytearray()
        dut.stream_ready.value = 0
        self._task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut = self.dut
        valid, ready, data, last, clock = (
            dut.stream_valid, dut.stream_ready, dut.stream_data, dut.stream_last, dut.clk)
        taking = False
        while True:
            await FallingEdge(clock)
            if valid.value == 1:    # an X before the reset is no beat
                take = not self.paused and self.ready()
                if take:
                    self._beats += int(data.value).to_bytes(16, "little")
                    if last.value:
                        self.blocks.append(bytes(self._beats))
                        self._beats.clear()
                        self.arrived.set()
            else:
                take = not self.paused and self.ready()
            if take != taking:
                ready.value = taking = take
