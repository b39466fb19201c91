"""Programs for a machine of many boards: any process can compute the port writes of any board, and their times.

The program is bulk-synchronous. In each iteration a node computes, meets all other nodes at a barrier, and sometimes
writes out a buffer faster than its board accepts it. Random numbers depend only on the seed and the node, so a process
that simulates one board computes that board's nodes and no others. The barriers depend on all nodes: they are computed
once, by :func:`barriers`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["CODES", "WORKLOADS", "Board", "Machine", "barriers", "board_of", "iterations", "stimulus_of", "writes_of"]

#: Nibbles that the programs write. Values of a buffer are 8 and above.
CODES = {"compute": 1, "computed": 2, "send": 3, "receive": 4, "arrive": 5, "leave": 6}
#: The events of a node in each iteration, without buffers.
WORKLOADS = {"bsp": 4, "exchange": 6}

_PS_US, _PS_NS = 1_000_000, 1000
#: An iteration computes for about this time; noise has an exponential tail.
_COMPUTE_US, _NOISE_US = 4000.0, 40.0
#: From the program's beginning to the first event; from the last arrival at a barrier to its end; a message's way.
_BEGIN_US, _BARRIER_US, _MESSAGE_US = 10_000.0, 5.0, 60.0
#: A buffer is written in one of this number of iterations; its length in events, and the time from one to the next.
_BUFFER_ONE_IN, _BUFFER_LEAST, _BUFFER_MOST, _BUFFER_NS = 200, 60, 160, 100
#: Times of the data before the strobe, and the least from one event to the next.
_STROBE_NS, _APART_NS = 40, 100
#: What differs from board to board: the clock, the moment of its time 0, and the cables of its nodes.
_DRIFT_PPM, _START_US, _CABLE_NS = 50.0, 2000.0, 100

_Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Machine:
    """A machine and its program.

    Parameters
    ----------
    boards, nodes : boards, and nodes of each board; their product is even.
    events : at least this number is written.
    workload : one of :data:`WORKLOADS`.
    seed : of everything random.
    """

    boards: int
    nodes: int
    events: int
    workload: str
    seed: int

    def random(self, *what: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self.seed, *what])


@dataclass(frozen=True)
class Board:
    """How a board's time differs from the machine's.

    Parameters
    ----------
    start_ps : the machine's time when the board's is 0.
    drift_ppm : how much faster its clock runs.
    cables_ps : delay of the cable of each node.
    """

    start_ps: int
    drift_ppm: float
    cables_ps: list[int]

    def local(self, times_ps: _Times, node: int) -> _Times:
        """Times of the board at which changes at a node arrive."""
        since = times_ps - self.start_ps + self.cables_ps[node]
        return since + np.rint(since * (self.drift_ppm * 1e-6)).astype(np.int64)

    def machine_ps(self, board_ps: _Times) -> _Times:
        """The machine's time at times of the board."""
        return np.rint(board_ps / (1 + self.drift_ppm * 1e-6)).astype(np.int64) + self.start_ps


def board_of(machine: Machine, number: int) -> Board:
    """The clock and the cables of a board. The first one begins first."""
    random = machine.random(1, number)
    start = round(random.uniform(0, _START_US) * _PS_US) if number else 0
    drift = random.uniform(-_DRIFT_PPM, _DRIFT_PPM)
    return Board(start, drift, (random.integers(0, _CABLE_NS, machine.nodes) * _PS_NS).tolist())


def iterations(machine: Machine) -> int:
    """The number of iterations in which the nodes write the requested number of events, without buffers."""
    return -(-machine.events // (machine.boards * machine.nodes * WORKLOADS[machine.workload]))


def barriers(machine: Machine) -> npt.NDArray[np.float64]:
    """When each iteration begins, and the last one ends, in us of the machine's time."""
    half = machine.boards * machine.nodes // 2
    longest = np.zeros(iterations(machine))
    for node in range(half):
        np.maximum(longest, _arrivals(machine, node)[-1], out=longest)
        np.maximum(longest, _arrivals(machine, node + half)[-1], out=longest)
    return np.concatenate([[_BEGIN_US], _BEGIN_US + np.cumsum(longest + _BARRIER_US)])


def _computed(machine: Machine, node: int) -> npt.NDArray[np.float64]:
    """How long a node computes in each iteration, in us."""
    random = machine.random(2, node)
    count = iterations(machine)
    return _COMPUTE_US * random.uniform(0.98, 1.02, count) + random.exponential(_NOISE_US, count)


def _arrivals(machine: Machine, node: int) -> list[npt.NDArray[np.float64]]:
    """Times of a node's events in each iteration, in us after its beginning: all but ``compute`` and ``leave``.

    In ``exchange``, nodes of the lower half send to those of the upper half, which answer.
    """
    own = _computed(machine, node)
    if machine.workload == "bsp":
        return [own, own + 1]
    half = machine.boards * machine.nodes // 2
    other = _computed(machine, (node + half) % (2 * half))
    low, high = (own, other) if node < half else (other, own)
    sent = low + 1
    received = np.maximum(high + 1, sent + _MESSAGE_US)
    answered = received + 1
    ended = answered + _MESSAGE_US
    return [own, sent, ended, ended + 1] if node < half else [own, received, answered, answered + 1]


def _codes(machine: Machine, node: int) -> list[int]:
    if machine.workload == "bsp":
        return [1, 2, 5, 6]
    return [1, 2, 3, 4, 5, 6] if node < machine.boards * machine.nodes // 2 else [1, 2, 4, 3, 5, 6]


def writes_of(machine: Machine, node: int, begins_us: npt.NDArray[np.float64]) -> tuple[_Times, npt.NDArray[np.uint8]]:
    """The events of a node: when their strobes rise, in ps of the machine's time, and their values.

    Parameters
    ----------
    begins_us : of the iterations; see :func:`barriers`.
    """
    begin, end = begins_us[:-1], begins_us[1:]
    columns = [begin, *(begin + after for after in _arrivals(machine, node)), end - 1]
    times = np.rint(np.column_stack(columns).ravel() * _PS_US).astype(np.int64)
    values = np.tile(np.array(_codes(machine, node), np.uint8), len(begin))
    random = machine.random(3, node)
    full = np.flatnonzero(random.integers(0, _BUFFER_ONE_IN, len(begin)) == 0)
    lengths = random.integers(_BUFFER_LEAST, _BUFFER_MOST, len(full))
    order = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    after = np.rint((begin[full] + 500) * _PS_US).astype(np.int64)
    buffers = np.repeat(after, lengths) + order * (_BUFFER_NS * _PS_NS)
    times, values = np.concatenate([times, buffers]), np.concatenate([values, (8 + order % 8).astype(np.uint8)])
    sorting = np.argsort(times, kind="stable")
    apart = np.arange(len(times)) * (_APART_NS * _PS_NS)
    spread: _Times = np.maximum.accumulate(times[sorting] - apart) + apart
    return spread, values[sorting]


def stimulus_of(machine: Machine, number: int, begins_us: npt.NDArray[np.float64]) -> Stimulus:
    """The port writes at a board, in its time: the data with strobe 0, then with strobe 1."""
    board = board_of(machine, number)
    parts = []
    for own in range(machine.nodes):
        times, values = writes_of(machine, number * machine.nodes + own, begins_us)
        both = np.column_stack([times - _STROBE_NS * _PS_NS, times]).ravel()
        levels = np.column_stack([values, values | 16]).ravel().astype(np.uint16)
        parts.append((board.local(both, own), np.full(len(both), own, np.int16), levels))
    time, node, port = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((node, time))
    return Stimulus(time[order], node[order], port[order], [0] * machine.nodes)
