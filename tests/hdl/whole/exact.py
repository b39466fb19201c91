"""A whole board that plays traffic, and what it says held against the scoreboard: for `test_exact` and its like."""

import random
from bisect import bisect_left

import numpy as np
from hypermon.hdl.layout import (
    COUNTERS_BASE,
    COUNTERS_STRIDE,
    REGISTERS,
    BlockFlag,
    BlockType,
    CensusFlag,
    Control,
    Counter,
    Geometry,
    Sink,
    Window,
    padded,
)
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus
from hypermon.sim.virtual.link import VirtualLink

from ..harness.blocks import Run, parse, runs
from ..harness.scoreboard import Item, Levels, items
from ..harness.verdict import verify

# Everything is soon full; two rows of a frame, a node number of two groups; a clock period of 9 11/21 ns.
SMALL = Geometry(19, 105_000_000, node_depth=8, vector_depth=32, frame_depth=8, sinks=tuple(Sink))
#: By name and sink. All of them are boards that the tests of the virtual board have, too.
BOARDS = {("small", Sink.CLASSIC): SMALL, ("small", Sink.EXTENDED): SMALL,
          ("deep", Sink.CLASSIC): Geometry(), ("deep", Sink.EXTENDED): Geometry.extended(store_depth=0)}
NAMES = ("small", "deep")
MS = 10**9


# --------------------------------------------------------------------------------------- stimulus

class Traffic:
    """Port levels by clock edges, and how they are to be read."""

    def __init__(self, geometry: Geometry, changes: dict[int, dict[int, int]], initial: list[int], edge: list[Edge],
                 sample: list[Sample]):
        self.geometry, self.edge, self.sample = geometry, edge, sample
        self.levels = [Levels(initial[n], sorted(changes.get(n, {}).items())) for n in range(geometry.nodes)]
        rows = sorted((at, n, value) for n, found in changes.items() for at, value in found.items())
        self.end = rows[-1][0] if rows else 0
        times, nodes, ports = zip(*rows, strict=True) if rows else ((), (), ())
        self.stimulus = Stimulus(
            np.array([geometry.ps(at) for at in times], np.int64), np.array(nodes, np.int16),
            np.array(ports, np.uint8), initial, edge, sample)

    def offered(self, start: int = 0, stop: int | None = None) -> dict[int, list[Item]]:
        return {n: items(levels, rising=self.edge[n] is not Edge.FALLING, falling=self.edge[n] is not Edge.RISING,
                         after=self.sample[n] is Sample.AFTER, start=start, stop=stop)
                for n, levels in enumerate(self.levels)}


def traffic(choose: random.Random, geometry: Geometry, window: Window, loads: list[float], count: int,
            silence: int = 0) -> Traffic:
    """Strobes of every node at random, ``loads`` items a window, about ``count`` in all; data change at any
    clock. ``silence``: now and then nothing for up to so many clocks."""
    nodes, clocks = geometry.nodes, geometry.window_clocks(window)
    load = [choose.choice(loads) for _ in range(nodes)]
    length = int(count * clocks / sum(load)) + 1
    gaps = sorted((choose.randrange(length), choose.randrange(silence)) for _ in range(4)) if silence else []
    changes: dict[int, dict[int, int]] = {}
    edge = [choose.choice(list(Edge)) for _ in range(nodes)]
    initial = [choose.getrandbits(5) for _ in range(nodes)]
    for n in range(nodes):
        found: dict[int, int] = {}
        strobe, at = initial[n] & 16, 0
        mean = clocks / load[n] / (1 if edge[n] is Edge.BOTH else 2)
        while at < length:
            at += 1 + int(choose.expovariate(1 / max(mean - 1, 0.01)))
            strobe ^= 16
            place = at + sum(span for start, span in gaps if start <= at)
            for k in (-1, 0, 1):
                if place + k >= 0:
                    found.setdefault(place + k, (strobe if k >= 0 else strobe ^ 16) | choose.getrandbits(4))
                    if k >= 0:
                        found[place + k] = strobe | choose.getrandbits(4)
        changes[n] = found
    return Traffic(geometry, changes, initial, edge, [choose.choice(list(Sample)) for _ in range(nodes)])


def strobes(geometry: Geometry, edges: list[tuple[int, int, int]]) -> Traffic:
    """A nibble of a node at a clock edge, each: triples of edge, node, nibble."""
    changes: dict[int, dict[int, int]] = {}
    for at, n, nibble in edges:
        changes.setdefault(n, {}).update({at - 2: nibble, at: 16 | nibble, at + 2: nibble})
    return Traffic(geometry, changes, [0] * geometry.nodes, [Edge.RISING] * geometry.nodes,
                   [Sample.BEFORE] * geometry.nodes)


# -------------------------------------------------------------------------------------- the board

class Board(VirtualLink):
    """A virtual board, its registers by name, its stream in blocks, and when each began and ended."""

    def __init__(self, played: Traffic, sink: Sink, window: Window, **options):
        super().__init__(played.stimulus, played.geometry, **options)
        self.sink, self.window = sink, window
        self.data = b""
        self.arrivals: list[tuple[int, int]] = []     # bytes that had come, clock edge

    def set(self, name: str, value: int) -> None:
        self.write(REGISTERS[name].offset, value)

    def get(self, name: str) -> int:
        return self.read(REGISTERS[name].offset)

    def configure(self, played: Traffic, mask: int | None = None, flush: int | None = None) -> None:
        self.set("MODE", self.sink)
        for name, value in (("EDGE_RISING", played.stimulus.rising), ("EDGE_FALLING", played.stimulus.falling),
                            ("SAMPLE_AFTER", played.stimulus.after)):
            self.set(name, value)
            assert self.get(name) == value
        for name, value in (("NODE_MASK", mask), ("FLUSH", flush)):
            if value is not None:
                self.set(name, value)

    def control(self, flags: Control) -> None:
        self.set("CONTROL", flags | self.window << 2)

    def enable(self, flags: Control = Control.STREAM) -> None:
        self.control(flags | Control.RESET)
        self.control(flags | Control.ENABLE)

    def listen(self, limit: int) -> int:
        """Takes some of the stream."""
        piece = self.stream(limit)
        if piece:
            self.data += piece
            self.arrivals.append((len(self.data), self.edge))
        return len(piece)

    def blocks(self) -> list[bytes]:
        """Whole blocks; what has begun is left."""
        found, at = [], 0
        while at + 16 <= len(self.data):
            size = 48 + padded(int.from_bytes(self.data[at + 12:at + 16], "little"))
            if at + size > len(self.data):
                break
            found.append(self.data[at:at + size])
            at += size
        return found

    def arrival(self, number: int) -> int:
        """Clock edge at which the first beats of a block have come."""
        before = sum(map(len, self.blocks()[:number]))
        return self.arrivals[bisect_left(self.arrivals, (before + 1, 0))][1]

    def stopped(self) -> bool:
        blocks = self.blocks()
        if not blocks or (last := parse(blocks[-1], self.geometry)).type is not BlockType.CENSUS:
            return False
        return not last.cut and bool(last.payload[16] & CensusFlag.STOP)

    def finish(self, flags: Control = Control.STREAM) -> list[Run]:
        """Disables, and waits for the census of the stop."""
        self.control(flags)
        for _ in range(80):
            if self.listen(1 << 16) < 1 << 16 and self.stopped():
                break
        else:
            raise AssertionError("no census of the stop")
        found = runs(self.blocks(), self.geometry)
        extended = BlockFlag.EXTENDED if self.sink is Sink.EXTENDED else BlockFlag(0)
        assert found[-1].flags == {extended}
        assert found[-1].windows == {self.window}
        return found

    def counters(self) -> list[dict[Counter, int]]:
        return [{c: self.read(at := COUNTERS_BASE + COUNTERS_STRIDE * n + 8 * c) | self.read(at + 4) << 32
                 for c in Counter} for n in range(self.geometry.nodes)]


LOST = (Counter.LOST_FRAME_FIFO, Counter.LOST_NODE_FIFO, Counter.LOST_VECTOR_FIFO)


def same_counts(board: Board, run: Run) -> None:
    """The registers say what the last census does."""
    board.set("LATCH", 1)
    for row, told in zip(board.counters(), run.censuses[-1].nodes, strict=True):
        assert {c.name.lower(): v for c, v in row.items()} == {k: v for k, v in told.items() if k != "zero"}
    made = run.censuses[-1].board["frames"]
    assert board.get("FRAMES_LOW") | board.get("FRAMES_HIGH") << 32 == made
    assert board.get("FRAME_COUNT") == made % 4096
    assert board.get("LEVEL") == board.get("RUN") == board.get("FRAME_FIFO") == board.get("FRAME_HIGH") == 0
    assert board.get("STATUS") == run.censuses[-1].board["status"]


def look(board: Board, choose: random.Random, offered: dict[int, list[Item]]) -> None:
    """Reads of registers while capture goes on: all of one moment, and possible."""
    clocks = board.geometry.window_clocks(board.window)
    before = board.edge
    board.set("LATCH", 1)
    after = board.edge
    time = board.get("TIME_LOW") | board.get("TIME_HIGH") << 32
    assert before // clocks - 1 <= time <= after // clocks + 1
    levels = board.get("LEVEL")
    assert levels & 0xFFFF <= board.geometry.frame_depth + 8
    assert levels >> 16 <= board.geometry.vector_depth + 8
    assert board.get("RUN") <= board.geometry.frame_depth + 8
    assert 0 <= board.get("STATUS") < 16
    for n in choose.sample(range(board.geometry.nodes), 3):
        row = {c: board.read(at := COUNTERS_BASE + COUNTERS_STRIDE * n + 8 * c) | board.read(at + 4) << 32
               for c in Counter}
        assert row[Counter.DELIVERED] <= row[Counter.ACCEPTED], (n, row)
        counted = row[Counter.ACCEPTED] + sum(row[c] for c in LOST)
        assert sum(i.edge < before - 64 for i in offered[n]) <= counted, (n, row)
        assert counted <= sum(i.edge <= after for i in offered[n]), (n, row)


# ---------------------------------------------------------------------------------------- a run

HOSTS = {
    "quick": {}, "slow": {"drain_rate": 20_000_000}, "stalled": {"stalls": [("0.001", "0.02"), ("0.04", "0.05")]},
    "crawling": {"drain_rate": 3_000_000, "bus_delay": 5},
}


def play(name: str, sink: Sink, window: Window, host: str, seed: int, *, loads: list[float], count: int,
         silence: int = 0, reads: bool = False, skip: bool = True) -> tuple[Board, Run]:
    geometry = BOARDS[name, sink]
    choose = random.Random(f"{name} {sink} {window} {host} {seed}")
    played = traffic(choose, geometry, window, loads, count, silence)
    mask = (1 << geometry.nodes) - 1
    if choose.random() < 0.4:
        mask &= choose.getrandbits(geometry.nodes) | choose.getrandbits(geometry.nodes) | 1
    offered = {n: found if mask >> n & 1 else [] for n, found in played.offered().items()}
    board = Board(played, sink, window, skip=skip, **HOSTS[host])
    board.configure(played, mask, choose.choice([1, 10, 100, 5000]))
    board.enable()
    while not board.ended:
        board.listen(choose.choice([16, 64, 1024, 1 << 16]) if reads else 1 << 16)
        if reads and choose.random() < 0.3:
            look(board, choose, offered)
    run = board.finish()[-1]
    verify(run, offered, geometry.window_clocks(window), grown=True)
    same_counts(board, run)
    return board, run
