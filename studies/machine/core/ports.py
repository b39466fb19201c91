"""A node's port, and the cost of an event for the program that writes it to the port."""

from dataclasses import dataclass
from typing import Protocol

from hypermon.studies.machine.core.records import Kind

__all__ = ["WIDE", "Cost", "Off", "Port", "PortRecorder", "Recorder"]


@dataclass(frozen=True)
class Port:
    """A node's port, and how its software uses it.

    Parameters
    ----------
    bits : of data, 4 or 8.
    writes : per value of that width: 2 if only the strobe's rising edge counts, 1 if both edges do.
    stamped : the board stamps events, so records have no time of the node's own, and they need no leading filler.
    """

    bits: int = 4
    writes: int = 2
    stamped: bool = False

    @property
    def strobe(self) -> int:
        """The strobe's bit."""
        return 1 << self.bits

    def framed(self, record: bytes) -> bytes:
        """The values written for an event, a nibble or a byte each: the length of the record, then the record."""
        if self.bits == 8:
            return bytes([len(record)]) + record
        nibbles = b"".join(bytes([byte & 15, byte >> 4]) for byte in record)
        return bytes([len(record)] if self.stamped else [0, len(record)]) + nibbles

    def length(self, size: int) -> int:
        """Length of :meth:`framed`, for a record of the given number of bytes."""
        return 1 + size if self.bits == 8 else (1 if self.stamped else 2) + 2 * size


#: The port of the machines: eight bits, a write a byte, an event stamped once.
WIDE = Port(8, 1, True)


class Recorder(Protocol):
    """How a node's instrumentation records an event."""

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        """Records an event that happens at ``us``; returns the time at which the node continues."""


class Off:
    """Raw: no event, no cost."""

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        return us


@dataclass(frozen=True)
class Cost:
    """What an event costs the program: an assumption, stores to a memory-mapped port; no paper prints it.

    Parameters
    ----------
    event_us : of an event. ``value_us``: of each value written, which is also the time between two of them.
    """

    event_us: float = 0.2
    value_us: float = 0.05


class PortRecorder:
    """Writes events to a port: the length of the record, then the record. The cost comes after the stamp.

    Members
    -------
    times, records : of each event, when its first value is written, and its bytes without the length.
    """

    def __init__(self, port: Port = WIDE, cost: Cost | None = None):
        self.times: list[float] = []
        self.records: list[bytes] = []
        self.port, self.cost = port, cost or Cost()

    def log(self, us: float, kind: Kind, fields: tuple[int, ...]) -> float:
        record = kind.pack(kind.id, *fields)
        self.times.append(us)
        self.records.append(record)
        return us + self.cost.event_us + self.cost.value_us * self.port.length(len(record))
