"""The board of a bench as a link of the host's: the unmodified recorder runs against it."""

from typing import Any

from cocotb.task import resume
from cocotb.triggers import Event, First, Timer
from hypermon.hdl.layout import REGISTERS, Control
from hypermon.host.link import Outage

from .cocotb_models import PbxMaster, StreamSink, now_ps

__all__ = ["BENCH_URI", "BenchLink"]

#: In ``recording.json``, as the board.
BENCH_URI = "bench:"

#: Clocks for which :meth:`BenchLink.stream` waits for data.
_WAIT_CLOCKS = 1 << 12
_CONTROL = REGISTERS["CONTROL"].offset


class BenchLink:
    """See :class:`hypermon.host.link.Link`. Its methods block, and simulation time advances inside them only: call them
    in a function that ``cocotb.task.bridge`` runs.

    Parameters
    ----------
    bus, sink : masters of the board's host bus and stream.
    running : the board's output of that name.
    clock_ps : period of the board's clock.

    Members
    -------
    ended : to be set when no node will write any more.
    enabled : set at each start of a capture.
    zero_ps : simulation time of the board's time 0; None before.
    """

    slow = away = False
    slowness = 1.0
    played = None

    def __init__(self, bus: PbxMaster, sink: StreamSink, running: Any, clock_ps: int):
        self.uri = BENCH_URI
        self.outages: list[Outage] = []
        self.ended = False
        self.enabled = Event()
        self.zero_ps: int | None = None
        self._bus, self._sink, self._running, self._clock_ps = bus, sink, running, clock_ps
        self._bytes = bytearray()

    def read(self, address: int) -> int:
        return int(resume(self._bus.read)(address))

    def write(self, address: int, value: int) -> None:
        resume(self._write)(address, value)

    async def _write(self, address: int, value: int) -> None:
        starts = address == _CONTROL and bool(value & Control.ENABLE) and self.zero_ps is None
        await self._bus.write(address, value)
        if starts:
            while not int(self._running.value):
                await Timer(self._clock_ps, "step")
            self.enabled.set()

    def read_burst(self, address: int, words: int) -> bytes:
        return b"".join(self.read(address + 4 * k).to_bytes(4, "little") for k in range(words))

    def stream(self, limit: int) -> bytes:
        """Up to that many bytes. Waits some thousand clocks for the first."""
        return bytes(resume(self._stream)(limit))

    async def _stream(self, limit: int) -> bytes:
        sink = self._sink
        if not self._bytes and not sink.blocks:
            sink.arrived.clear()
            await First(sink.arrived.wait(), Timer(_WAIT_CLOCKS * self._clock_ps, "step"))
        while sink.blocks:
            self._bytes += sink.blocks.pop(0)
        taken = bytes(self._bytes[:limit])
        del self._bytes[:limit]
        return taken

    def discard(self) -> None:
        self._bytes.clear()
        self._sink.blocks.clear()

    @property
    def board_ps(self) -> int:
        """Board time; 0 before the start."""
        return 0 if self.zero_ps is None else now_ps() - self.zero_ps

    def close(self) -> None:
        """A bench ends with its simulation."""
