"""Words and events on the virtual board: whole, stamped at their first strobe, and nobody waits."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, WORD_NIBBLES, BlockType, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import finish, once, play, read, start, write
from tests.sim.virtual.test_link import stimulus

#: Board clock in ps, and clocks between the strobes of a node that hurries.
CLOCK, FAST = 10_000, 4
NIBBLE, WORD, EVENT = range(3)


@dataclass
class Node:
    """Writes nibbles, and knows which items they make, by itself.

    ``items``: clock of the first strobe, nibbles, how many are missing."""

    mode: int
    clock: int = 100
    rows: list[tuple[int, int]] = field(default_factory=list)     # ps, port
    items: list[tuple[int, bytes, int]] = field(default_factory=list)

    def write(self, nibbles, gap=FAST, after=None):
        """Nibbles of an item or a part of one, ``gap`` clocks apart; the next one comes ``after`` clocks."""
        for nibble in nibbles:
            self.rows += [(self.clock * CLOCK - CLOCK * 5 // 2, nibble), (self.clock * CLOCK - CLOCK // 2, 16 | nibble)]
            self.rows.append((self.clock * CLOCK + CLOCK * 5 // 4, nibble))
            self.clock += gap
        self.clock += (after or gap) - gap

    def item(self, rng, gap=FAST, after=None, size=None):
        """A random item of the node's mode."""
        nibbles = [int(n) for n in rng.integers(16, size=31)]
        if self.mode == EVENT:
            nibbles[0] = size or int(rng.integers(1, 16))
        nibbles = nibbles[:{NIBBLE: 1, WORD: WORD_NIBBLES, EVENT: 1 + 2 * nibbles[0]}[self.mode]]
        self.items.append((self.clock, bytes(nibbles), 0))
        self.write(nibbles, gap, after)

    def cut(self, rng, keep, after):
        """An item that ends after ``keep`` nibbles; the next one begins ``after`` clocks behind its last strobe."""
        start = self.clock
        self.item(rng)
        _, nibbles, _ = self.items.pop()
        self.rows = self.rows[:len(self.rows) - 3 * (len(nibbles) - keep)]
        self.items.append((start, nibbles[:keep] + bytes(len(nibbles) - keep), len(nibbles) - keep))
        self.clock = start + FAST * (keep - 1) + after


def plays(nodes):
    rows = sorted((time, n, port) for n, node in enumerate(nodes) for time, port in node.rows)
    return stimulus(rows, len(nodes))


def modes(nodes, mode):
    return sum(1 << n for n, node in enumerate(nodes) if node.mode == mode)


def go(nodes, geometry, window=Window.CLOCK, timeout=None, **options):
    played = plays(nodes)
    with VirtualLink(played, geometry, **options) as link:
        write(link, "WORD_NODES", modes(nodes, WORD))
        write(link, "EVENT_NODES", modes(nodes, EVENT))
        if timeout:
            write(link, "ITEM_TIMEOUT", timeout)
        return play(link, played, window, sink=Sink.EXTENDED)


def expected(nodes, clocks=1):
    """All items, by window, ties by node."""
    return sorted(((clock + LATENCY) // clocks, n, nibbles, missing)
                  for n, node in enumerate(nodes) for clock, nibbles, missing in node.items)


def came(run):
    return sorted((item.window, item.node, item.nibbles, item.missing) for item in run.items)


def accounted(run, nodes):
    """Of every node: offered = accepted + lost, accepted = delivered; what has not come is in a record."""
    for n, node in enumerate(nodes):
        lost = sum(record["lost"] for record in run.losses if record["node"] == n)
        assert run.census[n]["accepted"] + lost == len(node.items)
        assert run.census[n]["accepted"] == run.census[n]["delivered"] == sum(item.node == n for item in run.items)
        offered = Counter(((clock + LATENCY) // run.clocks, nibbles, missing) for clock, nibbles, missing in node.items)
        offered -= Counter((item.window, item.nibbles, item.missing) for item in run.items if item.node == n)
        assert sum(offered.values()) == lost
        for window, _, _ in offered:
            assert any(record["node"] == n and record["first"] <= window <= record["last"] for record in run.losses)


def board(geometry, some):
    """As many nodes as the board has; of those that are not given, each has nothing to say."""
    return [*some, *(Node(NIBBLE) for _ in range(geometry.nodes - len(some)))]


@pytest.mark.parametrize("window", list(Window))
@pytest.mark.parametrize("seed", [None, 1])
def test_every_mode_at_once(extended, window, seed):
    rng = np.random.default_rng(window)
    clocks = extended.window_clocks(window)
    nodes = [Node(n % 3) for n in range(16)]
    for node in nodes:
        for _ in range(40):
            node.item(rng, gap=int(rng.integers(4, 12)), after=int(rng.integers(clocks + 4, 5 * clocks + 300)))
    run = go(nodes, extended, window, seed=seed)
    if seed is None:
        assert came(run) == expected(nodes, clocks)
        accounted(run, nodes)
    else:
        for n, node in enumerate(nodes):
            got = [(item.nibbles, item.window) for item in run.items if item.node == n]
            assert [nibbles for nibbles, _ in got] == [nibbles for _, nibbles, _ in node.items]
            assert all(0 <= w - (c + LATENCY) // clocks <= 1 for (_, w), (c, _, _) in zip(got, node.items, strict=True))
    assert not run.lost


def test_lengths_and_filler(extended):
    """Events of every length, with nibbles of 0 between them."""
    rng = np.random.default_rng(1)
    node = Node(EVENT)
    for size in range(1, 16):
        node.item(rng, size=size)
        node.write([0] * int(rng.integers(3)))
    nodes = board(extended, [node])
    run = go(nodes, extended)
    assert [(i.nibbles, i.missing) for i in run.items] == [(nibbles, 0) for _, nibbles, _ in node.items]
    accounted(run, nodes)


@pytest.mark.parametrize("begin", [0x15aaa5a00, 0x0a555a5f0])
def test_nobody_waits_for_a_slow_node(extended, begin):
    """An 80386's event is open for 230 us, while another node writes an event in 0.2 us, and goes on."""
    rng = np.random.default_rng(2)
    # Half a minute later, or a minute: stamps are long by then.
    slow, fast, steady = Node(EVENT, begin), Node(EVENT, begin), Node(NIBBLE, begin)
    for _ in range(4):
        slow.item(rng, gap=885, size=13)
    while fast.clock < slow.clock:
        fast.item(rng, size=2)
    while steady.clock < slow.clock:
        steady.item(rng, after=10)
    nodes = board(extended, [slow, fast, steady])
    run = go(nodes, extended, drain_rate=50_000_000)
    assert not run.lost
    assert came(run) == expected(nodes)
    assert sum(item.late for item in run.items if item.node == 0) >= 3
    accounted(run, nodes)


def test_waits_for_a_slow_node_if_there_is_time(extended):
    """With little else to do, items come in order."""
    rng = np.random.default_rng(3)
    nodes = board(extended, [Node(EVENT), Node(EVENT), Node(NIBBLE)])
    for _ in range(3):
        nodes[0].item(rng, gap=885, size=13, after=5000)
    for node in nodes[1:3]:
        while node.clock < nodes[0].clock:
            node.item(rng, size=2, after=6000)
    run = go(nodes, extended)
    assert came(run) == expected(nodes)
    assert not any(item.late for item in run.items)
    assert run.items == sorted(run.items, key=lambda item: (item.window, item.node))


@pytest.mark.parametrize("mode", [WORD, EVENT])
def test_time_out(extended, mode):
    """A gap of the limit does not abort; a longer one does, and the next strobe begins an item."""
    rng = np.random.default_rng(4)
    limit = 3000
    nodes = board(extended, [Node(mode), Node(NIBBLE), Node(EVENT)])
    nodes[0].item(rng, gap=limit)
    for keep in (1, 2, 7):
        nodes[0].item(rng, size=4)
        nodes[0].cut(rng, min(keep, 2), after=limit + 60)
    nodes[0].item(rng)
    nodes[2].cut(rng, 1, after=limit + 60)   # nothing follows it
    while nodes[1].clock < nodes[0].clock:
        nodes[1].item(rng, after=50)
    run = go(nodes, extended, timeout=limit)
    assert came(run) == expected(nodes)
    accounted(run, nodes)


def test_each_node_has_its_own_time_out(extended):
    """All nodes but the last write parts of words, and of events; each strobe behind a time-out begins an item."""
    rng = np.random.default_rng(8)
    limit = 700
    nodes = [Node(EVENT if n % 2 else WORD, 100 + 37 * n) for n in range(extended.nodes)]
    for _ in range(2):
        for n, node in enumerate(nodes):
            node.cut(rng, 1 + n % 3 // 2, after=limit + 60 + 13 * n)
            node.item(rng, after=50)
    run = go(nodes, extended, timeout=limit)
    assert came(run) == expected(nodes)
    accounted(run, nodes)


@pytest.mark.parametrize(("before", "after"), [(WORD, NIBBLE), (WORD, EVENT), (EVENT, NIBBLE), (EVENT, WORD)])
def test_modes_change_in_the_middle_of_an_item(extended, before, after):
    """A reset, and other modes: what was open counts for nothing, and all that comes is whole."""
    rng = np.random.default_rng(9)
    nodes = [Node(before, 100 + n) for n in range(extended.nodes)]
    for node in nodes:
        node.cut(rng, 2, after=4000)
        node.items.clear()
        node.mode = after
        for _ in range(3):
            node.item(rng, after=600)
    played = plays(nodes)
    with VirtualLink(played, extended) as link:
        for mode in (before, after):
            write(link, "WORD_NODES", (1 << extended.nodes) - 1 if mode == WORD else 0)
            write(link, "EVENT_NODES", (1 << extended.nodes) - 1 if mode == EVENT else 0)
            start(link, played, Window.CLOCK, Sink.EXTENDED)
            while mode == before and link.cycles < 2500 + 300:
                read(link, "STATUS")
        run = finish(link, Window.CLOCK)
    assert not run.lost
    for n, node in enumerate(nodes):
        assert [item.nibbles for item in run.items if item.node == n] == [nibbles for _, nibbles, _ in node.items]


@pytest.mark.parametrize("options", [{"drain_rate": 5_000_000}, {"stalls": [(0.1, 0.7)]}, {"drain_rate": 400_000}])
def test_overrun_refuses_whole_items(extended, options):
    rng = np.random.default_rng(5)
    nodes = [Node((n + 2) % 3) for n in range(16)]
    for node in nodes:
        while node.clock < 120_000:
            node.item(rng, after=int(rng.integers(4, 60)))
            if node.mode != NIBBLE and rng.random() < 0.02:
                node.cut(rng, 1, after=2000)
    run = go(nodes, extended, timeout=1000, **options)
    assert run.lost
    accounted(run, nodes)


def test_enabled_in_the_middle_of_an_event(extended):
    """The part that is there counts for nothing, and the next event is whole."""
    rng = np.random.default_rng(6)
    node = Node(EVENT, clock=50)
    node.item(rng, gap=100, size=8)
    node.item(rng, size=3)
    nodes = board(extended, [node])
    played = plays(nodes)
    with VirtualLink(played, extended) as link:
        write(link, "EVENT_NODES", 1)
        write(link, "NODE_MASK", 0)
        start(link, played, Window.CLOCK, Sink.EXTENDED)
        while link.board_ps < 600 * CLOCK:
            read(link, "STATUS")
        write(link, "NODE_MASK", 0xffff)
        run = finish(link, Window.CLOCK)
    assert [item.nibbles for item in run.items] == [node.items[1][1]]
    assert run.census[0]["accepted"] == 1


@pytest.mark.parametrize("options", [{}, {"seed": 2}, {"drain_rate": 300_000}])
def test_skipping_changes_nothing(extended, options):
    rng = np.random.default_rng(7)
    nodes = [Node(n % 3) for n in range(16)]
    for node in nodes:
        for _ in range(4):
            node.item(rng, after=int(rng.integers(1000, 60_000)))
    nodes[2].cut(rng, 2, 5000)
    nodes[2].item(rng)
    kept = [go(nodes, extended, skip=skip, timeout=3000, **options).stream for skip in (True, False)]
    assert kept[0] == kept[1]


def test_modes_are_taken_at_the_reset(extended):
    with VirtualLink(None, extended) as link:
        write(link, "WORD_NODES", 5)
        write(link, "EVENT_NODES", 6)
        assert (read(link, "WORD_NODES"), read(link, "EVENT_NODES")) == (5, 6)
        assert read(link, "ITEM_TIMEOUT") == extended.clock_hz // 100


def test_the_classic_sink_knows_no_items(extended, classic):
    nodes = board(extended, [Node(NIBBLE)])
    nodes[0].write([1, 2, 3, 4, 5], after=500)
    played = plays(nodes)
    with VirtualLink(played, extended) as link:
        write(link, "EVENT_NODES", 1)
        run = play(link, played)
    alone = once(played, classic)
    assert (run.events, run.census) == (alone.events, alone.census)
    assert [block for block in run.blocks if block[0] is BlockType.FRAMES] == [
        block for block in alone.blocks if block[0] is BlockType.FRAMES]
