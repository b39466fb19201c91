"""Two microcontrollers share a lock: a test of what they write, with `pytest examples/pytest`."""

from collections.abc import Iterator
from pathlib import Path

RULES = Path(__file__).parent / "locks.toml"


def write(time_ns: int, node: int, nibble: int) -> Iterator[tuple[int, int, int]]:
    """A nibble as a node writes it: first the data, then the data with the strobe."""
    yield time_ns, node, nibble
    yield time_ns + 1000, node, nibble | 16


def locks(held_ns: int) -> Iterator[tuple[int, int, int]]:
    """What two nodes write that have the lock in turns, a millisecond apart."""
    for k in range(1, 11):
        yield from write(k * 1_000_000, k % 2, 1)
        yield from write(k * 1_000_000 + held_ns, k % 2, 2)


def test_locks(recording):
    with recording(locks(300_000), options=["--window", "1"]) as run:
        pass        # with a real board, the nodes work here
    run.check(RULES)
