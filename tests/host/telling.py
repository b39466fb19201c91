"""Events with a dictionary, made up: jobs and phases, messages of two kinds, counters."""

import random

__all__ = ["BOOK", "Row", "made_up"]

#: time, node, id, payload, aborted
Row = tuple[int, int, int, bytes, bool]

BOOK = """
[begin]
id = 1
fields = { job = "u8" }
begin = "it's a job"
key = "job"
[end]
id = 2
fields = { job = "u8", "load" = "i16" }
end = "it's a job"
key = "job"
counters = ["load", "job"]
[phase]
id = 3
end = "phase"
begin = "phase"
[send]
id = 4
fields = { peer = "u8", sequence = "u8" }
send = "border"
peer = "peer"
key = "sequence"
[receive]
id = 5
fields = { peer = "u8", sequence = "u8" }
receive = "border"
peer = "peer"
key = "sequence"
[cast]
id = 6
fields = { number = "u16" }
send = "cast"
key = "number"
[caught]
id = 7
fields = { number = "u16" }
receive = "cast"
key = "number"
"""


def made_up(rng: random.Random, count: int) -> list[Row]:
    """So many events of 4 nodes; some of an id that the dictionary has not, some aborted."""
    rows, time = [], 0
    for _ in range(count):
        time += rng.randrange(3)
        kind = rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 7, 99])
        payload = {1: bytes([rng.randrange(4)]), 2: bytes([rng.randrange(4)]) + rng.randbytes(2),
                   4: bytes([rng.randrange(4), rng.randrange(3)]), 5: bytes([rng.randrange(4), rng.randrange(3)]),
                   6: bytes([rng.randrange(20), 0]), 7: bytes([rng.randrange(20), 0])}.get(kind, b"")
        rows.append((time * 10**6, rng.randrange(4), kind, payload, rng.random() < 0.05))
    return rows
