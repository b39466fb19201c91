"""Marks of a run: when pins of the board have risen, and which of these moments did not arrive."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from hypermon.hdl.layout import MARK_RECORD, MarkSource
from hypermon.host.blocks.blocks import Block
from hypermon.host.blocks.times import TimeScale

__all__ = ["Mark", "PinMarks", "read_marks"]

#: Marks of a pin that are kept, the first ones: a day of pulses.
_KEPT = 1 << 17
#: The pins, and marks that are numbered together.
_PINS = {MarkSource.PPS: "pps", MarkSource.TRIGGER: "trigger", MarkSource.SYNC_LATE: "sync"}
_SAME = {MarkSource.SYNC_EARLY: MarkSource.SYNC_LATE}


class Mark(NamedTuple):
    """A rise of a pin: the ``number`` of rises before it, and the clock edge that sampled it, counted from time 0."""

    source: MarkSource
    number: int
    clock: int

    def time_ps(self, scale: TimeScale) -> int:
        """The time of that clock edge."""
        return scale.clocks_ps(self.clock)


def read_marks(block: Block, scale: TimeScale) -> list[Mark]:
    """The records of a MARK block. Raises ValueError for one that no board writes."""
    records = np.frombuffer(block.payload, MARK_RECORD.numpy())
    window = scale.window_clocks
    marks = []
    for source, latency, left, number, stamp in zip(*(records[name].tolist() for name in (
            "source", "latency", "left", "number", "stamp")), strict=True):
        if source not in set(MarkSource) or left > window or stamp > scale.window_max:
            raise ValueError("a mark record that makes no sense")
        marks.append(Mark(MarkSource(source), number, (stamp + 1) * window - 1 - left - latency))
    return marks


class PinMarks:
    """The marks of a run, in order of arrival.

    Members
    -------
    marks : the first marks of each pin except ``sync_in``.
    sync : marks of ``sync_in`` since they were last taken; None: they are not collected.
    count, missing : for each pin, the marks that arrived, and the marks before the last one that did not.
        ``SYNC_LATE`` represents ``sync_in``, in both directions.
    """

    def __init__(self) -> None:
        self.marks: dict[MarkSource, list[Mark]] = {source: [] for source in _PINS}
        self.sync: list[Mark] | None = None
        self.count = dict.fromkeys(_PINS, 0)
        self._next = dict.fromkeys(_PINS, 0)

    def add(self, marks: Iterable[Mark]) -> None:
        for mark in marks:
            pin = _SAME.get(mark.source, mark.source)
            self.count[pin] += 1
            self._next[pin] = max(self._next[pin], mark.number + 1)
            if pin is MarkSource.SYNC_LATE:
                if self.sync is not None:
                    self.sync.append(mark)
            elif len(self.marks[pin]) < _KEPT:
                self.marks[pin].append(mark)

    @property
    def missing(self) -> dict[MarkSource, int]:
        return {source: max(self._next[source] - self.count[source], 0) for source in _PINS}

    def as_dict(self) -> dict[str, int]:
        """For ``decode.json``: the numbers of marks and of missing marks of each pin that has risen."""
        counts: dict[str, int] = {}
        for source, name in _PINS.items():
            if self._next[source]:
                counts |= {name: self.count[source], f"{name}_missing": self.missing[source]}
        return counts
