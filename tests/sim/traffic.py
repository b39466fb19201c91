"""What the nodes write, item by item, so that afterwards each one can be asked for.

Ports are written once a nibble: both edges are active, and the data are sampled behind the edge.
"""

import enum
from dataclasses import dataclass

import numpy as np
from hypermon.hdl.layout import LATENCY, WORD_NIBBLES, Geometry
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus

__all__ = ["Mode", "Traffic", "bursts", "evenly", "random_gaps", "section_6", "traffic"]

#: Clocks between two writes of a node: the data stand for one clock before and behind an edge.
SPACING = 2


class Mode(enum.Enum):
    """What an item of a node is."""

    NIBBLE = 0
    WORD = 1
    EVENT = 2


@dataclass
class Traffic:
    """A stimulus, and the items in it: by node, the clock edge that first sees each, and its nibbles."""

    geometry: Geometry
    stimulus: Stimulus
    modes: list[Mode]
    items: list[list[tuple[int, bytes]]]

    def __len__(self) -> int:
        return sum(map(len, self.items))

    @property
    def edge(self) -> np.ndarray:
        """Clock edges of all items, by time."""
        return np.sort(np.array([edge for node in self.items for edge, _ in node]))

    def offered(self, node: int) -> dict[int, bytes]:
        """Items of a node by their windows, of one clock each."""
        offered = {edge + LATENCY: nibbles for edge, nibbles in self.items[node]}
        assert len(offered) == len(self.items[node]), "two items in one window"
        return offered

    def nodes_in(self, mode: Mode) -> int:
        """A bit for each node in a mode."""
        return sum(1 << n for n, other in enumerate(self.modes) if other is mode)


def _items(edge: np.ndarray, mode: Mode, rng: np.random.Generator) -> list[tuple[int, bytes]]:
    """What is written at these edges, item by item; what is left over at the end is not written."""
    nibble = rng.integers(0, 16, len(edge))
    if mode is Mode.NIBBLE:
        return list(zip(edge.tolist(), (bytes([n]) for n in nibble.tolist()), strict=True))
    items, at = [], 0
    while at < len(edge):
        length = WORD_NIBBLES
        if mode is Mode.EVENT:
            nibble[at] = rng.integers(1, 16)
            length = 1 + 2 * int(nibble[at])
        if at + length > len(edge):
            break
        items.append((int(edge[at]), nibble[at:at + length].astype(np.uint8).tobytes()))
        at += length
    return items


def traffic(geometry: Geometry, edge: np.ndarray, node: np.ndarray, rng: np.random.Generator,
            modes: list[Mode] | None = None) -> Traffic:
    """Writes at these clock edges by these nodes, of any items; those too close to the one before are left out."""
    if geometry.clock_hz != 100_000_000:
        raise ValueError(f"a clock of 100 MHz, not {geometry.clock_hz}")
    modes = modes or [Mode.NIBBLE] * geometry.nodes
    keep, items = [], []
    for n in range(geometry.nodes):
        mine = np.unique(edge[node == n])
        # Greedily, as a node would: the next one that is far enough from the last one kept.
        if len(mine) and (np.diff(mine) < SPACING).any():
            last, kept = -SPACING, []
            for k in mine.tolist():
                if k >= last + SPACING:
                    kept.append(k)
                    last = k
            mine = np.array(kept)
        items.append(_items(mine, modes[n], rng))
        nibble = np.frombuffer(b"".join(nibbles for _, nibbles in items[n]), np.uint8).astype(int)
        mine = mine[:len(nibble)]
        strobe = (np.arange(len(mine)) + 1) % 2
        keep.append(np.stack([mine, np.full(len(mine), n), nibble, strobe << 4 | nibble]))
    edge, node, _, port = np.concatenate(keep, axis=1)
    order = np.lexsort((node, edge))
    edge, node, port = edge[order], node[order], port[order]
    stimulus = Stimulus((edge * 10_000).astype(np.int64), node.astype(np.int16), port.astype(np.uint8),
                        [0] * geometry.nodes, [Edge.BOTH] * geometry.nodes, [Sample.AFTER] * geometry.nodes)
    return Traffic(geometry, stimulus, modes, items)


def random_gaps(geometry: Geometry, rate: float, begin_ms: float, end_ms: float, rng: np.random.Generator,
                nodes: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Clock edges and nodes of writes at random, so many a second of all nodes (or of these) together."""
    mean = geometry.clock_hz / rate
    first, last = (int(ms * geometry.clock_hz / 1000) for ms in (begin_ms, end_ms))
    count = int((last - first) / mean * 1.2) + 20
    edge = first + np.cumsum(rng.geometric(1 / mean, count) if mean > 1 else np.ones(count, int))
    edge = edge[edge < last]
    return edge, rng.choice(nodes or np.arange(geometry.nodes), len(edge))


def evenly(geometry: Geometry, rate: float, begin_ms: float, end_ms: float,
           nodes: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Writes at even distances, the nodes in turn."""
    nodes = list(range(geometry.nodes)) if nodes is None else nodes
    first, last = (int(ms * geometry.clock_hz / 1000) for ms in (begin_ms, end_ms))
    edge = first + np.arange(int((last - first) * rate / geometry.clock_hz)) * geometry.clock_hz // int(rate)
    return edge, np.array(nodes)[np.arange(len(edge)) % len(nodes)]


def bursts(geometry: Geometry, end_ms: float, rng: np.random.Generator, most: int = 60_000,
           modes: list[Mode] | None = None) -> Traffic:
    """Bursts and pauses of all lengths until ``end_ms``: some nodes or all, slow or as fast as ports go."""
    parts, now, left = [], 0.01, most
    while now < end_ms and left > 0:
        rate = 10 ** rng.uniform(4.5, 8)
        length = min(10 ** rng.uniform(-2.5, 1) * end_ms / 10, end_ms - now, 1000 * left / rate)
        chosen = rng.permutation(geometry.nodes)[:rng.integers(1, geometry.nodes + 1)].tolist()
        rate = min(rate, 4e7 * len(chosen))
        part = random_gaps(geometry, rate, now, now + length, rng, chosen)
        parts.append(part)
        left -= len(part[0])
        now += length + rng.choice([0, 10 ** rng.uniform(-3, 0) * end_ms / 5])
    # A tail, behind everything: does the capture go on?
    parts.append(random_gaps(geometry, 1e5, end_ms + 5, end_ms + 6, rng))
    edge, node = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return traffic(geometry, edge, node, rng, modes)


def section_6(geometry: Geometry, rng: np.random.Generator) -> Traffic:
    """The burst of section 6: 60 kB of events in 20 ms over 16 nodes. An event is its length and 2 to 13 bytes, 4 on
    average, a write a nibble, one after the other at the pace of a node that writes to a register."""
    length = np.minimum(1 + rng.geometric(1 / 3, 20_000), 13)
    length = length[np.cumsum(length) <= 60_000]
    nibbles = 1 + 2 * length
    node = rng.permutation(np.arange(len(length)) % geometry.nodes)
    pace = 12                       # clocks from one nibble to the next
    begin = np.zeros(len(length), int)
    for n in range(geometry.nodes):
        mine = np.flatnonzero(node == n)
        # The pauses between events are what is left of 20 ms, divided at random.
        left = 1_990_000 - int(nibbles[mine].sum()) * pace
        cuts = np.sort(rng.integers(0, left, len(mine)))
        begin[mine] = 1000 + cuts + pace * (np.cumsum(nibbles[mine]) - nibbles[mine])
    edge = np.concatenate([b + pace * np.arange(k) for b, k in zip(begin, nibbles, strict=True)])
    return traffic(geometry, edge, np.repeat(node, nibbles), rng)
