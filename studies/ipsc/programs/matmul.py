"""*MatMul*: a 256 x 256 matrix multiplication (Table 1); the host distributes the factors and gathers the product."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.machine import HOST, Node, Steps
from hypermon.studies.ipsc.programs.collective import broadcast

__all__ = ["MatMul"]

SIDE = 256
#: Number of messages that bring the second factor to a node, and number of those that take a node's rows of the product
#: to the host: from the software bytes of Table 2 on eight nodes. Figure 12 shows the latter "clearly", so they are
#: several.
_PARTS, _RETURNS = 3, 4
_DOUBLE = 8

_Matrix = npt.NDArray[np.int64]


def factors() -> tuple[_Matrix, _Matrix]:
    """The factors: whole numbers, so that the product can be compared exactly."""
    random = np.random.default_rng(256)
    left, right = (random.integers(-99, 100, (SIDE, SIDE)) for _ in range(2))
    return left, right


class MatMul:
    """The program; a unit of work is a multiplication with its addition.

    Parameters
    ----------
    share : of the first factor's rows. The second factor is always sent whole.
    """

    def __init__(self, nodes: int, share: float, cycles: float):
        self.nodes, self.cycles = nodes, cycles
        self.rows = max(nodes, round(SIDE * share) // nodes * nodes)
        self.share = self.rows / SIDE

    @property
    def units(self) -> int:
        """Rows that are played."""
        return self.rows

    def program(self, node: Node) -> Steps:
        """Returns the node's rows of the product."""
        left = yield from node.receive(HOST)
        parts = []
        for _ in range(_PARTS):
            part = (yield from node.receive(HOST)) if node.number == 0 else None
            parts.append((yield from broadcast(node, 0, SIDE * SIDE * _DOUBLE // _PARTS, part)))
        right = np.vstack(parts)
        product = np.empty((len(left), SIDE), np.int64)
        for row, factor in enumerate(left):
            product[row] = factor @ right
            node.compute(self.cycles * SIDE * SIDE)
        for part in np.array_split(product, _RETURNS):
            yield from node.send(HOST, part.size * _DOUBLE, part)
        return product

    def host(self, host: Node) -> Steps:
        """Sends rows of the first factor and the whole second one, and receives the product's rows."""
        left, right = factors()
        own = self.rows // self.nodes
        for peer in range(self.nodes):
            yield from host.send(peer, own * SIDE * _DOUBLE, left[peer * own:(peer + 1) * own])
        for part in np.array_split(right, _PARTS):
            yield from host.send(0, SIDE * SIDE * _DOUBLE // _PARTS, part)
        for peer in range(self.nodes):
            for _ in range(_RETURNS):
                yield from host.receive(peer)

    def check(self, results: list[Any]) -> str:
        """The rows are the product's."""
        left, right = factors()
        if not np.array_equal(np.vstack(results), left[:self.rows] @ right):
            raise ValueError("MatMul: the rows are not those of the product")
        return (f"{self.rows} of {SIDE} rows of the product; all {self.rows * SIDE:,} elements equal those of the "
                "sequential program")
