"""ASCI Q of Hoisie and others, *Identifying and Eliminating the Performance Variability on the ASCI Q Machine*."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypermon.studies.machine.core.cpu import Even
from hypermon.studies.machine.core.crowd import Crowd
from hypermon.studies.machine.core.kernel import Steps
from hypermon.studies.machine.core.noise import Source
from hypermon.studies.machine.core.session import Label, Machine, Node, Session

__all__ = ["ALL", "BARRIER", "ALLREDUCE", "EXPERIMENTS", "NUMBER", "PARTITION", "TABLE", "Daemons", "bsp", "machine",
           "quantum"]

NUMBER = 2
EXPERIMENTS = {"quantum": 1, "bsp": 2}
PARTITION = 32
BARRIER, ALLREDUCE = 1, 2
#: Sources of every node, under this key.
ALL = -1
#: Table 2.1, by the node of a partition: period in seconds, duration in milliseconds. The table prints 1.9 where
#: section 2.2 says 19.
TABLE: Mapping[int, Sequence[Source]] = {
    ALL: (Source(24, 16), Source(42, 19)),
    0: (Source(30, 10), Source(125, 100), Source(125, 177), Source(70, 200)),
    1: (Source(60, 335),),
    31: (Source(1, 7),),
}


@dataclass(frozen=True)
class Daemons:
    """The noise of Table 2.1.

    Parameters
    ----------
    table : by node of a partition, or :data:`ALL`. ``drop``: keys of it that are left out.
    """

    table: Mapping[int, Sequence[Source]] = field(default_factory=lambda: TABLE)
    drop: frozenset[int] = frozenset()

    def sources(self, node: int) -> Sequence[Source]:
        return [source for key in (ALL, node % PARTITION) if key not in self.drop for source in self.table.get(key, ())]


def machine(nodes: int = 1024, *, noise: Daemons | None = None, rule: str = "timeline", seed: int = 1990,
            slower: Mapping[int, float] | None = None) -> Machine:
    """Nodes in partitions of 32, whose barrier takes 5 us."""
    return Machine(nodes, noise=noise or Daemons(), cpu=Even(slower or {}), rule=rule, collective_us=5.0, seed=seed)


def quantum(session: Session, *, nodes: Sequence[int] = range(PARTITION), seconds: float = 400.0, us: float = 1000.0,
            each: int = 20) -> None:
    """Section 2.2: computations of the given length, and an event after every N of them; port n sees ``nodes[n]``."""
    count = round(seconds * 1e6 / (us * each))

    def program(node: Node) -> Steps:
        for number in range(1, count + 1):
            node.compute(us * each)
            node.log("quantum", number * each)
        yield from ()

    session.run(Label(NUMBER, EXPERIMENTS["quantum"], round(us)), dict.fromkeys(nodes, program),
                dict(enumerate(nodes)), spread_us=us)


def bsp(session: Session, *, us: float, seconds: float, ports: Sequence[int] = (0, 1, 5, 31), kind: int = ALLREDUCE,
        shown_s: float = 5.0, real: Sequence[int] | None = None) -> None:
    """Section 3: computations and collective operations in turn, on all nodes of the machine.

    Parameters
    ----------
    ports : the node of each; the first shows every `leave`, all show `arrive` in the first ``shown_s``.
    real : nodes that are programs instead of a crowd; None: those with ports.
    """
    machine, own = session.machine, tuple(ports if real is None else real)
    crowd = Crowd([node for node in range(machine.nodes) if node not in set(own)], machine.noise, machine.seed,
                  machine.rule)
    begin = session.us + 1000.0
    until = begin + seconds * 1e6
    ends = [begin]

    def release(which: int, number: int, last: float) -> float:
        ends.append(max(last, crowd.last(ends[-1], us)) + machine.collective_us)
        return ends[-1]

    def program(node: Node) -> Steps:
        node.us = begin
        number = 0
        # The end of the last operation, and not the node's own time, so that all nodes stop at the same one.
        while ends[number] < until:
            node.compute(us)
            yield from node.meet(kind, number, (node.us < begin + shown_s * 1e6, node.number == ports[0]))
            number += 1

    here = {port: node for port, node in enumerate(ports) if node < machine.nodes}
    session.run(Label(NUMBER, EXPERIMENTS["bsp"], round(us)), dict.fromkeys(own, program), here, release=release)


def without(*keys: int) -> Daemons:
    """Table 2.1 without the sources of some nodes, as in Table 4.1."""
    return replace(Daemons(), drop=frozenset(keys))
