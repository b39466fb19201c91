"""*Place*: standard cells placed by simulated annealing (Table 1).

Every node has its own cells and anneals among them. From time to time all nodes exchange the positions of their cells.
Pairs of neighbours along the cube's dimensions, in turn, then offer each other positions for a while. The length of
these bursts is random. The paper says little about its program. Table 2 determines that a node's events do not depend
on the number of nodes, and section 5.2.2 that they come in bursts.
"""

from collections.abc import Iterator
from math import exp, log
from random import Random
from typing import Any

from hypermon.studies.ipsc.machine.machine import Node, Steps
from hypermon.studies.ipsc.programs.collective import all_gather

__all__ = ["Place"]

#: Rounds of the whole run, and the mean number of offers per round: from the software bytes of Table 2 on two nodes.
ROUNDS, OFFERS = 700, 10
#: Moves among a node's own cells per round, for all nodes together.
MOVES = 64
#: Cells, one per position; rows of positions; nets, and the cells on each.
CELLS, ROW, NETS, PINS = 128, 16, 160, 4
_SEED = 10

_Positions = list[int]


class _Layout:
    """Where the cells are, as far as a node knows, and the cost of the wires.

    Members
    -------
    place : of each cell. ``own``: cells of this node. ``temperature``: now.
    """

    def __init__(self, number: int, nodes: int):
        random = Random(_SEED)
        self.nets = [random.sample(range(CELLS), PINS) for _ in range(NETS)]
        self.nets_of = [[net for net in self.nets if cell in net] for cell in range(CELLS)]
        self.place = random.sample(range(CELLS), CELLS)
        self.own = range(number, CELLS, nodes)
        self.temperature = 8.0
        self._random = Random(_SEED * 1000 + number)

    def _wire(self, net: list[int]) -> int:
        """Half the circumference of the rectangle around a net."""
        columns = [self.place[cell] % ROW for cell in net]
        rows = [self.place[cell] // ROW for cell in net]
        return max(columns) - min(columns) + max(rows) - min(rows)

    def cost(self) -> int:
        """Cost of the whole layout."""
        return sum(self._wire(net) for net in self.nets)

    def _around(self, *cells: int) -> int:
        return sum(self._wire(net) for cell in cells for net in self.nets_of[cell])

    def accepts(self, change: int, random: Random) -> bool:
        """The Metropolis criterion."""
        return change <= 0 or random.random() < exp(-change / self.temperature)

    def move(self) -> None:
        """Two of the node's cells swap positions, or not."""
        a, b = self._random.sample(self.own, 2)
        before = self._around(a, b)
        self.place[a], self.place[b] = self.place[b], self.place[a]
        if not self.accepts(self._around(a, b) - before, self._random):
            self.place[a], self.place[b] = self.place[b], self.place[a]

    def offer(self) -> tuple[int, int]:
        """One of the node's cells and its position."""
        cell = self._random.choice(self.own)
        return cell, self.place[cell]

    def gain(self, cell: int, place: int) -> int:
        """By how much the wires around one of the node's cells would cost more in another position."""
        before, old = self._around(cell), self.place[cell]
        self.place[cell] = place
        change = self._around(cell) - before
        self.place[cell] = old
        return change

    def positions(self) -> dict[int, int]:
        """Positions of the node's cells."""
        return {cell: self.place[cell] for cell in self.own}

    def learn(self, positions: dict[int, int]) -> None:
        """Updates the positions of other nodes' cells."""
        for cell, place in positions.items():
            self.place[cell] = place


def _rounds(count: int, dimensions: int) -> Iterator[tuple[int, int]]:
    """Number of each round, and its number of offers, for all nodes alike: exponentially distributed.

    The quantiles come in golden steps, so that a few rounds already have the mean of all. On larger cubes a node
    exchanges positions with more neighbours. It makes correspondingly fewer offers (two messages each), because its
    events do not depend on the cube.
    """
    for number in range(count):
        quantile = (number + 0.5) * 0.6180339887 % 1
        yield number, max(round(-OFFERS * log(1 - quantile)) - (number % 2 + dimensions - 1) // 2, 0)


def _messages(rounds: int, dimensions: int) -> int:
    """Messages of a node in the given number of rounds; a few rounds seldom have the mean of all. One node: rounds."""
    if not dimensions:
        return rounds
    return sum(dimensions + 2 * offers for _, offers in _rounds(rounds, dimensions))


def _decide(number: int, offer: int, pair: int) -> Random:
    """A random decision that both nodes of a pair share."""
    return Random((number * 1000 + offer) * 100 + pair)


class Place:
    """The program; a unit of work is a move.

    Members
    -------
    rounds : of annealing.
    """

    host = None

    def __init__(self, nodes: int, share: float, cycles: float):
        self.nodes, self.cycles = nodes, cycles
        self.rounds = max(1, round(ROUNDS * share))
        dimensions = nodes.bit_length() - 1
        self.share = _messages(self.rounds, dimensions) / _messages(ROUNDS, dimensions)
        self.moves = MOVES // nodes

    @property
    def units(self) -> int:
        """Rounds that are played."""
        return self.rounds

    def program(self, node: Node) -> Steps:
        """Returns the layout."""
        layout = _Layout(node.number, node.nodes)
        dimensions = node.nodes.bit_length() - 1
        for number, offers in _rounds(self.rounds, dimensions):
            for _ in range(self.moves):
                layout.move()
                node.compute(self.cycles * node.random.uniform(0.5, 1.5))
            for positions in (yield from all_gather(node, 2 * len(layout.own), layout.positions())).values():
                layout.learn(positions)
            if dimensions:
                peer = node.number ^ 1 << number % dimensions
                for offer in range(offers):
                    yield from self._offer(node, layout, peer, number, offer)
            _cool(layout, number)
            if number % 2:
                node.clock()
        return layout.positions()

    def _offer(self, node: Node, layout: _Layout, peer: int, number: int, offer: int) -> Steps:
        own, place = layout.offer()
        other, other_place = yield from node.exchange(peer, 8, (own, place))
        gain = layout.gain(own, other_place)
        gain += yield from node.exchange(peer, 4, gain)
        if layout.accepts(gain, _decide(number, offer, min(node.number, peer))):
            layout.learn({own: other_place, other: place})

    def check(self, results: list[Any]) -> str:
        """The positions are those of the same annealing without messages, each is used once, and the wires are shorter.
        """
        layouts = [_Layout(number, self.nodes) for number in range(self.nodes)]
        before = layouts[0].cost()
        for _ in self._sequentially(layouts):
            pass
        if results != [layout.positions() for layout in layouts]:
            raise ValueError("Place: the places are not those of a sequential run")
        for positions in results:
            layouts[0].learn(positions)
        if sorted(layouts[0].place) != list(range(CELLS)):
            raise ValueError("Place: two cells have one place")
        return (f"{self.rounds:,} rounds; all {CELLS} places equal those of the sequential program; "
                f"wires {before:,} -> {layouts[0].cost():,}")

    def rounds_until(self, share: float) -> int | None:
        """Rounds of annealing until the wires cost that share of their first cost; None: they never do."""
        layouts, whole = [_Layout(number, self.nodes) for number in range(self.nodes)], _Layout(0, 1)
        wanted = share * whole.cost()
        for number in self._sequentially(layouts):
            for layout in layouts:
                whole.learn(layout.positions())
            if whole.cost() <= wanted:
                return number + 1
        return None

    def _sequentially(self, layouts: list[_Layout]) -> Iterator[int]:
        """The same annealing, round by round, without messages."""
        dimensions = self.nodes.bit_length() - 1
        for number, offers in _rounds(self.rounds, dimensions):
            for layout in layouts:
                for _ in range(self.moves):
                    layout.move()
            known = [layout.positions() for layout in layouts]
            for layout in layouts:
                for positions in known:
                    layout.learn(positions)
            if dimensions:
                for offer in range(offers):
                    self._offers(layouts, 1 << number % dimensions, number, offer)
            for layout in layouts:
                _cool(layout, number)
            yield number

    def _offers(self, layouts: list[_Layout], bit: int, number: int, offer: int) -> None:
        for low in range(self.nodes):
            if low & bit:
                continue
            a, b = layouts[low], layouts[low ^ bit]
            (one, place), (other, other_place) = a.offer(), b.offer()
            gain = a.gain(one, other_place) + b.gain(other, place)
            if a.accepts(gain, _decide(number, offer, low)):
                for layout in (a, b):
                    layout.learn({one: other_place, other: place})


def _cool(layout: _Layout, number: int) -> None:
    if number % 2:
        layout.temperature *= 0.985
