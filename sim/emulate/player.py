"""Nodes that play a workload in real time, one thread each: on pins, or into memory for the virtual board."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from hypermon.sim.emulate.workload import Item, Kind, Workload
from hypermon.sim.pins import Port
from hypermon.sim.stimulus.rows import Rows, level_type, merged
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["VirtualPort", "emulate", "stimulus_of"]

#: A value stays on a virtual port for two clocks of a board of 100 MHz and a nanosecond.
HOLD_NS = 21
#: An item that the scheduler has interrupted for this long is written again: a board aborts it after 10 ms.
TORN_NS = 5_000_000
#: The sleep of a thread ends late by about this time; the rest is a busy wait.
_SPIN_NS = 200_000


class VirtualPort(Port):
    """A port in memory, of 4 or 8 bits: each write is stamped with the real time.

    Attributes
    ----------
    writes : (nanoseconds of the monotonic clock, value) of each, :data:`HOLD_NS` apart at least.
    torn : items that were written again.
    """

    def __init__(self, bits: int = 4) -> None:
        super().__init__(bits)
        self.writes: list[tuple[int, int]] = []
        self.torn = 0

    def write(self, value: int) -> None:
        free = self.writes[-1][0] + HOLD_NS if self.writes else 0
        while (now := time.monotonic_ns()) < free:
            pass
        self.writes.append((now, value))

    def word(self, word: int) -> None:
        self._whole(lambda: super(VirtualPort, self).word(word))

    def event(self, event: int, payload: bytes = b"") -> None:
        self._whole(lambda: super(VirtualPort, self).event(event, payload))

    def close(self) -> None:
        pass

    def _whole(self, write: Callable[[], None]) -> None:
        begin = len(self.writes)
        while True:
            write()
            times = [at for at, _ in self.writes[begin:]]
            if all(after - before <= TORN_NS for before, after in pairwise(times)):
                return
            del self.writes[begin:]
            self.torn += 1


def emulate(workload: Workload, ports: Mapping[int, Port], *, stop: threading.Event | None = None) -> int:
    """Plays the items of the ports' nodes, each at its time since the beginning.

    If a port is busy when an item is due, or a thread does not run, the item is written late; none is left out.

    Parameters
    ----------
    ports : by node.
    stop : when set, ends it before the next items.

    Returns
    -------
    nanoseconds of the monotonic clock at the beginning.
    """
    over = threading.Event() if stop is None else stop
    begin = time.monotonic_ns() + 10_000_000  # by then all threads run
    faults: list[BaseException] = []

    def node(items: Sequence[Item], port: Port) -> None:
        try:
            _play(items, port, begin, over)
        except BaseException as fault:
            faults.append(fault)
            over.set()

    threads = [threading.Thread(target=node, args=(workload.of(number), port), name=f"node {number}")
               for number, port in ports.items()]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        over.set()
        for thread in threads:
            thread.join()
        raise
    if faults:
        raise faults[0]
    return begin


def _play(items: Sequence[Item], port: Port, begin: int, over: threading.Event) -> None:
    for item in items:
        due = begin + item.time_ps // 1000
        while (left := due - time.monotonic_ns()) > 0 and not over.is_set():
            if left > _SPIN_NS:
                over.wait((left - _SPIN_NS) / 1e9)
        if over.is_set():
            return
        match item.kind:
            case Kind.NIBBLE:
                port.nibble(item.data[0])
            case Kind.WORD:
                port.word(int.from_bytes(item.data, "little"))
            case Kind.EVENT:
                port.event(item.data[0], item.data[1:])


def stimulus_of(ports: Mapping[int, VirtualPort], begin: int, nodes: int) -> Stimulus:
    """The writes to virtual ports as a stimulus, for a virtual board with the given number of nodes."""
    parts = [Rows(np.array([at - begin for at, _ in port.writes], np.int64) * 1000,
                  np.full(len(port.writes), node, np.int16),
                  np.array([value for _, value in port.writes], level_type(port.bits)))
             for node, port in ports.items()]
    rows = merged(parts)
    return Stimulus(rows.time, rows.node, rows.port, [0] * nodes)
