"""*Simplex*: linear optimization, the tableau's columns distributed among the nodes (Table 1)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.studies.ipsc.machine.machine import Node, Steps
from hypermon.studies.ipsc.programs.collective import Receive, broadcast

__all__ = ["Blocked", "Simplex"]

#: Pivots in the whole run, by nodes: from the frames of Table 2. (One count for all cubes would give 20 and 32 % more
#: frames than printed on 4 and 8 nodes; there, the paper's program sent less than an all-reduce and a broadcast per
#: pivot.)
PIVOTS = {1: 900, 2: 900, 4: 750, 8: 680, 16: 620}
#: System calls per pivot, on any number of nodes: from the software bytes on one node.
CLOCKS = 3
#: Constraints and variables of a problem; when one is solved, the next one comes.
ROWS, COLUMNS = 48, 96
#: Microseconds between two polls for the message: from the software bytes on two nodes. A poll is a system call, two
#: events. That needs 35 us if software records it and 700 us through the port, so fewer polls are made with the port.
#: That is why Simplex alone logs less than twice its software bytes in nibbles.
POLL_US = 40.0
_DOUBLE = 8

_Array = npt.NDArray[np.float64]


def problem(number: int) -> tuple[_Array, _Array, _Array]:
    """Maximize c x with A x <= b, x >= 0: matrix [A I], b, and the reduced costs [-c 0]."""
    random = np.random.default_rng(number)
    matrix = np.hstack([random.uniform(0.1, 1, (ROWS, COLUMNS)), np.eye(ROWS)])
    cost = np.concatenate([-random.uniform(0.5, 1, COLUMNS), np.zeros(ROWS)])
    return matrix, random.uniform(10, 20, ROWS), cost


class _Columns:
    """Some columns of the tableau, and the right-hand side, which every node has.

    Members
    -------
    solved : optimal values of the problems so far. ``value``: of the present one.
    """

    def __init__(self, first: int, step: int):
        self._own = slice(first, None, step)
        self.first, self.step = first, step
        self.solved: list[float] = []
        self._load()

    def _load(self) -> None:
        matrix, self.right, cost = problem(len(self.solved))
        self.matrix, self.cost, self.value = matrix[:, self._own].copy(), cost[self._own].copy(), 0.0

    def best(self) -> tuple[float, int]:
        """The lowest reduced cost, and its column of the whole tableau."""
        at = int(np.argmin(self.cost))
        return float(self.cost[at]), self.first + at * self.step

    def pivot_column(self, column: int) -> tuple[_Array, float, int]:
        """One of the node's columns, its reduced cost, and the row that leaves."""
        at = (column - self.first) // self.step
        entries = self.matrix[:, at].copy()
        ratios = np.full(ROWS, np.inf)
        np.divide(self.right, entries, out=ratios, where=entries > 1e-9)
        return entries, float(self.cost[at]), int(np.argmin(ratios))

    def update(self, entries: _Array, cost: float, row: int) -> None:
        """One pivot."""
        line = self.matrix[row] / entries[row]
        right = self.right[row] / entries[row]
        self.matrix -= np.outer(entries, line)
        self.right = self.right - entries * right
        self.matrix[row], self.right[row] = line, right
        self.cost = self.cost - cost * line
        self.value -= cost * right

    def next_problem(self) -> None:
        self.solved.append(self.value)
        self._load()


class Simplex:
    """The program; a unit of work is an element of the tableau, updated.

    Members
    -------
    pivots : number of pivots to make.
    """

    host = None

    def __init__(self, nodes: int, share: float, cycles: float):
        self.nodes, self.cycles = nodes, cycles
        self.pivots = max(1, round(PIVOTS[nodes] * share))
        self.share = self.pivots / PIVOTS[nodes]

    def receiver(self, node: Node) -> Receive:
        """How a node receives: it polls."""
        return lambda peer: node.poll(peer, POLL_US)

    @property
    def units(self) -> int:
        """Pivots that are played."""
        return self.pivots

    def program(self, node: Node) -> Steps:
        """Returns the values of the problems solved, and the present one's so far."""
        own, receive = _Columns(node.number, node.nodes), self.receiver(node)
        for _ in range(self.pivots):
            for _ in range(CLOCKS):
                node.clock()
            best, bit = own.best(), 1
            while bit < node.nodes:
                yield from node.send(node.number ^ bit, 2 * _DOUBLE, best)
                best = min(best, (yield from receive(node.number ^ bit)))
                bit *= 2
            if best[0] >= -1e-9:
                own.next_problem()
                continue
            owner = best[1] % node.nodes
            pivot = own.pivot_column(best[1]) if node.number == owner else None
            pivot = yield from broadcast(node, owner, (ROWS + 2) * _DOUBLE, pivot, receive)
            own.update(*pivot)
            node.compute(self.cycles * own.matrix.size)
        return [*own.solved, own.value]

    def check(self, results: list[Any]) -> str:
        """All nodes have the values of one node that has all columns."""
        whole = _Columns(0, 1)
        for _ in range(self.pivots):
            best = whole.best()
            if best[0] >= -1e-9:
                whole.next_problem()
            else:
                whole.update(*whole.pivot_column(best[1]))
        expected = [*whole.solved, whole.value]
        if any(not np.array_equal(result, expected) for result in results):
            raise ValueError("Simplex: the nodes' values are not those of a sequential run")
        return (f"{self.pivots:,} pivots; {len(whole.solved)} problems solved; all values equal those of the "
                "sequential program")


class Blocked(Simplex):
    """The same, but the kernel blocks a node that waits, as in the other programs."""

    def receiver(self, node: Node) -> Receive:
        """How a node receives: it blocks."""
        return node.receive
