"""Messages between nodes: the second of the emulator's three plug-ins."""

from dataclasses import dataclass, field

__all__ = ["Hypercube", "Timing"]


@dataclass(frozen=True)
class Timing:
    """Duration of a message on an idle network, in microseconds.

    The form is that of Bokhari, *Communication Overhead on the Intel iPSC-860 Hypercube* (1990), section 4.1: a
    start-up, a time per byte and a time per hop, and another start-up above 100 bytes, where the sender first asks the
    receiver for space. The times per byte and per hop are Bokhari's. The start-ups are software, and the 80386 is
    slower than the i860: 350 and 700 us are this emulator's, not printed in either paper.

    Parameters
    ----------
    short : longest message that is sent without asking.
    """

    startup: tuple[float, float] = (350.0, 700.0)
    byte: tuple[float, float] = (0.425, 0.390)
    hop: tuple[float, float] = (10.0, 30.5)
    short: int = 100

    def software(self, size: int) -> float:
        """At one endpoint: half of the start-up."""
        return self.startup[size > self.short] / 2

    def transit(self, size: int, hops: int) -> float:
        """In the network, which is how long the circuit is held."""
        return self.byte[size > self.short] * size + self.hop[size > self.short] * hops


@dataclass
class Hypercube:
    """Circuits with e-cube routing, the lowest differing bit first; an edge carries one at a time in each direction.

    Parameters
    ----------
    timing : of a message.
    """

    timing: Timing = field(default_factory=Timing)
    _free: dict[tuple[int, int], float] = field(default_factory=dict)

    @staticmethod
    def path(source: int, target: int) -> list[tuple[int, int]]:
        """The directed edges from one node to another."""
        edges, at = [], source
        while at != target:
            bit = (at ^ target) & -(at ^ target)
            edges.append((at, at ^ bit))
            at ^= bit
        return edges

    def reset(self) -> None:
        """Closes all circuits."""
        self._free.clear()

    def deliver(self, at: float, source: int, target: int, size: int) -> float:
        """When the last byte of a message arrives that could leave at ``at``; calls must be in the order of time."""
        path = self.path(source, target)
        begin = max([at, *(self._free.get(edge, 0.0) for edge in path)])
        end = begin + self.timing.transit(size, len(path))
        for edge in path:
            self._free[edge] = end
        return end
