"""The three monitoring environments of section 5.2: none, software to node memory, hardware by the port."""

from random import Random
from typing import Protocol

from hypermon.sim.ipsc.cpu import Cpu
from hypermon.sim.ipsc.noise import Noise
from hypermon.sim.ipsc.nx2 import Kind

__all__ = ["Hardware", "Off", "Recorder", "Software", "LocalClock"]


class LocalClock:
    """A node's own clock: microseconds, set by hand, and too fast or too slow; nobody knows by how much."""

    def __init__(self, random: Random, noise: Noise):
        self.rate = 1 + noise.between(random, noise.drift_ppm) * 1e-6
        self.offset = noise.offset_us + noise.between(random, noise.offset_us)

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
    """Writes to the port: a byte that says how long the record is, then the record.

    The first byte is a filler nibble and the record's length, which is the framing of ``hypermon decode --framing
    event``. That hardware writes one byte more than software follows from Table 2, where frames less twice the software
    bytes are twice the number of events.

    Parameters
    ----------
    delay : iterations of the null loop between nibbles.
    extended : for the extended board: both edges of the strobe count, so a nibble is one write; the length is one
        nibble; and the record has no delta, because the board stamps events.

    Members
    -------
    times, records : of each event, when its first nibble begins, and its bytes without the length.
    period_us : from nibble to nibble. ``head``: nibbles before the record.
    """

    def __init__(self, cpu: Cpu, clock: LocalClock, noise: Noise, random: Random, delay: int, *,
                 extended: bool = False):
        self.times: list[float] = []
        self.records: list[bytes] = []
        self._clock, self._random = clock, random
        self._event_us, self._jitter = cpu.us(cpu.event), noise.jitter
        self._before: int | None = None
        self.period_us = cpu.period_us(delay) - (cpu.us(cpu.write) if extended else 0)
        self.head = 1 if extended else 2
        self._extended = extended

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        if self._extended:
            record = kind.pack_bare(kind.id, *fields)
        else:
            now = self._clock.read(us)
            record = kind.pack(kind.id, *fields, 0 if self._before is None else now - self._before & 0xffff)
            self._before = now
        us += self._event_us * (1 + self._jitter * (2 * self._random.random() - 1))
        self.times.append(us)
        self.records.append(record)
        return us + (self.head + 2 * len(record)) * self.period_us
