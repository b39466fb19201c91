"""Messages between nodes: the second of the emulator's three plug-ins."""

from dataclasses import dataclass, field

from hypermon.studies.machine.core.kernel import Leg
from hypermon.studies.machine.core.network import Circuits, ecube

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
        leg = self.leg(size)
        return leg.hold + leg.hop * hops

    def leg(self, size: int) -> Leg:
        """A message in the network."""
        return Leg(self.byte[size > self.short] * size, self.hop[size > self.short])


@dataclass
class Hypercube(Circuits):
    """Circuits of the emulated iPSC/2.

    Parameters
    ----------
    timing : of a message.
    """

    timing: Timing = field(default_factory=Timing)
    path = staticmethod(ecube)

    def deliver(self, at: float, source: int, target: int, size: int) -> float:
        """When the last byte of a message arrives that could leave at ``at``; calls must be in the order of time."""
        return self.traverse(at, source, target, self.timing.leg(size))
