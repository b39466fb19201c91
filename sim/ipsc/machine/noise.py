"""What a node does that nobody asked it for: the third of the emulator's three plug-ins."""

from dataclasses import dataclass, field
from random import Random

__all__ = ["Clocks", "Noise"]


@dataclass(frozen=True)
class Clocks:
    """How the nodes' clocks differ, which are crystals of their own: up to so much, up and down.

    Parameters
    ----------
    drift_ppm : in speed.
    offset_us : when they were set.
    """

    drift_ppm: float = 50
    offset_us: float = 1_000

    def between(self, random: Random, width: float) -> float:
        """Anything from -width to +width."""
        return width * (2 * random.random() - 1)


@dataclass(frozen=True)
class Noise:
    """The operating system's own doings, and the machine's.

    Parameters
    ----------
    slice_us : time slice of the kernel. Each end of one is an event: 20.2 a second and node, as the one-node runs of
        Table 2 have them; it also keeps the 16-bit deltas of software recording from wrapping at 65.5 ms.
    slice_cost_us : processor time that such an end takes without instrumentation.
    load_us : the nodes begin within so long.
    jitter : share by which an event's overhead varies, up and down, by what is in the cache.
    nibble_us : each nibble comes up to so much earlier or later: memory refresh and the bus.
    clocks : of the nodes.
    """

    slice_us: float = 49_400
    slice_cost_us: float = 40
    load_us: float = 2_000
    jitter: float = 0.5
    nibble_us: float = 0.5
    clocks: Clocks = field(default_factory=Clocks)
