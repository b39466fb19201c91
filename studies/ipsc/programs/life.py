"""*Life*: Conway's cellular automaton on a sparse grid, one strip of rows per node (Table 1)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.machine import Node, Steps

__all__ = ["Life"]

#: Generations of the whole run: from the software bytes of Table 2 on two nodes. A node exchanges its borders with the
#: strips above and below. The 2 (n - 1) messages per generation for n nodes follow from that, as do the bytes of 4 and
#: 8 nodes.
GENERATIONS = 1672
#: The grid's side.
SIDE = 128
#: Cells that are examined in any case, as a share of a strip's.
_FLOOR = 0.02

_Cells = npt.NDArray[np.uint8]


def soup() -> _Cells:
    """The first generation: a sparse soup, thickest in the upper third, so that strips differ in work."""
    random = np.random.default_rng(4)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    density = 0.5 * np.exp(-((rows - 0.3) ** 2 + (columns - 0.5) ** 2) / 0.03)
    return (random.random((SIDE, SIDE)) < density).astype(np.uint8)


def generation(padded: _Cells) -> _Cells:
    """The next generation of all rows but the first and the last, which are the neighbours'."""
    wide = np.pad(padded, ((0, 0), (1, 1)))
    columns = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    around = columns[:-2] + columns[1:-1] + columns[2:]
    return ((around == 3) | ((around == 4) & (padded[1:-1] == 1))).astype(np.uint8)


class Life:
    """The program; a unit of work is a living cell's neighbourhood.

    Members
    -------
    generations : number of generations to compute.
    """

    host = None

    def __init__(self, nodes: int, share: float, cycles: float):
        self.nodes, self.cycles = nodes, cycles
        self.generations = max(1, round(GENERATIONS * share))
        self.share = self.generations / GENERATIONS

    @property
    def units(self) -> int:
        """Generations that are played."""
        return self.generations

    def program(self, node: Node) -> Steps:
        """Returns the node's strip."""
        rows = SIDE // node.nodes
        strip = soup()[node.number * rows:(node.number + 1) * rows]
        peers = [peer for peer in (node.number - 1, node.number + 1) if 0 <= peer < node.nodes]
        for _ in range(self.generations):
            for peer in peers:
                border = strip[0 if peer < node.number else -1].copy()
                yield from node.send(peer, SIDE // 8, border)
            padded = np.zeros((rows + 2, SIDE), np.uint8)
            padded[1:-1] = strip
            for peer in peers:
                padded[0 if peer < node.number else -1] = yield from node.receive(peer)
            strip = generation(padded)
            node.compute(self.cycles * (int(strip.sum()) + _FLOOR * strip.size))
        return strip

    def check(self, results: list[Any]) -> str:
        """The strips are those of the whole grid."""
        grid = soup()
        for _ in range(self.generations):
            grid = generation(np.pad(grid, ((1, 1), (0, 0))))
        if not np.array_equal(np.vstack(results), grid):
            raise ValueError("Life: the strips are not those of a sequential run")
        return (f"{self.generations:,} generations; all {SIDE * SIDE:,} cells equal those of the sequential program; "
                f"{int(grid.sum())} alive")
