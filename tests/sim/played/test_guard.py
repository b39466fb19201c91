"""Glitch filter and rate limit on the virtual board: what is kept out is counted, the rest is as it would be."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import CENSUS_BOARD, CENSUS_NODE, LATENCY, BlockType, Geometry, Sink, Window
from hypermon.sim.stimulus.port_mapping import Edge, Sample
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import Run, play, write
from tests.sim.played.test_items import EVENT, NIBBLE, WORD, Node, came, expected, modes, plays
from tests.sim.virtual.test_link import MS

#: A board that other tests have, too.
GEOMETRY = Geometry.extended(store_depth=0)
PERIOD = 10**12 // GEOMETRY.clock_hz
#: Nodes that write.
NODES = 4

pytestmark = pytest.mark.usefixtures("tools")


def run(stimulus: Stimulus, window: Window, sink: Sink = Sink.EXTENDED, *, glitch: int = 0, limit: int = 0,
        words: int = 0, events: int = 0, **options) -> Run:
    with VirtualLink(stimulus, GEOMETRY, **options) as link:
        write(link, "WORD_NODES", words)
        write(link, "EVENT_NODES", events)
        write(link, "GLITCH", glitch)
        write(link, "RATE_LIMIT", limit)
        return play(link, stimulus, window, sink=sink, latency=LATENCY + max(0, glitch - 1))


class Port:
    """Levels of a port, clock by clock from 0."""

    def __init__(self):
        self.levels = [0]

    def put(self, strobe: int, nibble: int, clocks: int) -> None:
        self.levels += [strobe << 4 | nibble] * clocks

    def edges(self) -> list[int]:
        return [k for k, (one, two) in enumerate(pairwise(self.levels), 1) if (one ^ two) & 16]


def ringing(rng: np.random.Generator, clocks: int, pause: int) -> Port:
    """Clean strobes, strobes whose edges ring, runts, silence; ``pause`` clocks behind each at least."""
    port = Port()
    port.put(0, 0, 20)
    while len(port.levels) < clocks:
        nibble = int(rng.integers(16))
        before = port.levels[-1] >> 4
        port.put(before, nibble, 2 + pause)
        for _ in range(int(rng.integers(4)) if rng.random() < 0.5 else 0):
            port.put(1 - before, nibble, int(rng.integers(1, 5)))
            port.put(before, nibble, int(rng.integers(1, 5)))
        if rng.random() < 0.7:
            port.put(1 - before, nibble, int(rng.integers(1, 30)))
        if rng.random() < 0.02:
            port.put(port.levels[-1] >> 4, nibble, int(rng.integers(50_000)))
    port.put(port.levels[-1] >> 4, 0, 40)
    return port


def filtered(port: Port, glitch: int, rising: bool, falling: bool, after: bool) -> tuple[list[tuple[int, int]], int]:
    """Clock of the last sample that a level must last, and nibble, of each edge that counts; how many do not."""
    edges, known, found, rejected = port.edges(), 0, [], 0
    for edge, following in zip(edges, [*edges[1:], len(port.levels)], strict=True):
        level = port.levels[edge] >> 4
        lasts = following - edge >= glitch
        if rising if level else falling:
            if lasts and level != known:
                found.append((edge + max(0, glitch - 1), port.levels[edge + 1 if after else edge - 1] & 15))
            else:
                rejected += 1
        known = level if lasts else known
    return found, rejected


def stimulus_of(rows: list[tuple[int, int, int]], *settings) -> Stimulus:
    """From rows (time in ps, node, port), in order; ``settings``: edges, sample points."""
    columns = list(zip(*rows, strict=True))
    return Stimulus(np.array(columns[0], np.int64), np.array(columns[1], np.int16), np.array(columns[2], np.uint8),
                    [0] * NODES, *settings)


def played(ports: list[Port], *settings) -> Stimulus:
    return stimulus_of(sorted((k * PERIOD, n, new) for n, port in enumerate(ports)
                              for k, (old, new) in enumerate(pairwise(port.levels), 1) if old != new), *settings)


@pytest.mark.parametrize("glitch", [0, 1, 2, 4, 15])
@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200])
def test_filter(glitch, window):
    rng = np.random.default_rng(10 * glitch + window)
    clocks = GEOMETRY.window_clocks(window)
    ports = [ringing(rng, 80_000 // GEOMETRY.nodes, 8 * (clocks - 1)) for _ in range(GEOMETRY.nodes)]
    edges = [Edge.RISING, Edge.BOTH, Edge.FALLING, Edge.BOTH]
    samples = [Sample.AFTER, Sample.BEFORE, Sample.BEFORE, Sample.AFTER]
    stimulus = played(ports, [edges[n % 4] for n in range(len(ports))], [samples[n % 4] for n in range(len(ports))])
    settings = stimulus.rising, stimulus.falling, stimulus.after
    told = run(stimulus, window, glitch=glitch)
    kept_out = 0
    for node, port in enumerate(ports):
        found, rejected = filtered(port, glitch, *(bool(bits >> node & 1) for bits in settings))
        expected, last = [], -1
        for clock, nibble in found:
            last = max((clock + LATENCY) // clocks, last + 1)
            expected.append((last, nibble))
        assert list(zip(told.windows(node), told.nibbles(node), strict=True)) == expected
        assert told.census[node]["rejected"] == rejected
        assert told.census[node]["accepted"] == len(found)
        kept_out += rejected
    assert bool(kept_out) == (glitch > 1)
    assert run(stimulus, window, glitch=glitch, skip=False).stream == told.stream


@pytest.mark.parametrize("sink", Sink)
def test_filter_with_random_delay(sink):
    """Clean strobes of asynchronous nodes: the filter delays them and changes nothing else."""
    rng = np.random.default_rng(1)
    rows = sorted((int(t), n, port) for n in range(NODES) for k, at in enumerate(
        np.cumsum(rng.integers(200_000, 900_000, 300))) for t, port in (
        (at, k % 16), (at + 60_000, 16 | k % 16), (at + 120_000, k % 16)))
    stimulus = stimulus_of(rows)
    plain, late = (run(stimulus, Window.CLOCK, sink, glitch=glitch, seed=7) for glitch in (0, 5))
    assert late.events == [(time + 4, node, nibble) for time, node, nibble in plain.events]
    assert not any(node["rejected"] for node in late.census)


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS200])
@pytest.mark.parametrize(("items", "span"), [(1, 4), (10, 9), (255, 12)])
def test_rate_limit(window, items, span):
    """A floating strobe is held to its limit, exactly; the others do not notice."""
    rng = np.random.default_rng(items)
    clocks = GEOMETRY.window_clocks(window)
    floating, quiet = Port(), [Port() for _ in range(NODES - 1)]
    for _ in range(3):
        while len(floating.levels) % 60_000 < 40_000:
            floating.put(int(rng.integers(2)), int(rng.integers(16)), int(rng.integers(1, 4)))
        floating.put(0, 0, 20_000)
    for port in quiet:
        while len(port.levels) < 180_000:
            port.put(1, int(rng.integers(16)), 20)
            port.put(0, int(rng.integers(16)), int(rng.integers(2 ** span * clocks, 2 ** span * clocks + 20_000)))
    stimulus = played([floating, *quiet])
    free = run(stimulus, window)
    told = run(stimulus, window, limit=items | span << 8)
    for node in range(1, NODES):
        assert (told.windows(node), told.nibbles(node)) == (free.windows(node), free.nibbles(node))
        assert not told.census[node]["rejected"]
    offered = free.census[0]["accepted"] + sum(r["lost"] for r in free.losses)
    counts = told.census[0]
    assert counts["accepted"] + sum(r["lost"] for r in told.losses) + counts["rejected"] == offered
    assert counts["rejected"]
    # What is offered lies within a few clocks of its window, what is carried is later.
    if window is Window.CLOCK:
        most = Counter((time - LATENCY + 3) >> span for time in told.windows(0))
        assert max(most.values()) <= items + 8 * items // 2**span + 1
    assert run(stimulus, window, limit=items | span << 8, skip=False).stream == told.stream
    assert len(stimulus) * PERIOD < 100 * MS


@pytest.mark.parametrize("items", [1, 0x55, 0xaa, 255])
def test_each_node_has_its_own_limit(items):
    """Each node in turn writes too much, in an interval of its own: what is over is kept out, and nothing of others."""
    span = 12
    nodes = [Node(NIBBLE, clock=(n + 1 << span) + 40) for n in range(GEOMETRY.nodes)]
    rng = np.random.default_rng(items)
    for node in nodes:
        for _ in range(min(260, items + 20)):
            node.item(rng)
    for node in reversed(nodes):
        node.clock = (2 * GEOMETRY.nodes + 2 << span) + 40
        node.item(rng)
    told = run(plays(nodes), Window.CLOCK, limit=items | span << 8)
    assert not told.lost
    for n, node in enumerate(nodes):
        assert told.nibbles(n) == [nibbles[0] for _, nibbles, _ in node.items[:items] + node.items[-1:]]
        assert told.census[n]["accepted"] == items + 1
        assert told.census[n]["rejected"] == len(node.items) - items - 1


def test_what_is_kept_out_alone_is_told():
    """A heartbeat says so within a hundred milliseconds, though nothing else happens."""
    # A nibble, a runt, and the stimulus goes on.
    clocks = [100, 110, 15_000_000, 15_000_002, 30_000_000]
    told = run(stimulus_of([(k * PERIOD, 0, port) for k, port in zip(clocks, [19, 3, 19, 3, 7], strict=True)]),
               Window.CLOCK, glitch=5)
    rejected = [(time, CENSUS_NODE.unpack(payload, CENSUS_BOARD.bytes)["rejected"])
                for kind, time, payload in told.blocks if kind is BlockType.CENSUS]
    assert 15_000_000 < min(time for time, count in rejected if count) < 25_000_100


def test_what_the_limit_lets_pass_is_whole():
    """Words and events of which too many come: those that pass are whole, the others leave nothing behind."""
    rng = np.random.default_rng(5)
    nodes = [Node(EVENT), Node(WORD), Node(EVENT), Node(NIBBLE)]
    for _ in range(400):
        nodes[0].item(rng)
        nodes[1].item(rng)
    for node in nodes[2:]:
        for _ in range(30):
            node.item(rng, after=1500)
    told = run(plays(nodes), Window.CLOCK, limit=5 | 10 << 8, words=modes(nodes, WORD), events=modes(nodes, EVENT))
    arrived, offered = came(told), expected(nodes)
    assert not told.lost
    assert not Counter(arrived) - Counter(offered), "something came that nobody wrote"
    for n, node in enumerate(nodes):
        passed = sum(item[1] == n for item in arrived)
        assert told.census[n]["accepted"] == passed
        assert told.census[n]["rejected"] == len(node.items) - passed
        assert (passed == len(node.items)) == (n > 1)
        assert passed > 20
