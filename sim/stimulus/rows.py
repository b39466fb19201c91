"""Rows of a stimulus: at a given time, a node's port changes to a new value."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.sim.stimulus.picoseconds import Times

__all__ = ["Levels", "Rows", "Track", "joined", "level_type", "merged"]

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

    def chosen(self, which: npt.NDArray[Any]) -> "Rows":
        """The rows of these numbers, or those that a mask selects."""
        return Rows(self.time[which], self.node[which], self.port[which])


@dataclass(frozen=True)
class Track:
    """One node's port over a capture: its level at the start, and its changes by time.

    Several changes at one time are kept, in their order. ``unknown``: the file has no level of the strobe at the start;
    ``initial`` is then its first known level. ``lapses``: how often the strobe's known level is followed by an unknown
    one; the known level holds then. ``first_lapse_ps`` is the time of the first. ``blanks``: the times at which, in
    turn, some data bit becomes unknown, and all are known again; the first is not above 0 if some are unknown from the
    start.
    ``notes``: lines about how the file was read.
    """

    initial: int
    time: Times
    port: Levels
    unknown: bool = False
    lapses: int = 0
    first_lapse_ps: int = 0
    blanks: Times = field(default_factory=lambda: np.empty(0, np.int64))
    notes: tuple[str, ...] = ()

    def rows(self, node: int) -> Rows:
        return Rows(self.time, np.full(len(self.time), node, np.int16), self.port)


def merged(parts: Sequence[Rows]) -> Rows:
    """All rows by time, then node. Rows of one node at one time are in the order of ``parts`` and of their rows."""
    time = np.concatenate([np.empty(0, np.int64), *(p.time for p in parts)])
    node = np.concatenate([np.empty(0, np.int16), *(p.node for p in parts)])
    port = np.concatenate([np.empty(0, np.uint8), *(p.port for p in parts)])
    if (time[1:] > time[:-1]).all():
        return Rows(time, node, port)
    return Rows(time, node, port).chosen(np.lexsort((node, time)))  # stable


def joined(rows: Rows) -> tuple[Rows, Rows]:
    """Splits rows in the order of :func:`merged`: the last row of each node at each time, which is what a board can
    see, and the other rows, which that one replaces.
    """
    last = np.ones(len(rows), bool)
    last[:-1] = (rows.time[1:] != rows.time[:-1]) | (rows.node[1:] != rows.node[:-1])
    return (rows, Rows.none()) if last.all() else (rows.chosen(last), rows.chosen(~last))
