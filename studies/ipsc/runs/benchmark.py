"""The bandwidth test of section 5.1: nodes that do nothing but write events to their ports."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.record.recorder import Moment
from hypermon.host.run import Run
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.noise import Noise
from hypermon.studies.ipsc.machine.nx2 import KINDS
from hypermon.studies.ipsc.machine.recorders import PORTS
from hypermon.studies.ipsc.runs.monitor import BOARDS, CLASSIC, Monitor, merged, play, port_writes

__all__ = ["Bandwidth", "EVENT_BYTES", "NIBBLES", "bandwidth", "begins", "event_bandwidth", "predicted"]

#: An event of the test, and its nibbles on the port: 88.5 s for a million of them and 113,000 frames a second agree at
#: 10.
EVENT_BYTES, NIBBLES = 4, 10
_FRAME_BYTES = 16


@dataclass(frozen=True)
class Bandwidth:
    """Result of a test, from the recorded run: for the time in which all nodes write.

    Members
    -------
    seconds : from the first nibble to the last, as the board stamped them. ``lost``: nibbles refused.
    merged : share of nibbles that share their frame.
    whole_rate : frames per second from the run's first to its last, including the time in which not all nodes write.
    drained : bytes per second that the host read in the second half of the test, while the board was overrun; None
        without an overrun, where the host waits for frames.
    """

    nodes: int
    delay: int
    nibbles: int
    frames: int
    lost: int
    merged: float
    seconds: float
    whole_rate: float
    drained: float | None

    @property
    def overrun(self) -> bool:
        return self.lost > 0

    @property
    def frame_rate(self) -> float:
        """Frames per second."""
        return self.frames / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a table."""
        return {**asdict(self), "frames_per_second": self.frame_rate, "bytes_per_second": self.bandwidth}

    @property
    def bandwidth(self) -> float:
        """Bytes per second across the bus."""
        return self.frame_rate * _FRAME_BYTES


def bandwidth(nodes: int, delay: int, size: int, path: Path, *, cpu: Cpu | None = None, noise: Noise | None = None,
              monitor: Monitor = CLASSIC, seed: int = 1990, apart_us: float = 0,
              progress: Callable[[Moment], None] | None = None) -> Bandwidth:
    """Each node writes ``size`` bytes of events as fast as it can, with the given number of iterations between two
    nibbles.

    Parameters
    ----------
    path : of the RUN that is recorded.
    apart_us : delay of each node's beginning after the previous node's.
    """
    cpu, noise, port = cpu or Cpu(), noise or Noise(), PORTS["hardware"]
    count = max(size // EVENT_BYTES, 1) * NIBBLES
    parts = []
    for node in range(nodes):
        random = np.random.default_rng([seed, node])
        begin = begins(count, cpu.period_us(delay), noise, random) + node * apart_us
        parts.append(port_writes(begin, node, random.integers(0, 16, count, np.uint8), cpu.us(cpu.write), port))
    run = play(merged(parts, port), path, monitor, events=False, progress=progress)
    return measured(run, nodes, delay)


def begins(count: int, period_us: float, noise: Noise, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """When a node begins to write each nibble."""
    rate = 1 + random.uniform(-1, 1) * noise.clocks.drift_ppm * 1e-6
    # If one nibble is late, the next one is late by the same time: the loop does not catch up.
    late = np.cumsum(random.uniform(-noise.nibble_us, noise.nibble_us, count)) * 0.5
    begin: npt.NDArray[np.float64] = noise.load_us * random.random() + np.arange(1, count + 1) * period_us / rate + late
    return begin + max(0.0, 1 - begin[0])


def measured(run: Run, nodes: int, delay: int) -> Bandwidth:
    """The figures of a test, from its RUN alone."""
    stats, events = run.stats(), run.events()
    time, node = events["time_ps"].to_numpy(), events["node"].to_numpy()
    inside = _while_all(time, node, nodes)
    frames, sharing = np.unique(inside, return_counts=True)
    return Bandwidth(nodes, delay, len(inside), len(frames), stats["lost"],
                     float(sharing[sharing > 1].sum() / len(inside)), float(inside[-1] - inside[0]) / 1e12,
                     len(np.unique(time)) / (float(time[-1] - time[0]) / 1e12),
                     _drained(frames) if stats["lost"] else None)


def _drained(frames: npt.NDArray[np.int64]) -> float:
    """Bytes per second, from the times of frames: as many enter a full FIFO as the host reads."""
    half = (frames[0] + frames[-1]) // 2
    late = int((frames > half).sum())
    return late * _FRAME_BYTES / (float(frames[-1] - half) / 1e12)


def _while_all(time: npt.NDArray[np.int64], node: npt.NDArray[np.int16], nodes: int) -> npt.NDArray[np.int64]:
    """The times at which all nodes have begun and none has ended."""
    own = [time[node == number] for number in range(nodes)]
    begin, end = max(times[0] for times in own), min(times[-1] for times in own)
    return time[(time >= begin) & (time <= end)]


def event_bandwidth(nodes: int, how: str, count: int, path: Path, *, monitor: Monitor | None = None,
                    seed: int = 1990) -> dict[str, Any]:
    """The test on a board that stamps events: the given number of events of four bytes from each node, without a delay.
    The host pauses like the one of 1990.

    Returns
    -------
    ``nodes``, ``how``, ``events`` and ``lost``, ``events_per_second`` while all nodes write, ``bytes_per_second`` of
    event-carrying payload across the link.
    """
    # All begin soon, because a test may be short.
    cpu, noise, port, kind = Cpu(), Noise(load_us=100), PORTS[how], KINDS["call"]
    parts = []
    for node in range(nodes):
        random = np.random.default_rng([seed, node])
        framed = [port.framed(kind.pack_bare(kind.id, number, argument)) for number, argument in
                  zip(random.integers(0, 256, count), random.integers(0, 65_536, count), strict=True)]
        values = np.frombuffer(b"".join(framed), np.uint8)
        begin = begins(len(values), port.period_us(cpu, 0), noise, random)
        parts.append(port_writes(begin, node, values, cpu.us(cpu.write), port))
    monitor = replace(monitor or BOARDS[how], rate=CLASSIC.rate, every_ms=CLASSIC.every_ms, stop_ms=CLASSIC.stop_ms)
    run = play(merged(parts, port), path, monitor)
    stats, events = run.stats(), run.events()
    time = events["time_ps"].to_numpy()
    inside = _while_all(time, events["node"].to_numpy(), nodes)
    return {"nodes": nodes, "how": how, "events": len(time), "lost": stats["lost"],
            "events_per_second": len(inside) / (float(inside[-1] - inside[0]) / 1e12),
            "bytes_per_second": stats["payload_bytes"] / (float(time[-1] - time[0]) / 1e12)}


def predicted(nodes: int, delay: int, cpu: Cpu | None = None,
              window_s: float = CLASSIC.window_s) -> tuple[float, float]:
    """Frames per second and merged share if the nodes' phases are independent, on a board that is never overrun."""
    alone = 1 - window_s * 1e6 / (cpu or Cpu()).period_us(delay)
    return (1 - alone**nodes) / window_s, 1 - alone ** (nodes - 1)
