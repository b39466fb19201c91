"""The three monitoring environments of section 5.2: none, software to node memory, hardware by the port."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from hypermon.sim.ipsc.machine.cpu import Cpu
from hypermon.sim.ipsc.machine.noise import Clocks, Noise
from hypermon.sim.ipsc.machine.nx2 import Kind

__all__ = ["PORTS", "Hardware", "LocalClock", "Off", "Port", "Recorder", "Software"]


@dataclass(frozen=True)
class Port:
    """A node's port, and how its software uses it.

    Parameters
    ----------
    bits : of data, 4 or 8.
    writes : for so many bits: 2 where the strobe's rising edge counts, 1 where both do.
    delay : iterations of the null loop after them, unless a run has its own.
    stamped : the board stamps events, so records have no time of the node's own; and they need no filler in front.
    """

    bits: int = 4
    writes: int = 2
    delay: int = 20
    stamped: bool = False

    @property
    def strobe(self) -> int:
        """The strobe's bit."""
        return 1 << self.bits

    def framed(self, record: bytes) -> bytes:
        """What is written for an event, a nibble or a byte each: how long the record is, then the record."""
        if self.bits == 8:
            return bytes([len(record)]) + record
        nibbles = b"".join(bytes([byte & 15, byte >> 4]) for byte in record)
        return bytes([len(record)] if self.stamped else [0, len(record)]) + nibbles

    def length(self, size: int) -> int:
        """Of :meth:`framed`, for a record of so many bytes."""
        return 1 + size if self.bits == 8 else (1 if self.stamped else 2) + 2 * size

    def period_us(self, cpu: Cpu, delay: int | None = None) -> float:
        """From nibble to nibble, or byte to byte, with so many iterations between them; None: the port's.

        A byte takes as long as a nibble: how much of a nibble's cycles is extraction that a byte would not need is not
        printed.
        """
        saved = (Port().writes - self.writes) * cpu.us(cpu.write)
        return cpu.period_us(self.delay if delay is None else delay) - saved


#: Who records by hardware: the board of 1990, whose first byte is a filler nibble and the record's length, which is the
#: framing of ``hypermon decode --framing event``; the extended board; the same with ports of eight bits.
PORTS = {"hardware": Port(), "extended": Port(4, 1, 0, True), "wide": Port(8, 1, 0, True)}


class LocalClock:
    """A node's own clock: microseconds, set by hand, and too fast or too slow; nobody knows by how much."""

    def __init__(self, random: Random, clocks: Clocks):
        self.rate = 1 + clocks.between(random, clocks.drift_ppm) * 1e-6
        self.offset = clocks.offset_us + clocks.between(random, clocks.offset_us)

    def read(self, us: float) -> int:
        """What it shows at a true time."""
        return int(us * self.rate + self.offset)


class Recorder(Protocol):
    """What a node's instrumentation does with an event."""

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        """Records an event that happens at ``us``; gives the time at which the node goes on."""


class Off:
    """Raw: no event, no cost."""

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        return us


class Software:
    """Records in node memory.

    Members
    -------
    trace : the records, one behind the other. ``first``: what the node's clock showed when it began, from which the
        first delta counts.
    """

    def __init__(self, cpu: Cpu, clock: LocalClock):
        self.trace = bytearray()
        self.first: int | None = None
        self._clock, self._byte_us = clock, cpu.us(cpu.record_byte)
        self._before = 0

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        now = self._clock.read(us)
        if self.first is None:
            self.first = self._before = now
        self.trace += kind.pack(kind.id, *fields, now - self._before & 0xffff)
        self._before = now
        return us + kind.size * self._byte_us


class Hardware:
    """Writes to the port: how long the record is, then the record.

    That hardware writes one byte more than software follows from Table 2, where frames less twice the software bytes
    are twice the number of events.

    Parameters
    ----------
    delay : iterations of the null loop between two nibbles; None: the port's.

    Members
    -------
    times, records : of each event, when its first nibble begins, and its bytes without the length.
    period_us : from nibble to nibble.
    """

    def __init__(self, cpu: Cpu, clock: LocalClock, noise: Noise, random: Random, port: Port, delay: int | None = None):
        self.times: list[float] = []
        self.records: list[bytes] = []
        self.port = port
        self._clock, self._random = clock, random
        self._event_us, self._jitter = cpu.us(cpu.event), noise.jitter
        self._before: int | None = None
        self.period_us = port.period_us(cpu, delay)

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        if self.port.stamped:
            record = kind.pack_bare(kind.id, *fields)
        else:
            now = self._clock.read(us)
            record = kind.pack(kind.id, *fields, 0 if self._before is None else now - self._before & 0xffff)
            self._before = now
        us += self._event_us * (1 + self._jitter * (2 * self._random.random() - 1))
        self.times.append(us)
        self.records.append(record)
        return us + self.port.length(len(record)) * self.period_us
