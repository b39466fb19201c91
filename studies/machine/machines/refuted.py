"""A network model of the iPSC/860 that its paper's figures refute: circuits that acquire their edges one by one."""

import heapq
from collections import deque
from collections.abc import Sequence

from hypermon.studies.machine.core.network import ecube
from hypermon.studies.machine.machines.ipsc860 import Model

__all__ = ["stepwise"]


class _Circuits:
    """Closed loops of messages; an edge is kept while the next one is awaited, and who asks first is served first."""

    def __init__(self, pairs: Sequence[tuple[int, int]], size: int, model: Model):
        legs = model.legs(size)
        self._work = [[(ecube(*(pair[::-1] if leg.back else pair)), leg) for leg in legs]
                      + [(ecube(*pair[::-1]), leg) for leg in model.legs(0)] for pair in pairs]
        self._held: set[tuple[int, int]] = set()
        self._queues: dict[tuple[int, int], deque[int]] = {}
        self._at = [[0, 0] for _ in pairs]
        self._due: list[tuple[float, int, bool]] = [(0.1 * number, number, False) for number in range(len(pairs))]
        self.ends: list[list[float]] = [[] for _ in pairs]

    def run(self, rounds: int) -> None:
        """Until the first pair has exchanged that many times."""
        heapq.heapify(self._due)
        while len(self.ends[0]) < rounds:
            now, number, over = heapq.heappop(self._due)
            if over:
                self._release(now, number)
            self._take(now, number)

    def _take(self, now: float, number: int) -> None:
        """Takes edges until one is held by another message, or the circuit is complete."""
        leg_at, edge_at = self._at[number]
        path, leg = self._work[number][leg_at]
        while edge_at < len(path):
            if path[edge_at] in self._held:
                self._queues.setdefault(path[edge_at], deque()).append(number)
                break
            self._held.add(path[edge_at])
            edge_at += 1
        else:
            heapq.heappush(self._due, (now + leg.hold + leg.hop * len(path), number, True))
        self._at[number] = [leg_at, edge_at]

    def _release(self, now: float, number: int) -> None:
        leg_at, _ = self._at[number]
        path, _ = self._work[number][leg_at]
        self._at[number] = [(leg_at + 1) % len(self._work[number]), 0]
        if self._at[number][0] == 0:
            self.ends[number].append(now)
        for edge in path:
            self._held.discard(edge)
        # The last edge first, so that nobody who waits at an earlier one overtakes those who wait at a later one.
        for edge in reversed(path):
            if self._queues.get(edge):
                self._take(now, self._queues[edge].popleft())


def stepwise(pairs: Sequence[tuple[int, int]], size: int, rounds: int = 200) -> float:
    """How many times as long the first pair's exchange takes as alone, with the echo of 0 bytes. From the model itself:
    it was never recorded.
    """
    times = []
    for some in (pairs[:1], pairs):
        circuits = _Circuits(some, size, Model())
        circuits.run(rounds)
        ends = circuits.ends[0][rounds // 4:]
        times.append((ends[-1] - ends[0]) / (len(ends) - 1))
    return times[1] / times[0]
