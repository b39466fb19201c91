"""Computes, without a board, the frames that a board without losses would make from the nodes' writes."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.machine import Course, Machine
from hypermon.studies.ipsc.machine.noise import Noise
from hypermon.studies.ipsc.machine.recorders import Hardware
from hypermon.studies.ipsc.runs.benchmark import EVENT_BYTES, NIBBLES, begins
from hypermon.studies.ipsc.runs.monitor import CLASSIC, Monitor, write_times

__all__ = ["Frames", "bench_frames", "course_frames", "frames"]

_US = 1e6
_FRAME_BYTES = 16


class Frames:
    """What the windows hold.

    Members
    -------
    us : when each frame's window begins. ``count``: frames. ``nibbles``: in them. ``merged``: share of nibbles that
        share theirs.
    """

    def __init__(self, windows: npt.NDArray[np.int64], window_s: float):
        windows = np.sort(windows)
        first = np.flatnonzero(np.concatenate([[True], np.diff(windows) > 0]))
        sharing = np.diff(np.append(first, len(windows)))
        self.us = windows[first] * (window_s * _US)
        self.count, self.nibbles = len(first), len(windows)
        self.merged = float(sharing[sharing > 1].sum() / len(windows))

    def backlog(self, monitor: Monitor = CLASSIC) -> int:
        """Most frames that wait for the host, in a FIFO without an end: more than the board's depth are an overrun.

        The host reads at its rate, and in each of its pauses nothing. Frames that it could have read while none was
        there are not made up for.
        """
        every, stop = monitor.every_ms * 1000, monitor.stop_ms * 1000
        reading = self.us
        if stop:
            # The first pause begins at `every`, so the time before it is whole.
            pauses = np.floor(self.us / every)
            reading = self.us - np.minimum(pauses * stop, np.maximum(pauses - 1, 0) * stop + self.us % every)
        read = reading * ((monitor.rate or 0) / _FRAME_BYTES / _US)
        waiting = np.arange(self.count) - read
        return int(np.ceil((waiting - np.minimum.accumulate(waiting)).max())) + 1

    def rates(self, intervals: int = 100, begin_us: float = 0) -> tuple[npt.NDArray[np.float64], float]:
        """Frames per second in equal intervals from the given time, or the first frame, to the last; and the seconds
        that they span.
        """
        span = max(begin_us, float(self.us[0])), float(self.us[-1])
        count, _ = np.histogram(self.us, intervals, span)
        seconds = (span[1] - span[0]) / _US
        return count * intervals / seconds, seconds


def frames(strobes_us: Iterable[npt.NDArray[np.float64]], window_s: float = CLASSIC.window_s) -> Frames:
    """The frames of strobes at the given times, an array for each node; by default in the windows of 1990."""
    return Frames(np.concatenate([(times / (window_s * _US)).astype(np.int64) for times in strobes_us]), window_s)


def course_frames(course: Course, machine: Machine, window_s: float = CLASSIC.window_s) -> Frames:
    """The frames of a program's run with hardware recording."""
    strobes = []
    for node in course.nodes:
        assert isinstance(node.recorder, Hardware)
        begin, _ = write_times(node.recorder, 2 * machine.noise.nibble_us, machine.seed + node.number)
        strobes.append(begin + machine.cpu.us(machine.cpu.write))
    return frames(strobes, window_s)


def bench_frames(nodes: int, delay: int, size: int, seed: int) -> tuple[float, float, int]:
    """Of the bandwidth test, while all nodes write: frames per second and merged share on a board that loses nothing,
    and how many frames wait for its host at most.

    Parameters
    ----------
    size : bytes of events that each node writes.
    """
    cpu, noise, count = Cpu(), Noise(), max(size // EVENT_BYTES, 1) * NIBBLES
    strobes = [begins(count, cpu.period_us(delay), noise, np.random.default_rng([seed, node])) for node in range(nodes)]
    begin, end = max(own[0] for own in strobes), min(own[-1] for own in strobes)
    done = frames(own[(own >= begin) & (own <= end)] for own in strobes)
    return done.count / (end - begin) * _US, done.merged, done.backlog()
