"""The four programs of Table 1. They really compute their results; the cost of their work is fitted to Table 2.

Flow: collective, life, matmul, place, simplex
"""

from collections.abc import Callable
from typing import Any, Protocol

from hypermon.studies.ipsc.machine.machine import Node, Steps
from hypermon.studies.ipsc.programs.life import Life
from hypermon.studies.ipsc.programs.matmul import MatMul
from hypermon.studies.ipsc.programs.place import Place
from hypermon.studies.ipsc.programs.simplex import Blocked, Simplex

__all__ = ["PROGRAMS", "VARIANTS", "Workload"]


class Workload(Protocol):
    """A program and its data.

    Parameters
    ----------
    nodes : of the cube.
    share : of the whole run that is played, above 0 and up to 1.
    cycles : of the processor per unit of work; each program defines its unit.

    Members
    -------
    share : that is really played, in whole units. ``units``: their number.
    program : run by each node. ``host``: run by the cube's host, or None.
    """

    host: Callable[[Node], Steps] | None
    share: float

    def __init__(self, nodes: int, share: float, cycles: float): ...

    @property
    def units(self) -> int: ...

    def program(self, node: Node) -> Steps: ...

    def check(self, results: list[Any]) -> str:
        """Compares the nodes' results with a plain sequential run; returns what agrees, raises ValueError if anything
        does not.
        """


PROGRAMS: dict[str, type[Workload]] = {"simplex": Simplex, "life": Life, "matmul": MatMul, "place": Place}
#: Also variants of the programs, which are tried where the paper's figures are not explained: PROGRAM-VARIANT.
VARIANTS: dict[str, type[Workload]] = {**PROGRAMS, "simplex-blocked": Blocked}
