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


def read_nibbles(writes: list[Write], edges: int, bits: int = 4) -> dict[int, list[tuple[int, int]]]:
    """Per node (time, nibble, or byte of a port of 8 bits) of each active edge: rising (1), or both (2).

    One edge takes the data before it, as the board does, and insists that they do not change with it.
    """
    strobe = 1 << bits
    port: dict[int, int] = defaultdict(int)
    nibbles = defaultdict(list)
    for write in writes:
        before, port[write.node] = port[write.node], write.port
        if (before ^ write.port) & strobe and (edges == 2 or write.port & strobe):
            if edges == 1:
                assert before % strobe == write.port % strobe, "data change with the strobe"
            nibbles[write.node].append((write.time_ns, write.port % strobe))
    return nibbles


def read_events(nibbles: list[tuple[int, int]], bits: int = 4) -> list[Event]:
    """The events of one node; fails if anything is left over."""
    if bits == 8:  # as if each byte but the length had been two nibbles
        nibbles, writes = [], nibbles
        left = 0
        for time_ns, value in writes:
            assert left or value < 16, "a length is 0 to 15"
            nibbles += [(time_ns, value % 16), (time_ns, value // 16)][:2 if left else 1]
            left = left - 1 if left else value
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
