"""The three monitoring environments of section 5.2: none, software to node memory, hardware through the port."""

from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.noise import Clocks, Noise
from hypermon.studies.ipsc.machine.nx2 import Kind
from hypermon.studies.machine.core.ports import Off, Recorder
from hypermon.studies.machine.core.ports import Port as BarePort

__all__ = ["PORTS", "WITH_EVENT", "WITH_EVENT_PORT", "Adapter", "Hardware", "LocalClock", "Off", "Port", "Recorder",
           "Software", "StorePort"]


@dataclass(frozen=True)
class Port(BarePort):
    """A port of the iPSC/2's nodes.

    Parameters
    ----------
    delay : iterations of the null loop after a value's writes, unless a run sets its own.
    """

    delay: int = 20

    def period_us(self, cpu: Cpu, delay: int | None = None) -> float:
        """From nibble to nibble, or byte to byte, with the given number of iterations between them; None: the port's.

        A byte takes as long as a nibble, because the paper does not state how many of a nibble's cycles are extraction
        that a byte would not need.
        """
        saved = (Port().writes - self.writes) * cpu.us(cpu.write)
        return cpu.period_us(self.delay if delay is None else delay) - saved


@dataclass(frozen=True)
class StorePort(Port):
    """A regeneration board on the node's bus, which takes an event as a few 32-bit stores and writes the nibbles of an
    extended board's port itself: :mod:`hypermon.hdl.store_port`.

    Parameters
    ----------
    nibble_us : from one of its nibbles to the next: four clocks of a board of 20 MHz.
    event : the kernel's cost of an event for hardware recording (:attr:`.cpu.Cpu.event`) comes on top.
    """

    nibble_us: float = 0.2
    event: bool = False

    @staticmethod
    def stores(size: int) -> int:
        """Stores of an event of that many bytes: three fit the first one, with the length, and four each further one.
        """
        return 1 + size // 4

    def store_us(self, cpu: Cpu, size: int, store: int) -> float:
        """From the beginning of an event to the end of its store of that number.

        Assumed: the node prepares the bytes at software recording's cost per byte, which moves them to memory. A store
        then costs what a write to the port of 1990 does.
        """
        ready = min(3 + 4 * store, size)
        return cpu.us(ready * cpu.record_byte + (store + 1) * cpu.write + self.event * cpu.event)


#: Ports of hardware recording: the board of 1990, whose first byte is a filler nibble and the record's length (the
#: framing of ``hypermon decode --framing event``); the extended board; the same with ports of eight bits; a
#: regeneration board on the node's bus, which writes to the extended board's port.
PORTS = {"hardware": Port(), "extended": Port(4, 1, True, 0), "wide": Port(8, 1, True, 0),
         "adapter": StorePort(4, 1, True, 0)}
#: An adapter with the kernel's cost per event, for a comparison without a board.
WITH_EVENT, WITH_EVENT_PORT = "adapter with the kernel's cost", StorePort(4, 1, True, 0, event=True)


class LocalClock:
    """A node's own clock: microseconds, set by hand, and too fast or too slow by an unknown amount."""

    def __init__(self, random: Random, clocks: Clocks):
        self.rate = 1 + clocks.between(random, clocks.drift_ppm) * 1e-6
        self.offset = clocks.offset_us + clocks.between(random, clocks.offset_us)

    def read(self, us: float) -> int:
        """The clock's reading at a true time."""
        return int(us * self.rate + self.offset)


class Software:
    """Records in node memory.

    Members
    -------
    trace : the concatenated records. ``first``: the reading of the node's clock at its beginning, from which the first
        delta counts.
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
    """Writes to the port: the length of the record, then the record.

    Table 2 implies that hardware writes one byte more than software: frames minus twice the software bytes are twice
    the number of events.

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

    def begins(self, event: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """When values begin: those at places ``order`` within events ``event``."""
        return np.array(self.times)[event] + order * self.period_us

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


class Adapter(Hardware):
    """Stores events to a regeneration board. The node continues after the last store of an event; the nibbles follow
    each store.

    Members
    -------
    times : of each event, when its first store ends, which is when its first nibble begins.
    """

    def __init__(self, cpu: Cpu, clock: LocalClock, noise: Noise, random: Random, port: StorePort):
        super().__init__(cpu, clock, noise, random, port)
        self.period_us = port.nibble_us
        self._port, self._cpu = port, cpu

    def begins(self, event: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        # The first store has the length and six nibbles, a further one eight.
        store, place = (order + 1) // 8, np.where(order < 7, order, (order + 1) % 8)
        sizes = np.array([len(record) for record in self.records], np.int64)[event]
        offsets = np.array([[self._port.store_us(self._cpu, size, k) - self._port.store_us(self._cpu, size, 0)
                             for k in range(4)] for size in range(16)])
        return np.array(self.times)[event] + offsets[sizes, store] + place * self.period_us

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        record = kind.pack_bare(kind.id, *fields)
        self.times.append(us + self._port.store_us(self._cpu, len(record), 0))
        self.records.append(record)
        return us + self._port.store_us(self._cpu, len(record), self._port.stores(len(record)) - 1)
