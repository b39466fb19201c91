"""Two runs to be compared."""

import random

import pytest
from hypermon.host.run import Run

#: Units of :func:`told`'s rows, in picoseconds.
US = 10**6


def rows(count: int, latency: int, rng: random.Random) -> list:
    """Every 40 us node 0 sends to node 1 and has a job; a sequence number is used once."""
    made = []
    for k in range(count):
        t = 40 * k + 5
        made += [(t, 0, 6, bytes([k & 255, k >> 8]), False), (t + 2, 0, 1, b"\x01", False),
                 (t + 5 + latency + rng.randrange(9), 1, 7, bytes([k & 255, k >> 8]), False),
                 (t + 32, 0, 2, b"\x01\x00\x00", False)]
    return [(t * US, *rest) for t, *rest in made]


@pytest.fixture
def two(told, tmp_path):
    """``two(losses)``: runs whose latencies are 5 to 13 and 9 to 17 us."""
    def make(losses=()) -> list[Run]:
        runs = []
        for name, latency in (("first", 0), ("second", 4)):
            told(rows(240, latency, random.Random(latency)), losses).path.rename(tmp_path / name)
            runs.append(Run(tmp_path / name))
        return runs
    return make
