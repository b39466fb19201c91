"""The SP2 of Tabe, Hardwick and Stout, *Statistical Analysis of Communication Time on the IBM SP2* (1995)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypermon.studies.machine.core.kernel import Meet, Steps
from hypermon.studies.machine.core.noise import Quiet, Source
from hypermon.studies.machine.core.session import Label, Machine, Node, Session

__all__ = ["BOUND_US", "EXPERIMENTS", "FLOOR_US", "LARGE", "LARGE_US", "NUMBER", "SMALL", "STALLS_MS", "Aix",
           "Stalls", "all_to_all", "bounded", "exchange", "machine", "partner"]

NUMBER = 3
EXPERIMENTS = {"exchange": 1, "all-to-all": 2}
#: Bytes of the two programs' messages.
SMALL, LARGE = 1024, 1_000_000
#: Undisturbed exchanges of these, us: fitted to the means of 173 us and 40.991 MB/s.
FLOOR_US, LARGE_US = 169.2, 1e6 / 41.657
#: What the standard deviation of 58 us leaves for a stall of D every T: D * D / T, us.
BOUND_US = 58.0**2 / (2 * 173.0)
#: Durations at the bound that are tried, ms.
STALLS_MS = (0.5, 2.0, 3.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True)
class Aix:
    """What the operating system does on each node.

    Parameters
    ----------
    dispatcher, timer, swapper : seconds from one to the next, which the paper prints, and milliseconds, which stand in
        its figures only.
    faults : page faults, at irregular times: the mean of their distances, and their duration, which is fitted to the
        standard deviation of the 1024-byte exchange.
    """

    dispatcher: tuple[float, float] = (0.010, 0.030)
    timer: tuple[float, float] = (0.006025, 0.020)
    swapper: tuple[float, float] = (1.0, 0.150)
    faults: tuple[float, float] = (0.43, 2.0)

    def sources(self, node: int) -> Sequence[Source]:
        return (*(Source(*one) for one in (self.dispatcher, self.timer, self.swapper)),
                Source(*self.faults, irregular=True))


@dataclass(frozen=True)
class Stalls:
    """One kind of stall alone."""

    source: Source

    def sources(self, node: int) -> Sequence[Source]:
        return (self.source,)


def bounded(ms: float) -> Stalls:
    """Stalls of the given length, as often as the 1024-byte exchange's deviation allows."""
    return Stalls(Source((ms * 1000) ** 2 / BOUND_US / 1e6, ms, irregular=True))


def machine(noise: Aix | Stalls | Quiet | None = None, *, nodes: int = 32, seed: int = 1990) -> Machine:
    """Nodes whose exchanges do not disturb one another."""
    return Machine(nodes, noise=Aix() if noise is None else noise, seed=seed)


def partner(node: int, step: int, nodes: int) -> int | None:
    """With whom a node exchanges in a step of an all-to-all of the given number; None: it is idle (Figure 2)."""
    even = nodes % 2 == 0
    last = nodes - 1 if even else nodes
    if not even and step == node:
        return None
    if node == last:
        return step
    return last if node == step else (last + 2 * step - node) % last


def _exchange(node: Node, step: int, peer: int, us: float) -> Steps:
    """Both begin when both are ready, and end when both have ended; each may be frozen meanwhile."""
    pair = (min(node.number, peer), max(node.number, peer))
    node.log("ready", step, peer)
    node.us = yield Meet(0, step, pair)
    node.compute(us)
    node.us = yield Meet(1, step, pair)
    node.log("step", step, peer)


def exchange(session: Session, *, count: int = 100_000, us: float = FLOOR_US, size: int = SMALL) -> None:
    """Section 4: exchanges between two nodes, back to back, on ports 0 and 1."""
    def program(node: Node) -> Steps:
        for number in range(count):
            yield from _exchange(node, number & 0xffff, 1 - node.number, us)

    session.run(Label(NUMBER, EXPERIMENTS["exchange"], size), {0: program, 1: program},
                dict(enumerate(range(min(2, len(session.recorders))))))


def all_to_all(session: Session, nodes: int, *, count: int = 100, us: float = LARGE_US, size: int = LARGE,
               ports: Sequence[int] | None = None) -> None:
    """Section 3: all pairs of a number of nodes exchange, again and again; port n sees ``ports[n]``, or node n."""
    def program(node: Node) -> Steps:
        for _ in range(count):
            for step in range(nodes - 1 + nodes % 2):
                peer = partner(node.number, step, nodes)
                if peer is not None:
                    yield from _exchange(node, step, peer, us)

    seen = [node for node in (range(nodes) if ports is None else ports) if node < nodes]
    whole, session.machine.nodes = session.machine.nodes, nodes
    session.run(Label(NUMBER, EXPERIMENTS["all-to-all"], size), dict.fromkeys(range(nodes), program),
                dict(enumerate(seen)))
    session.machine.nodes = whole
