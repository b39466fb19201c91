"""What a port's writes say, read as slowly and plainly as possible: the board's part and the host's in one."""

import csv
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


class Write(NamedTuple):
    time_ns: int
    node: int
    port: int


class Event(NamedTuple):
    time_ns: int
    event: int
    payload: bytes


def read_writes(path: Path) -> list[Write]:
    with path.open(newline="") as file:
        assert file.readline() == "time_ns,node,port\n"
        return [Write(*map(int, row)) for row in csv.reader(file)]


def read_nibbles(writes: list[Write], edges: int) -> dict[int, list[tuple[int, int]]]:
    """Per node (time, nibble) of each active edge: rising (1), or both (2).

    One edge takes the data before it, as the board does, and insists that they do not change with it.
    """
    port: dict[int, int] = defaultdict(int)
    nibbles = defaultdict(list)
    for write in writes:
        before, port[write.node] = port[write.node], write.port
        if (before ^ write.port) & 16 and (edges == 2 or write.port & 16):
            if edges == 1:
                assert before & 15 == write.port & 15, "data change with the strobe"
            nibbles[write.node].append((write.time_ns, write.port & 15))
    return nibbles


def read_events(nibbles: list[tuple[int, int]]) -> list[Event]:
    """The events of one node; fails if anything is left over."""
    events, at = [], 0
    while at < len(nibbles):
        time_ns, length = nibbles[at]
        halves = [value for _, value in nibbles[at + 1:at + 1 + 2 * length]]
        assert len(halves) == 2 * length, "an event has no end"
        data = bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))
        if length:
            events.append(Event(time_ns, data[0], data[1:]))
        at += 1 + 2 * length
    return events
