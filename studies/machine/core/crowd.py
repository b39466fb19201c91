"""Nodes without ports, which only compute and take part in collective operations; the module computes the time at which
the last of these nodes arrives at an operation.
"""

import heapq
from collections.abc import Iterable
from random import Random

from hypermon.studies.machine.core.noise import NodeNoise, Noise

__all__ = ["Crowd"]


class Crowd:
    """Many nodes that compute for the same time and meet, again and again; only those with noise are looked at.

    Parameters
    ----------
    nodes : their numbers. ``noise``, ``rule``: as of :class:`.NodeNoise`.
    """

    def __init__(self, nodes: Iterable[int], noise: Noise, seed: int, rule: str = "timeline"):
        self._noises = [NodeNoise(noise.sources(node), Random(seed * 100_003 + node), rule) for node in nodes]
        self._due = [(noise.due(), at) for at, noise in enumerate(self._noises)]
        heapq.heapify(self._due)

    def last(self, begin: float, us: float) -> float:
        """When the last one ends a computation of the given length that all begin at ``begin``."""
        last = begin + us if self._noises else begin
        # Those that were frozen while they waited, and those that are during the computation.
        while self._due and self._due[0][0] < begin + us:
            _, at = self._due[0]
            last = max(last, self._noises[at].compute(begin, us))
            heapq.heapreplace(self._due, (self._noises[at].due(), at))
        return last
