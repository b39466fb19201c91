"""Rows of a stimulus: at a given time, a node's port changes to a new value."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.sim.stimulus.picoseconds import Times

__all__ = ["Levels", "Rows", "Track", "level_type", "merged"]

#: Values of a port: 8 bits hold those of 4 data bits and a strobe, 16 those of 8 and a strobe.
Levels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def level_type(port_bits: int) -> type[np.uint8] | type[np.uint16]:
    """The array type for values of a port with the given number of data bits."""
    return np.uint8 if port_bits < 8 else np.uint16


@dataclass(frozen=True)
class Rows:
    """Three columns of the same length: ``time`` in ps, ``node``, ``port`` (new value, strobe above data)."""

    time: Times
    node: npt.NDArray[np.int16]
    port: Levels

    @classmethod
    def none(cls) -> "Rows":
        return cls(np.empty(0, np.int64), np.empty(0, np.int16), np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Track:
    """One node's port over a capture: its level at the start, and its changes by time."""

    initial: int
    time: Times
    port: Levels

    def rows(self, node: int) -> Rows:
        return Rows(self.time, np.full(len(self.time), node, np.int16), self.port)


def merged(parts: Sequence[Rows]) -> Rows:
    """All rows by time, then node. If one node has several at the same time the last is kept, in the order of ``parts``
    and of their rows.
    """
    time = np.concatenate([np.empty(0, np.int64), *(p.time for p in parts)])
    node = np.concatenate([np.empty(0, np.int16), *(p.node for p in parts)])
    port = np.concatenate([np.empty(0, np.uint8), *(p.port for p in parts)])
    if (time[1:] > time[:-1]).all():
        return Rows(time, node, port)
    order = np.lexsort((node, time))  # stable
    time, node, port = time[order], node[order], port[order]
    last = np.ones(len(time), bool)
    last[:-1] = (time[1:] != time[:-1]) | (node[1:] != node[:-1])
    return Rows(time[last], node[last], port[last])
