"""The drift of a board that keeps its own clock while it follows another one: marks of ``sync_in``, as they arrived.

``RUN/drift.bin`` has 16 bytes for each mark, little-endian: the clock edge in the board's time (8), the number of the
mark (4), its source (4), see :class:`.MarkSource`. It is written during the recording, so that a board can be aligned
before it is decoded, and also if its blocks were not kept.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import MarkSource

__all__ = ["DRIFT", "DriftLog", "load_drift"]

#: The file in a RUN.
DRIFT = "drift.bin"
_MARK = np.dtype([("clock", "<i8"), ("number", "<u4"), ("source", "<u4")])
_SOURCES = (MarkSource.SYNC_LATE, MarkSource.SYNC_EARLY)


#: The first marks are all kept; of the others one in this number of clocks: 3 kB a second at 100 MHz.
_FIRST, _APART = 64, 1 << 19


class DriftLog:
    """Appends marks to a file in ``directory``, which exists from the first call on. Of many marks, some are enough."""

    def __init__(self, directory: Path):
        self._path = directory / DRIFT
        self._count, self._last = 0, 0

    def add(self, marks: Iterable[tuple[MarkSource, int, int]]) -> None:
        """Appends marks: source, number and clock edge each."""
        kept = []
        for source, number, clock in marks:
            if self._count < _FIRST or clock - self._last >= _APART:
                self._count, self._last = self._count + 1, clock
                kept.append((clock, number, source))
        rows = np.array(kept, _MARK)
        with self._path.open("ab") as file:
            file.write(rows.tobytes())


def load_drift(directory: Path) -> npt.NDArray[np.void] | None:
    """The marks of a RUN: ``clock``, ``number``, ``source``, in order of time; None if there is no such file. Marks
    that make no sense, and a torn one at the end, are left out.
    """
    try:
        data = (directory / DRIFT).read_bytes()
    except FileNotFoundError:
        return None
    marks = np.frombuffer(data[:len(data) // _MARK.itemsize * _MARK.itemsize], _MARK)
    marks = marks[np.isin(marks["source"], _SOURCES) & (marks["clock"] > 0) & (marks["clock"] < 1 << 60)]
    rises = np.maximum.accumulate(marks["clock"]) if len(marks) else marks["clock"]
    good: npt.NDArray[np.void] = marks[(marks["clock"] == rises) & (np.diff(rises, prepend=-1) > 0)]
    return good
