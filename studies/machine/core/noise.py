"""Activity of a node that no program requested: sources that freeze it, and their effect on a node that waits."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

__all__ = ["RULES", "Noise", "NodeNoise", "Quiet", "Source"]

#: What a source does to a node that waits: it runs when it is due, and its freeze may reach into the next computation;
#: it is free; it waits for the next computation.
RULES = ("timeline", "absorb", "defer")
_SECOND = 1e6


@dataclass(frozen=True)
class Source:
    """Something that freezes a node again and again.

    Parameters
    ----------
    period_s, duration_ms : from one to the next, and how long a freeze is.
    phase : of the first, as a share of the period; None: drawn for each node.
    drawn, irregular : the durations, or the times between two, are drawn from an exponential distribution with that
        mean.
    """

    period_s: float
    duration_ms: float
    phase: float | None = None
    drawn: bool = False
    irregular: bool = False


class Noise(Protocol):
    """The noise of a machine."""

    def sources(self, node: int) -> Sequence[Source]:
        """The sources of a node."""


class Quiet:
    """No noise."""

    def sources(self, node: int) -> Sequence[Source]:
        return ()


class NodeNoise:
    """The sources of one node, in the order in which they are due.

    Parameters
    ----------
    rule : one of :data:`RULES`.
    """

    def __init__(self, sources: Sequence[Source], random: Random, rule: str = "timeline"):
        if rule not in RULES:
            raise ValueError(f"the rule is one of {', '.join(RULES)}, not {rule}")
        self._sources, self._random, self._rule = sources, random, rule
        self._due = [((random.random() if source.phase is None else source.phase) * source.period_s * _SECOND, at)
                     for at, source in enumerate(sources)]
        heapq.heapify(self._due)
        self._busy = self._owed = 0.0

    def due(self) -> float:
        """When the next freeze is due, in microseconds."""
        return self._due[0][0] if self._due else float("inf")

    def _next(self) -> tuple[float, float]:
        """The next freeze: when it is due, and how long it is."""
        due, at = self._due[0]
        source = self._sources[at]
        period = source.period_s * _SECOND
        heapq.heapreplace(self._due, (due + (self._random.expovariate(1 / period) if source.irregular else period), at))
        length = source.duration_ms * 1000
        return due, self._random.expovariate(1 / length) if source.drawn else length

    def compute(self, at: float, us: float) -> float:
        """When a computation of the given length ends that could begin at ``at``."""
        self._wait(at)
        end = max(at, self._busy) + self._owed + us
        self._owed = 0.0
        while self.due() < end:
            end += self._next()[1]
        return end

    def _wait(self, until: float) -> None:
        """The node waits until then."""
        while self.due() < until:
            due, length = self._next()
            if self._rule == "timeline":
                self._busy = max(due, self._busy) + length
            elif self._rule == "defer":
                self._owed += length
