"""Activity of a node that no program requested: the third of the emulator's three plug-ins."""

from dataclasses import dataclass, field
from random import Random

__all__ = ["Clocks", "Noise"]


@dataclass(frozen=True)
class Clocks:
    """How the nodes' clocks differ, each from its own crystal: up to the given amount, up and down.

    Parameters
    ----------
    drift_ppm : in speed.
    offset_us : of their settings.
    """

    drift_ppm: float = 50
    offset_us: float = 1_000

    def between(self, random: Random, width: float) -> float:
        """Any value from -width to +width."""
        return width * (2 * random.random() - 1)


@dataclass(frozen=True)
class Noise:
    """Activity of the operating system and of the machine itself.

    Parameters
    ----------
    slice_us : time slice of the kernel. Each end of a slice is an event: 20.2 per second and node, as in the one-node
        runs of Table 2. It also keeps the 16-bit deltas of software recording from wrapping at 65.5 ms.
    slice_cost_us : processor time of such an end without instrumentation.
    load_us : the nodes begin within this time.
    jitter : share by which an event's overhead varies, up and down, depending on the contents of the cache.
    nibble_us : by how much each nibble may come earlier or later: memory refresh and the bus.
    clocks : of the nodes.
    """

    slice_us: float = 49_400
    slice_cost_us: float = 40
    load_us: float = 2_000
    jitter: float = 0.5
    nibble_us: float = 0.5
    clocks: Clocks = field(default_factory=Clocks)
