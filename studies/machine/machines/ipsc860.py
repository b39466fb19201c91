"""The iPSC/860 of Bokhari, *Communication Overhead on the Intel iPSC-860 Hypercube* (1990): model and programs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypermon.studies.machine.core.kernel import Leg, Steps
from hypermon.studies.machine.core.network import Circuits
from hypermon.studies.machine.core.session import Label, Machine, Node, Program, Session

__all__ = ["EDGES_1", "EDGES_2", "EXPERIMENTS", "NODE_PATHS", "NUMBER", "SIZES", "Model", "contended", "machine",
           "path"]

NUMBER = 1
EXPERIMENTS = {"path": 1, "edges-1": 2, "edges-2": 3, "edges-3": 4, "nodes": 5}
#: Pairs of the experiments, the measured one first.
EDGES_1 = ((0, 127), (6, 111), (4, 79), (7, 15))
EDGES_2 = ((0, 127), (1, 63), (3, 31), (7, 15), (5, 79), (6, 47), (2, 95), (4, 111))
NODE_PATHS = ((7, 31), (13, 47), (14, 79), (9, 15))
#: Sizes of section 4: 0 to 200 by 1, to 1000 by 10, to 10,000 by 100.
SIZES = (*range(201), *range(210, 1001, 10), *range(1100, 10_001, 100))
_GSYNC = 0


@dataclass(frozen=True)
class Model:
    """Duration of a message, in microseconds.

    Parameters
    ----------
    zero, short : software of a message of 0 bytes, and of one up to ``limit`` bytes, with its time per byte.
    probe : software of each leg of the round trip that asks for space. ``data``: of the leg that carries a long
        message, with its time per byte.
    hop : of a leg, per edge.
    share : of a leg's software during which the circuit is held: 1 is from call to call.
    ends : the software outside the circuit is half at each end of each leg; otherwise a long message has all of it
        before the probe and after the data.
    fifo, stop : above ``copied`` bytes the copy is faster, and stops for ``stop`` us after every ``fifo`` bytes, so
        that the mean slope stays.
    gsync : of the synchronization of all nodes.
    """

    zero: float = 57.0
    short: tuple[float, float] = (65.0, 0.425)
    probe: float = 41.0
    data: tuple[float, float] = (65.0, 0.390)
    hop: float = 10.0
    limit: int = 100
    share: float = 1.0
    ends: bool = True
    fifo: int = 2000
    stop: float = 200.0
    copied: int = 1000
    gsync: float = 1000.0

    def legs(self, size: int) -> tuple[Leg, ...]:
        """The legs of a message."""
        if size <= self.limit:
            software = self.short[0] if size else self.zero
            return (self._leg(software, self.short[1] * size, 0.5),)
        copy = self.data[1] * size + self._stops(size)
        if self.ends:
            return (self._leg(self.probe, 0, 0.5), self._leg(self.probe, 0, 0.5, back=True),
                    self._leg(self.data[0], copy, 0.5))
        idle = (1 - self.share) * (2 * self.probe + self.data[0])
        return (Leg(self.share * self.probe, self.hop, before=idle / 2),
                Leg(self.share * self.probe, self.hop, back=True),
                Leg(self.share * self.data[0] + copy, self.hop, after=idle / 2))

    def _leg(self, software: float, copy: float, split: float, *, back: bool = False) -> Leg:
        idle = (1 - self.share) * software
        return Leg(self.share * software + copy, self.hop, idle * split, idle * (1 - split), back)

    def _stops(self, size: int) -> float:
        if size <= self.copied:
            return 0.0
        begun = self.copied / self.fifo
        return self.stop * (size // self.fifo - size / self.fifo + begun)


def machine(model: Model | None = None, *, seed: int = 1990, jitter_us: float = 0.0) -> Machine:
    """The 128 nodes of NASA Ames."""
    model = model or Model()
    return Machine(128, model.legs, Circuits(), collective_us=model.gsync, jitter_us=jitter_us, seed=seed)


def _source(peer: int, size: int, count: int, sync: bool) -> Program:
    def program(node: Node) -> Steps:
        for number in range(count):
            if sync:
                yield from node.meet(_GSYNC, number)
            yield from node.send(peer, size)
            yield from node.receive(peer)
    return program


def _target(peer: int, echo: int, count: int, sync: bool) -> Program:
    def program(node: Node) -> Steps:
        for number in range(count):
            if sync:
                yield from node.meet(_GSYNC, number)
            yield from node.receive(peer)
            yield from node.send(peer, echo)
    return program


def path(session: Session, *, distances: Sequence[int] = range(1, 8), sizes: Sequence[int] = SIZES,
         count: int = 10) -> None:
    """Section 4: an echo of each size between 0 and 2^d - 1, on ports 0 and 1."""
    for distance in distances:
        far = (1 << distance) - 1

        def source(node: Node, far: int = far) -> Steps:
            for size in sizes:
                yield from _source(far, size, count, False)(node)

        def target(node: Node) -> Steps:
            for size in sizes:
                yield from _target(0, size, count, False)(node)

        session.run(Label(NUMBER, EXPERIMENTS["path"], max(sizes)), {0: source, far: target}, {0: 0, 1: far})


def contended(session: Session, experiment: str, paths: int, size: int, *, count: int = 10) -> None:
    """Sections 5 to 8: the first pairs of an experiment at once, echoing; two ports a pair."""
    pairs = {"edges-1": EDGES_1, "nodes": NODE_PATHS}.get(experiment, EDGES_2)[:paths]
    echo = size if experiment in ("edges-1", "nodes") else 0
    sync = experiment == "edges-3"
    programs, ports = {}, {}
    for at, (source, target) in enumerate(pairs):
        programs[source] = _source(target, size, count, sync)
        programs[target] = _target(source, echo, count, sync)
        ports[2 * at], ports[2 * at + 1] = source, target
    session.run(Label(NUMBER, EXPERIMENTS[experiment], size), programs, ports, spread_us=50.0)


def without_probe(model: Model) -> Model:
    """All of a long message as one leg: for the page's column of what was tried."""
    return replace(model, limit=1 << 30)
