"""Boards whose nodes have any kind of wires, at random: as many nodes, depths, rates, modes, and a host that stalls.
Every item has come as it was sent, with the time of its first edge, or is in a record of loss."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypermon.hdl.layout import (
    LATENCY,
    NODES_MAX,
    Front,
    Geometry,
    Sink,
    Window,
    front_latency,
    front_period,
    front_span,
)
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.accounts import balanced
from tests.sim.fronted import CLOCK, Node, stimulus
from tests.sim.plain_host import play, write
from tests.sim.traffic import Mode

HZ = 10**12 // CLOCK
LINES, CLOCKS = (Front.UART, Front.SWO), (Front.TWO_WIRE, Front.SELECTED)


class PortNode:
    """What a node with a port sends, like :class:`~tests.sim.fronted.Node`."""

    front, mode, lowest = Front.PORT, 0, False

    def __init__(self, rng):
        self.rng, self.wires, self.at, self.items = rng, self, 50 * CLOCK + rng.randrange(CLOCK), []
        self.initial, self._rows = [0, 0, 0], []

    def ports(self):
        return self._rows

    def write(self, nibbles):
        """The strobe is high for two clocks or more, and low for two or more."""
        self.items.append((self.at, bytes(nibbles)))
        for nibble in nibbles:
            self._rows += [(self.at - CLOCK, nibble), (self.at, 16 | nibble),
                           (self.at + 2 * CLOCK + self.rng.randrange(CLOCK), nibble)]
            self.at += self.rng.randrange(5 * CLOCK, 9 * CLOCK)

    def send(self, mode):
        nibbles = [self.rng.getrandbits(4) for _ in range({Mode.NIBBLE: 1, Mode.WORD: 8}.get(mode, 0))]
        if mode is Mode.EVENT:
            size = self.rng.randrange(1, 16)
            nibbles = [size, *(self.rng.getrandbits(4) for _ in range(2 * size))]
        self.write(nibbles)


class Mixture:
    """A board, what its nodes send, and what must come of it.

    Members
    -------
    geometry, modes : of the board; a byte that is an item is one of ``Mode.EVENT``.
    rejected : bytes of each node that the board must reject.
    """

    def __init__(self, seed, clocks):
        rng = self._rng = random.Random(seed)
        nodes = rng.choice((1, NODES_MAX, rng.randrange(2, NODES_MAX)))
        self.fronts = [rng.choice(list(Front)) for _ in range(nodes)]
        if {*self.fronts} == {Front.PORT}:
            self.fronts[0] = rng.choice(list(Front)[1:])
        node_depth = rng.choice((32, 64))
        self.geometry = Geometry(
            nodes, node_depth=node_depth, vector_depth=rng.choice((4, 8)) * node_depth, frame_depth=16,
            sinks=(Sink.EXTENDED,), compact_depth=rng.choice((512, 1024)), store_depth=rng.choice((0, 64, 1024)),
            fronts=tuple(self.fronts))
        self.baud = {front: rng.choice((500_000, 921_600, 3_000_000, 12_000_000)) for front in LINES}
        self.spi = rng.choice((1_000_000, 8_000_000, 25_000_000))
        self.modes = [rng.choice(list(Mode)) for _ in self.fronts]
        self.single = [mode is Mode.EVENT and front is not Front.PORT and rng.random() < 0.5
                       for mode, front in zip(self.modes, self.fronts, strict=True)]
        self.rejected = [0] * nodes
        self.nodes = [self._node(front) for front in self.fronts]
        for n, node in enumerate(self.nodes):
            node.at += rng.randrange(clocks // 4) * CLOCK
            while node.at < clocks * CLOCK:
                self._burst(n, node)
        self.settings = {
            "FRONT_SPAN": front_span(HZ, self.spi), "UART_PERIOD": front_period(HZ, self.baud[Front.UART]),
            "SWO_PERIOD": front_period(HZ, self.baud[Front.SWO]), "ITEM_TIMEOUT": 1 << 28,
            "EVENT_NODES": self._mask(lambda n: self.modes[n] is Mode.EVENT),
            "WORD_NODES": self._mask(lambda n: self.modes[n] is Mode.WORD or self.single[n]),
            "FRONT_LOWEST": self._mask(lambda n: self.nodes[n].lowest)}
        self._offered = [{self._window(node, begin): nibbles for begin, nibbles in node.items} for node in self.nodes]
        self.edge = np.sort(np.array([window - LATENCY for mine in self._offered for window in mine]))

    def __len__(self):
        return len(self.edge)

    def offered(self, n):
        """The windows of a node's items, and the items."""
        return self._offered[n]

    def _mask(self, holds):
        return sum(1 << n for n in range(len(self.fronts)) if holds(n))

    def _node(self, front):
        rng = self._rng
        if front is Front.PORT:
            return PortNode(rng)
        wrong = Fraction(rng.randrange(-20, 21), 1000) + 1
        if front in LINES:
            return Node(front, Fraction(10**12, self.baud[front]) * wrong, rng)
        return Node(front, Fraction(10**12, self.spi) * wrong, rng, rng.randrange(4), rng.random() < 0.5)

    def _burst(self, n, node):
        """Some items, perhaps a byte that is wrong, and a pause."""
        rng, mode = self._rng, self.modes[n]
        for _ in range(rng.choice((1, 4, 30))):
            if node.front is Front.PORT:
                node.send(mode)
            elif self.single[n]:
                node.single(1)
            elif mode is Mode.EVENT:
                node.event()
            elif mode is Mode.WORD:
                node.word()
            else:
                node.raw(1)
        pause = rng.choice((0, 3, 400, 20_000))
        if node.front is not Front.PORT and (self.single[n] or mode is Mode.NIBBLE) and rng.random() < 0.2:
            node.at += 40 * node.period
            node.send([rng.getrandbits(8)], **({"stop": 0} if node.front in LINES else {"bits": rng.randrange(1, 8)}))
            node.at += 40 * node.period
            self.rejected[n] += 1
        node.at += pause * CLOCK + rng.randrange(CLOCK)

    def _window(self, node, begin):
        """With synchronizers that delay nothing: the clock edge at or after an item's first edge."""
        setting = "FRONT_SPAN" if node.front in CLOCKS else f"{node.front.name}_PERIOD"
        late = 0 if node.front is Front.PORT else front_latency(node.front, self.settings[setting])
        return -(begin // -CLOCK) + LATENCY + late


def played(seed, clocks, stalls, drain_rate=None):
    mixture = Mixture(seed, clocks)
    written = stimulus(mixture.nodes)
    with VirtualLink(written, mixture.geometry, stalls=stalls, drain_rate=drain_rate) as link:
        for name, value in mixture.settings.items():
            write(link, name, value)
        for _ in range(8):
            link.stream(16)
        run = play(link, written, Window.CLOCK, sink=Sink.EXTENDED)
    balanced(run, mixture)
    assert [row["rejected"] for row in run.census] == mixture.rejected
    return run, mixture


def test_a_mixture(tools):
    """Nodes of every kind; some of what they send is lost, and some is rejected."""
    run, mixture = played(4, 60_000, [(0.1, 0.2)], 20_000_000)
    assert {*mixture.fronts} == {*Front}
    assert run.lost > 100
    assert sum(mixture.rejected) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 116))
def test_random_mixtures(tools, seed):
    rng = random.Random(seed)
    stalls = [(round(rng.uniform(0, 2), 3), round(rng.uniform(0, 1), 3)) for _ in range(rng.randrange(4))]
    played(seed, 300_000, stalls, rng.choice((None, 50_000_000, 5_000_000)))
