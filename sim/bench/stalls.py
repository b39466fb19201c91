"""Random patterns of readiness, for both sides of a stream."""

import random
from collections.abc import Callable

__all__ = ["stalls"]


def stalls(rng: random.Random, ready: float, run: float = 4.0) -> Callable[[], bool]:
    """A random pattern of readiness: ready for the given share of time, in runs of the given mean length."""
    if ready >= 1:
        return lambda: True
    state, left = True, 0

    def step() -> bool:
        nonlocal state, left
        if left <= 0:
            state = rng.random() < ready
            left = 1 + int(rng.expovariate(1 / run))
        left -= 1
        return state
    return step
