"""QsNet of Petrini and others, *Performance Evaluation of the Quadrics Interconnection Network* (2001)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypermon.studies.machine.core.kernel import Leg, Message, Receive, Send, Steps
from hypermon.studies.machine.core.session import Label, Machine, Node, Program, Session
from hypermon.studies.machine.machines.elan import ELAN, MAIN, Elan, Model

__all__ = ["EXPERIMENTS", "FINE", "MODES", "NUMBER", "SIZES", "TAGGED", "VARIANTS", "Mode", "hotspot", "machine",
           "ping"]

NUMBER = 4
EXPERIMENTS = {"ping": 1, "bidirectional": 2, "hotspot": 3}
#: Sizes that double, and finer ones: for the block of a put, and for the longest message that travels inline.
SIZES = (0, *(1 << power for power in range(18)))
FINE, TAGGED = range(20, 181, 2), range(180, 401, 4)
#: Assumptions that a relation of the text depends on, and others in their place.
VARIANTS: dict[str, dict[str, float]] = {
    **{f"Elan memory of {rate} MB/s": {"sdram": rate} for rate in (450, 500, 600, 650, 700)},
    **{f"{window} packet{'s' * (window > 1)} in flight": {"window": window} for window in (1, 3, 4)},
}
_MASK16 = 0xffff


class Mode(NamedTuple):
    """How data travels: ``put``, ``get`` or ``mpi``, and the memories that it comes from and goes to."""

    operation: str = "put"
    read: int = MAIN
    write: int = MAIN

    def parameter(self, size: int) -> int:
        """For ``begin``: the mode in the highest byte, and the longest message."""
        return (self.read | self.write << 1 | {"put": 0, "get": 4, "mpi": 8}[self.operation]) << 24 | size


#: The modes of the unidirectional ping.
MODES = (*(Mode("put", read, write) for read in (MAIN, ELAN) for write in (MAIN, ELAN)), Mode("get"),
         Mode("get", ELAN, ELAN), Mode("mpi"))


def machine(model: Model | None = None, *, nodes: int = 16, seed: int = 1990, jitter_us: float = 0.0) -> Machine:
    """SMPs with an adapter each, on one fat tree."""
    return Machine(nodes, network=Elan(model or Model()), jitter_us=jitter_us, seed=seed)


class _End:
    """One node's messages with another one. ``terse``: no `sent` and no `receive`, which would delay a `received`."""

    def __init__(self, node: Node, peer: int, mode: Mode, model: Model, terse: bool = False):
        self._node, self._peer, self._mode, self._model, self._terse = node, peer, mode, model, terse
        self._sent = self._received = 0

    def send(self, size: int) -> Steps:
        """A put, or a message with a tag: one that is too long waits for the receiver."""
        node, model = self._node, self._model
        number, self._sent = self._sent, self._sent + 1 & _MASK16
        node.log("send", self._peer, number, size)
        node.jitter()
        if self._mode.operation == "mpi":
            if size > model.inline:
                yield from self._put(number, 0, model.put(0, match=True))
                yield from self._get()
                yield from self._put(number, size, model.put(size))
            else:
                yield from self._put(number, size, model.put(size, match=True))
        else:
            yield from self._put(number, size, model.put(size, self._mode.read, self._mode.write))
        if not self._terse:
            node.log("sent", self._peer, number)

    def receive(self, size: int) -> Steps:
        """Waits for a message of which it knows the size."""
        node = self._node
        number, self._received = self._received, self._received + 1 & _MASK16
        if not self._terse:
            node.log("receive", self._peer, number)
        yield from self._get()
        if self._mode.operation == "mpi" and size > self._model.inline:
            yield from self._put(number, 0, self._model.put(0))
            yield from self._get()
        node.log("received", self._peer, number, size)

    def get(self, size: int) -> Steps:
        """A remote read: `receive` and `received`, and no `send` of the other node."""
        node, model = self._node, self._model
        number, self._received = self._received, self._received + 1 & _MASK16
        node.log("receive", self._peer, number)
        node.jitter()
        yield from self._put(number, size, model.get(size, self._mode.read, self._mode.write))
        node.us += model.notify
        node.log("received", self._peer, number, size)

    def _put(self, number: int, size: int, legs: tuple[Leg, ...]) -> Steps:
        self._node.us = yield Send(self._peer, legs, Message(number, size))

    def _get(self) -> Steps:
        message = yield Receive(self._peer)
        self._node.us = max(self._node.us, message.arrival)


def ping(session: Session, model: Model, mode: Mode, *, sizes: Sequence[int] = SIZES, count: int = 5,
         both: bool = False, late_us: float = 0.0) -> None:
    """Messages between nodes 0 and 1, on ports 0 and 1: echoes; ``both``: in both directions at the same time.

    ``late_us``: node 1 computes for so long before it receives.
    """
    def source(node: Node) -> Steps:
        end = _End(node, 1 - node.number, mode, model, terse=both)
        for size in sizes:
            for _ in range(count):
                if mode.operation == "get":
                    yield from end.get(size)
                else:
                    yield from end.send(size)
                    yield from end.receive(size)

    def target(node: Node) -> Steps:
        end = _End(node, 1 - node.number, mode, model)
        for size in sizes:
            for _ in range(count):
                node.compute(late_us)
                yield from end.receive(size)
                yield from end.send(size)

    programs: dict[int, Program] = {0: source}
    if both or mode.operation != "get":
        programs[1] = source if both else target
    label = Label(NUMBER, EXPERIMENTS["bidirectional" if both else "ping"], mode.parameter(max(sizes)))
    session.run(label, programs, {node: node for node in programs})


def hotspot(session: Session, model: Model, mode: Mode, users: int, *, size: int = 32_768, count: int = 31) -> None:
    """Nodes 1 to ``users`` write (put) or read (get) one block of node 0 at the same time; port n - 1 sees node n."""
    def user(node: Node) -> Steps:
        end = _End(node, 0, mode, model)
        work: Callable[[int], Steps] = end.get if mode.operation == "get" else end.send
        for _ in range(count):
            yield from work(size)

    nodes = range(1, users + 1)
    session.run(Label(NUMBER, EXPERIMENTS["hotspot"], mode.parameter(size)), dict.fromkeys(nodes, user),
                {node - 1: node for node in nodes})
