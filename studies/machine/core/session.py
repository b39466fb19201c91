"""Programs on the nodes of an emulated machine, one after the other, and the ports of the observed nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from random import Random

from hypermon.studies.machine.core.cpu import Cpu, Even
from hypermon.studies.machine.core.kernel import Kernel, Leg, Meet, Message, Receive, Send, Steps
from hypermon.studies.machine.core.network import Network, Wires
from hypermon.studies.machine.core.noise import NodeNoise, Noise, Quiet
from hypermon.studies.machine.core.ports import Cost, Off, PortRecorder, Recorder
from hypermon.studies.machine.core.records import kinds_of

__all__ = ["MARKS", "Label", "Machine", "Node", "Program", "Session"]

KINDS = kinds_of()
#: Events of each of two sizes, written back to back before a port's first program.
MARKS = 100
#: From one program's end to the next one's begin, us.
_APART_US = 1000
#: Ports that write their marks at the same time, and what that takes, us: all of 16 at once is more than a board takes.
_AT_ONCE, _MARKS_US = 4, 140.0
#: All ports' programs begin a multiple of this after the first marks, us.
_ROUND_US = 200.0
_MASK16 = 0xffff

Program = Callable[["Node"], Steps]


@dataclass(frozen=True)
class Label:
    """What a program is, in its ``begin``: the machine's number, the experiment's, and a parameter."""

    machine: int
    experiment: int
    parameter: int = 0


@dataclass
class Machine:
    """A machine and its plug-ins.

    Parameters
    ----------
    nodes : any number.
    legs : of a message with the given number of bytes.
    collective_us : from the last arrival at a collective operation to its end.
    seed : of everything random. ``jitter_us``: what a call of the message library takes more, at most.
    """

    nodes: int
    legs: Callable[[int], tuple[Leg, ...]] = lambda size: (Leg(0),)
    network: Network = field(default_factory=Wires)
    noise: Noise = field(default_factory=Quiet)
    cpu: Cpu = field(default_factory=Even)
    rule: str = "timeline"
    collective_us: float = 0.0
    jitter_us: float = 0.0
    seed: int = 1990


class Node:
    """A node, as its program sees it.

    Members
    -------
    number, nodes : its number, and the number of nodes. ``us``: its time.
    """

    def __init__(self, number: int, machine: Machine, recorder: Recorder, noise: NodeNoise, us: float, random: Random):
        self.number, self.nodes, self.us, self.random = number, machine.nodes, us, random
        self._machine, self._recorder, self._noise = machine, recorder, noise
        self._sequence: dict[int, int] = {}
        self._expected: dict[int, int] = {}

    def log(self, name: str, *fields: int) -> None:
        """An event of the dictionary, if the node has a port."""
        self.us = self._recorder.log(self.us, KINDS[name], fields)

    def compute(self, us: float) -> None:
        """The program works, as long as a node of full speed would need the given time."""
        self.us = self._noise.compute(self.us, self._machine.cpu.us(self.number, us))

    def jitter(self) -> None:
        """What a call takes more."""
        if self._machine.jitter_us:
            self.us += self._machine.jitter_us * self.random.random()

    def send(self, peer: int, size: int) -> Steps:
        """The message has left when it returns."""
        sequence = self._sequence[peer] = self._sequence.get(peer, -1) + 1 & _MASK16
        self.log("send", peer, sequence, size)
        self.jitter()
        self.us = yield Send(peer, self._machine.legs(size), Message(sequence, size))
        self.log("sent", peer, sequence)

    def receive(self, peer: int) -> Steps:
        """Waits for a message; returns its size."""
        expected = self._expected[peer] = self._expected.get(peer, -1) + 1 & _MASK16
        self.log("receive", peer, expected)
        message = yield Receive(peer)
        self.us = max(self.us, message.arrival)
        self.log("received", peer, message.sequence, message.size)
        return message.size

    def meet(self, kind: int, number: int, shown: tuple[bool, bool] = (True, True)) -> Steps:
        """A collective operation of all members; ``shown``: whether its two events are written."""
        if shown[0]:
            self.log("arrive", kind, number)
        self.us = yield Meet(kind, number)
        if shown[1]:
            self.log("leave", kind, number)


class Session:
    """Runs programs; each of its ports keeps what was written to it.

    Parameters
    ----------
    ports : how many. ``raw``: nobody records, and no event costs anything.

    Members
    -------
    recorders : of the ports. ``us``: the time.
    """

    def __init__(self, machine: Machine, ports: int, *, raw: bool = False, cost: Cost | None = None):
        self.machine, self.us = machine, 10.0
        self.recorders = [PortRecorder(cost=cost) for _ in range(ports)]
        self._raw, self._noises = raw, {}
        self._random = Random(machine.seed)

    def run(self, label: Label, programs: Mapping[int, Program], ports: Mapping[int, int], *,
            release: Callable[[int, int, float], float] | None = None, spread_us: float = 0.0) -> Mapping[int, object]:
        """Runs a program on each node that has one, to the end of the last.

        Parameters
        ----------
        label : of the programs. ``programs``: by node; the others are silent but on the network.
        ports : by port, the node that writes to it. The events of other nodes cost nothing and go nowhere.
        release : see :class:`.Kernel`; None: the last arrival plus the machine's constant.
        spread_us : within which the programs begin, at random.
        """
        self.machine.network.reset()
        by_node: dict[int, Recorder] = {} if self._raw else {node: self.recorders[port] for port, node in ports.items()}
        nodes = {number: Node(number, self.machine, by_node.get(number, Off()), self._noise(number), self.us, Random(
            self.machine.seed * 1000 + number)) for number in programs}
        steps = {number: self._whole(node, label, programs[number], spread_us) for number, node in nodes.items()}
        machine, results = self.machine, {}
        results = Kernel(nodes, steps, machine.network.traverse, release or (
            lambda kind, number, last: last + machine.collective_us)).run()
        self.us = max(node.us for node in nodes.values()) + _APART_US
        return results

    def _noise(self, number: int) -> NodeNoise:
        if number not in self._noises:
            machine = self.machine
            self._noises[number] = NodeNoise(machine.noise.sources(number), Random(machine.seed * 100_003 + number),
                                             machine.rule)
        return self._noises[number]

    def _whole(self, node: Node, label: Label, program: Program, spread_us: float) -> Steps:
        recorder = node._recorder
        groups = -(-len(self.recorders) // _AT_ONCE)
        begin = self.us + _ROUND_US * ceil(groups * _MARKS_US / _ROUND_US)
        if isinstance(recorder, PortRecorder) and not recorder.times:
            node.us += self.recorders.index(recorder) // _AT_ONCE * _MARKS_US
            for number in range(MARKS):
                node.log("mark", number)
            for number in range(MARKS):
                node.log("long_mark", number, 0)
        node.us = max(node.us, begin)
        node.log("begin", node.number, node.nodes, label.machine, label.experiment, label.parameter)
        node.us = max(node.us, begin + 100.0) + spread_us * self._random.random()
        result = yield from program(node)
        node.log("end")
        return result
