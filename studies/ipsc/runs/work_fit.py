"""The cost of a program's work: the constant fitted to a raw time of Table 2, for each program and cube."""

from functools import cache

from hypermon.studies.ipsc.machine.machine import Machine, run
from hypermon.studies.ipsc.programs import VARIANTS
from hypermon.studies.ipsc.runs.printed_values import NODES, TABLE_2

__all__ = ["work_cycles"]

_TRIAL = 1000.0


@cache
def work_cycles(program: str, nodes: int, share: float) -> float:
    """Cycles per unit of work with which that share of the program needs that share of Table 2's raw time.

    Raw runs show how much of the time is work, and that is almost proportional. For a cube that is not in the table,
    the constant is that of the largest one that is. A variant of a program takes as long as the program.
    """
    if nodes not in NODES:
        return work_cycles(program, max(NODES), share)
    wanted = VARIANTS[program](nodes, share, 0).share * TABLE_2[program.partition("-")[0], nodes].raw
    fixed, cycles = _raw(program, nodes, share, 0.0), _TRIAL
    for _ in range(2):
        cycles *= max(wanted - fixed, 0.01 * wanted) / (_raw(program, nodes, share, cycles) - fixed)
    return cycles


def _raw(program: str, nodes: int, share: float, cycles: float) -> float:
    workload = VARIANTS[program](nodes, share, cycles)
    return run(Machine(nodes), workload.program, host=workload.host).seconds
