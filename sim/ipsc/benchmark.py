"""The bandwidth test of section 5.1: nodes that do nothing but write events to their ports."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.host.recorder import Moment
from hypermon.host.recording import Run
from hypermon.sim.ipsc.cpu import Cpu
from hypermon.sim.ipsc.monitor import CLASSIC, Monitor, merged, play, port_writes
from hypermon.sim.ipsc.noise import Noise

__all__ = ["Bandwidth", "EVENT_BYTES", "NIBBLES", "bandwidth", "predicted"]

#: An event of the test, and the nibbles that it takes on the port: 88.5 s for a million of them and 113,000 frames a
#: second agree at 10.
EVENT_BYTES, NIBBLES = 4, 10
_FRAME_BYTES = 16
_WINDOW_S = 800e-9


@dataclass(frozen=True)
class Bandwidth:
    """What came of a test, by the recorded run.

    Members
    -------
    seconds : from the first nibble to the last, as the board stamped them. ``lost``: nibbles refused.
    merged : share of nibbles that share their frame.
    """

    nodes: int
    delay: int
    nibbles: int
    frames: int
    lost: int
    merged: float
    seconds: float

    @property
    def overrun(self) -> bool:
        return self.lost > 0

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.frames / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a table."""
        return {**asdict(self), "frames_per_second": self.frame_rate, "bytes_per_second": self.bandwidth}

    @property
    def bandwidth(self) -> float:
        """Bytes a second across the bus."""
        return self.frame_rate * _FRAME_BYTES


def bandwidth(nodes: int, delay: int, size: int, path: Path, *, cpu: Cpu | None = None, noise: Noise | None = None,
              monitor: Monitor = CLASSIC, seed: int = 1990,
              progress: Callable[[Moment], None] | None = None) -> Bandwidth:
    """Each node writes ``size`` bytes of events as fast as it can, with so many iterations between two nibbles.

    Parameters
    ----------
    path : of the RUN that is recorded.
    """
    cpu, noise = cpu or Cpu(), noise or Noise()
    count = max(size // EVENT_BYTES, 1) * NIBBLES
    parts = []
    for node in range(nodes):
        random = np.random.default_rng([seed, node])
        rate = 1 + random.uniform(-1, 1) * noise.drift_ppm * 1e-6
        # What one nibble is late by, the next one is, too: the loop does not catch up.
        late = np.cumsum(random.uniform(-noise.nibble_us, noise.nibble_us, count)) * 0.5
        begin = noise.load_us * random.random() + np.arange(1, count + 1) * cpu.period_us(delay) / rate + late
        begin += max(0.0, 1 - begin[0])
        parts.append(port_writes(begin, node, random.integers(0, 16, count).astype(np.uint8), cpu.us(cpu.write)))
    run = play(merged(parts), path, monitor, events=False, progress=progress)
    return measured(run, nodes, delay)


def measured(run: Run, nodes: int, delay: int) -> Bandwidth:
    """The figures of a test, from its RUN alone: of the time in which all nodes write."""
    stats, events = run.stats(), run.events()
    time, node = events["time_ps"].to_numpy(), events["node"].to_numpy()
    own = [time[node == number] for number in range(nodes)]
    begin, end = max(times[0] for times in own), min(times[-1] for times in own)
    inside = time[(time >= begin) & (time <= end)]
    frames, sharing = np.unique(inside, return_counts=True)
    return Bandwidth(nodes, delay, len(inside), len(frames), stats["lost"],
                     float(sharing[sharing > 1].sum() / len(inside)), (end - begin) / 1e12)


def predicted(nodes: int, delay: int, cpu: Cpu | None = None) -> tuple[float, float]:
    """Frames a second and merged share if the nodes' phases are independent, on a board that is never overrun."""
    alone = 1 - _WINDOW_S * 1e6 / (cpu or Cpu()).period_us(delay)
    return (1 - alone**nodes) / _WINDOW_S, 1 - alone ** (nodes - 1)
