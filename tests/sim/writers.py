"""Nodes that strobe at any picosecond, by ports of 4 or 8 bits, and know which items they write and when."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypermon.hdl.layout import LATENCY, Geometry, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import Run, play, write

__all__ = ["EVENT", "NIBBLE", "WORD", "Writer", "accounted", "came", "expected", "go", "writers"]

#: Board clock in ps, and clocks between the strobes of a node that hurries.
CLOCK, FAST = 10_000, 4
NIBBLE, WORD, EVENT = range(3)


@dataclass
class Writer:
    """One node. ``items``: time of the first strobe in ps, writes, how many of them are missing."""

    mode: int
    bits: int = 4
    clock: int = 100
    rows: list[tuple[int, int]] = field(default_factory=list)     # ps, port
    items: list[tuple[int, bytes, int]] = field(default_factory=list)

    def write(self, rng, values, gap=FAST, after=None):
        """Writes ``gap`` clocks apart, each strobe somewhere in its clock and little longer than one; the next one
        comes ``after`` clocks."""
        for value in values:
            strobe = self.clock * CLOCK - int(rng.integers(CLOCK))
            self.rows += [(self.clock * CLOCK - CLOCK * 5 // 2, value), (strobe, 1 << self.bits | value)]
            self.rows.append((strobe + CLOCK * 9 // 8 + int(rng.integers(CLOCK // 4)), value))
            self.clock += gap
        self.clock += (after or gap) - gap

    def item(self, rng, gap=FAST, after=None, size=None):
        """A random item of the node's mode."""
        values = [int(n) for n in rng.integers(1 << self.bits, size=31)]
        a_byte = 8 // self.bits
        if self.mode == EVENT:
            # Only the lower four bits say how many bytes there are.
            values[0] = (size or int(rng.integers(1, 16))) | values[0] & ~15
        count = {NIBBLE: 1, WORD: 4 * a_byte, EVENT: 1 + a_byte * (values[0] & 15)}[self.mode]
        begin = len(self.rows)
        self.write(rng, values[:count], gap, after)
        self.items.append((self.rows[begin + 1][0], bytes(values[:count]), 0))

    def cut(self, rng, keep, after):
        """An item that ends after ``keep`` writes; the next one begins ``after`` clocks behind its last strobe."""
        start = self.clock
        self.item(rng, size=5)
        time, values, _ = self.items.pop()
        assert keep < len(values)
        self.rows = self.rows[:len(self.rows) - 3 * (len(values) - keep)]
        self.items.append((time, values[:keep] + bytes(len(values) - keep), len(values) - keep))
        self.clock = start + FAST * (keep - 1) + after


def writers(geometry: Geometry, modes=(NIBBLE, WORD, EVENT)) -> list[Writer]:
    return [Writer(modes[n % len(modes)], geometry.port_bits) for n in range(geometry.nodes)]


def go(nodes: list[Writer], geometry: Geometry, window=Window.CLOCK, timeout=None, **options) -> Run:
    rows = sorted((time, n, port) for n, node in enumerate(nodes) for time, port in node.rows)
    time, node, port = (np.array(column) for column in zip(*rows, strict=True))
    played = Stimulus(time.astype(np.int64), node.astype(np.int16), port.astype(np.uint16), [0] * len(nodes))
    with VirtualLink(played, geometry, **options) as link:
        write(link, "WORD_NODES", sum(1 << n for n, node in enumerate(nodes) if node.mode == WORD))
        write(link, "EVENT_NODES", sum(1 << n for n, node in enumerate(nodes) if node.mode == EVENT))
        if timeout:
            write(link, "ITEM_TIMEOUT", timeout)
        return play(link, played, window, sink=Sink.EXTENDED)


def stamp(time: int, geometry: Geometry, window: Window) -> int:
    """The stamp of a strobe: the first sample at its time or after it, with four, two or one sample per clock."""
    if window is Window.CLOCK:
        phases = geometry.phases
        return -(-phases * time // CLOCK) + phases - 1 + phases * LATENCY
    return (-(-time // CLOCK) + LATENCY) // geometry.window_clocks(window)


def expected(nodes: list[Writer], geometry: Geometry, window=Window.CLOCK):
    """All items, by stamp, ties by node."""
    return sorted((stamp(time, geometry, window), n, values, missing)
                  for n, node in enumerate(nodes) for time, values, missing in node.items)


def came(run: Run):
    return sorted((item.window, item.node, item.nibbles, item.missing) for item in run.items)


def accounted(run: Run, nodes: list[Writer], geometry: Geometry, window=Window.CLOCK) -> None:
    """Of every node: offered = accepted + lost, accepted = delivered; what has not come is in a record, by windows."""
    parts = geometry.phases if window is Window.CLOCK else 1
    for n, node in enumerate(nodes):
        records = [record for record in run.losses if record["node"] == n]
        lost = sum(record["lost"] for record in records)
        assert run.census[n]["accepted"] + lost == len(node.items)
        assert run.census[n]["accepted"] == run.census[n]["delivered"] == sum(item.node == n for item in run.items)
        offered = Counter((stamp(time, geometry, window), values, missing) for time, values, missing in node.items)
        got = Counter((item.window, item.nibbles, item.missing) for item in run.items if item.node == n)
        assert not got - offered
        missing_items = offered - got
        assert sum(missing_items.values()) == lost
        for at, _, _ in missing_items:
            assert any(record["first"] <= at // parts <= record["last"] for record in records)
