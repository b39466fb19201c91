"""Networks of the emulated machines."""

from dataclasses import dataclass, field
from typing import Protocol

from hypermon.studies.machine.core.kernel import Leg

__all__ = ["Circuits", "Network", "Wires", "ecube"]


class Network(Protocol):
    """Carries legs of messages; calls are in the order of time."""

    def reset(self) -> None:
        """Nothing is on its way."""

    def traverse(self, at: float, source: int, target: int, leg: Leg) -> float:
        """When a leg ends that is ready at the given time, in microseconds."""


def ecube(source: int, target: int) -> list[tuple[int, int]]:
    """The directed edges of a hypercube from one node to another, the lowest differing bit first."""
    edges, at = [], source
    while at != target:
        bit = (at ^ target) & -(at ^ target)
        edges.append((at, at ^ bit))
        at ^= bit
    return edges


@dataclass
class Circuits:
    """A circuit-switched hypercube with e-cube routing; an edge carries one message at a time in each direction.

    All edges of a path are reserved together, from the moment at which all are free until the hold is over; who asks
    first is served first.
    """

    _free: dict[tuple[int, int], float] = field(default_factory=dict)

    def reset(self) -> None:
        self._free.clear()

    def traverse(self, at: float, source: int, target: int, leg: Leg) -> float:
        path = ecube(source, target)
        begin = max([at, *(self._free.get(edge, 0.0) for edge in path)])
        end = begin + leg.hold + leg.hop * len(path)
        for edge in path:
            self._free[edge] = end
        return end


class Wires:
    """A network without contention: every leg ends when its time is over."""

    def reset(self) -> None:
        pass

    def traverse(self, at: float, source: int, target: int, leg: Leg) -> float:
        return at + leg.hold + leg.hop
