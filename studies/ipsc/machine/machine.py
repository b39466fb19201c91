"""The nodes of the emulated cube, their kernel, and the order of their actions.

A program is a generator function ``program(node)``. It computes with :meth:`Node.compute`, which costs time, and sends
and receives with ``yield from``. Each node has its own time. Whenever a node uses the network, the machine continues
the node whose time is earliest, so messages meet on the edges in the order of time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.network import Hypercube
from hypermon.studies.ipsc.machine.noise import Noise
from hypermon.studies.ipsc.machine.nx2 import IDLE_PID, KINDS, PID, Call, Kind
from hypermon.studies.ipsc.machine.recorders import (
    PORTS,
    WITH_EVENT,
    WITH_EVENT_PORT,
    Adapter,
    Hardware,
    LocalClock,
    Off,
    Recorder,
    Software,
    StorePort,
)
from hypermon.studies.machine.core.kernel import Kernel, Leg, Message, Receive, Send, Steps

__all__ = ["HOST", "Course", "Machine", "Node", "Program", "Steps", "run"]

#: The cube's host, as a peer: it is one hop from node 0, and not monitored.
HOST = 255
#: Sequence numbers, sizes and types of messages are fields of 16 bits.
_MASK16 = 0xffff

#: The machine handles a program's yields; its result is the node's.
Program = Callable[["Node"], Steps]


class Node:
    """A node, as its program sees it.

    Members
    -------
    number, nodes : its number, and the number of nodes.
    us : its time, true microseconds.
    recorder : receives its events.
    sent, received : messages.
    """

    def __init__(self, number: int, machine: "Machine", recorder: Recorder, random: Random):
        self.number, self.nodes = number, machine.nodes
        self.recorder, self.random = recorder, random
        self.us = machine.noise.load_us * random.random()
        self.sent = self.received = 0
        self._machine = machine
        self._next_slice = self.us + machine.noise.slice_us * random.random()
        self._ticks = 0
        self._sequence: dict[int, int] = {}

    def log(self, kind: Kind, *fields: int) -> None:
        """Records an event, if there is a recorder."""
        self.us = self.recorder.log(self.us, kind, fields)

    def compute(self, cycles: float) -> None:
        """The program works for the given number of cycles, interrupted by the ends of time slices."""
        left = self._machine.cpu.us(cycles)
        while self.us + left >= self._next_slice:
            part = max(self._next_slice - self.us, 0.0)
            self.us += part
            left -= part
            self._slice()
        self.us += left

    def clock(self) -> None:
        """The program asks for the time."""
        self.log(_CALL, Call.MCLOCK, 0)
        self.compute(_CLOCK_CYCLES)
        self.log(_RETURN, Call.MCLOCK, 0)

    def send(self, peer: int, size: int, value: Any = None, kind: int = 0) -> Steps:
        """csend: the message has left when it returns."""
        timing = self._machine.network.timing
        self.log(_CALL, Call.CSEND, peer)
        self.us += timing.software(size)
        sequence = self._sequence[peer] = self._sequence.get(peer, -1) + 1 & _MASK16
        self.log(_SEND, peer, sequence, size & _MASK16, kind)
        self.sent += 1
        yield Send(peer, (timing.leg(size),), Message(sequence, size, value))
        self.log(_RETURN, Call.CSEND, 0)

    def receive(self, peer: int, kind: int = 0) -> Steps:
        """crecv: returns the message's value. NX/2 blocks the process and switches, even if the message is there."""
        self.log(_CALL, Call.CRECV, kind)
        self.log(_PROCESS, PID, 1)
        self.log(_SWITCH, PID, IDLE_PID)
        message = yield Receive(peer)
        self._wait_until(message.arrival)
        self.us += self._machine.network.timing.software(message.size)
        self._received(peer, message, kind)
        self.log(_PROCESS, PID, 0)
        self.log(_SWITCH, IDLE_PID, PID)
        self.log(_RETURN, Call.CRECV, 0)
        return message.value

    def poll(self, peer: int, every_us: float, kind: int = 0) -> Steps:
        """iprobe until the message is there, then crecv, which need not wait."""
        message = yield Receive(peer)
        while True:
            self.log(_CALL, Call.IPROBE, kind)
            there = self.us >= message.arrival
            self.log(_RETURN, Call.IPROBE, there)
            if there:
                break
            self._wait_until(self.us + every_us)
        self.log(_CALL, Call.CRECV, kind)
        self.us += self._machine.network.timing.software(message.size)
        self._received(peer, message, kind)
        self.log(_RETURN, Call.CRECV, 0)
        return message.value

    def exchange(self, peer: int, size: int, value: Any = None, kind: int = 0) -> Steps:
        """Sends to a peer that sends as much."""
        yield from self.send(peer, size, value, kind)
        return (yield from self.receive(peer, kind))

    def _received(self, peer: int, message: Message, kind: int) -> None:
        self.received += 1
        self.log(_RECEIVE, peer, message.sequence, message.size & _MASK16, kind)

    def _wait_until(self, us: float) -> None:
        """Idle; time slices still end."""
        while us >= self._next_slice and us > self.us:
            self.us = max(self.us, self._next_slice)
            self._slice()
        self.us = max(self.us, us)

    def _slice(self) -> None:
        self._ticks += 1
        self._next_slice += self._machine.noise.slice_us
        self.us += self._machine.noise.slice_cost_us
        self.log(_SLICE, PID, PID, self._ticks)


_CALL, _RETURN, _PROCESS, _SWITCH = (KINDS[name] for name in ("call", "return", "process", "switch"))
_SEND, _RECEIVE, _SLICE = (KINDS[name] for name in ("send", "receive", "slice"))
_CLOCK_CYCLES = 200


@dataclass
class Machine:
    """A cube: its size and its three plug-ins.

    Parameters
    ----------
    nodes : a power of two, 1 to 16.
    seed : of everything random.
    """

    nodes: int
    cpu: Cpu = field(default_factory=Cpu)
    network: Hypercube = field(default_factory=Hypercube)
    noise: Noise = field(default_factory=Noise)
    seed: int = 1990

    def __post_init__(self) -> None:
        if self.nodes not in (1, 2, 4, 8, 16):
            raise ValueError(f"a cube has 1, 2, 4, 8 or 16 nodes here, not {self.nodes}")

    def recorder(self, how: str, random: Random, delay: int | None) -> Recorder:
        """``raw``, ``software``, one of :data:`~hypermon.studies.ipsc.machine.recorders.PORTS`, or
        :data:`~hypermon.studies.ipsc.machine.recorders.WITH_EVENT`.
        """
        clock = LocalClock(random, self.noise.clocks)
        if how == "raw":
            return Off()
        if how == "software":
            return Software(self.cpu, clock)
        port = WITH_EVENT_PORT if how == WITH_EVENT else PORTS[how]
        if isinstance(port, StorePort):
            return Adapter(self.cpu, clock, self.noise, random, port)
        return Hardware(self.cpu, clock, self.noise, random, port, delay)


@dataclass
class Course:
    """The result of a program's run.

    Members
    -------
    seconds : from the first node's beginning to the last one's end.
    results : of the nodes, as the program returned them. ``nodes``: the nodes.
    """

    seconds: float
    results: list[Any]
    nodes: list[Node]


def run(machine: Machine, program: Program, how: str = "raw", *, delay: int | None = None,
        host: Callable[["Node"], Steps] | None = None) -> Course:
    """Runs a program on all nodes.

    Parameters
    ----------
    program : run by every node. ``host``: run by the cube's host, which is not monitored.
    how, delay : see :meth:`Machine.recorder`.

    Raises
    ------
    RuntimeError
        if the nodes deadlock.
    """
    machine.network.reset()
    nodes = []
    for number in range(machine.nodes):
        random = Random(machine.seed * 1000 + number)
        nodes.append(Node(number, machine, machine.recorder(how, random, delay), random))
    began = min(node.us for node in nodes)
    members = {node.number: node for node in nodes}
    steps = {node.number: _whole(node, program) for node in nodes}
    if host is not None:
        members[HOST] = Node(HOST, machine, Off(), Random(machine.seed))
        steps[HOST] = host(members[HOST])

    def traverse(at: float, source: int, target: int, leg: Leg) -> float:
        begin, end = (0 if node == HOST else node for node in (source, target))
        return machine.network.traverse(at, begin, end, leg)

    results = Kernel(members, steps, traverse).run()
    return Course((max(node.us for node in nodes) - began) / 1e6, [results[n.number] for n in nodes], nodes)


def _whole(node: Node, program: Program) -> Steps:
    node.log(KINDS["start"], node.number, node.nodes, PID, 0, 1 << 20)
    result = yield from program(node)
    node.log(KINDS["stop"], 0)
    return result
