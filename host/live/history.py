"""Counts over time in constant memory: the last seconds finely, the hours before them coarsely."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["History", "Stretch"]

_Floats = npt.NDArray[np.float64]
#: Bins of each level; a level's bins are ``_STEP`` times as long as those of the one before it.
_BINS = 1024
_STEP = 4
#: The longest bins are ``_STEP ** (_LEVELS - 1)`` times the shortest: with bins of 10 ms, 31 days are kept.
_LEVELS = 10


class Stretch(NamedTuple):
    """Bins that follow each other.

    Members
    -------
    begin_ps, bin_ps : when the first begins, and how long one is.
    items, lost : counts, a row a bin, a column a node.
    level : the highest level in each bin.
    """

    begin_ps: int
    bin_ps: int
    items: _Floats
    lost: _Floats
    level: _Floats


class History:
    """Adds up counts in bins of several lengths.

    Parameters
    ----------
    nodes : columns.
    bin_ps : length of the shortest bins.
    """

    def __init__(self, nodes: int, bin_ps: int = 10**10):
        self.nodes, self.bin_ps = nodes, bin_ps
        self._counts = np.zeros((_LEVELS, _BINS, 2 * nodes))
        self._level = np.zeros((_LEVELS, _BINS))
        self._head = [-1] * _LEVELS      # the newest bin that has been begun
        self.end_ps = 0

    def add(self, end_ps: npt.NDArray[np.int64], items: _Floats, lost: _Floats, level: _Floats) -> None:
        """Counts of times that end at ``end_ps``, which do not fall, nor go back behind what was added before."""
        if len(end_ps) == 0:
            return
        counts = np.concatenate([items, lost], axis=1)
        for number in range(_LEVELS):
            bins = np.maximum(end_ps - 1, 0) // (self.bin_ps * _STEP**number)
            head = int(bins[-1])
            fresh = np.arange(max(self._head[number] + 1, head - _BINS + 1), head + 1) % _BINS
            self._counts[number, fresh] = 0
            self._level[number, fresh] = 0
            self._head[number] = max(head, self._head[number])
            kept = bins > head - _BINS
            np.add.at(self._counts[number], bins[kept] % _BINS, counts[kept])
            np.maximum.at(self._level[number], bins[kept] % _BINS, level[kept])
        self.end_ps = int(end_ps[-1])

    def stretch(self, span_ps: int) -> Stretch:
        """The last ``span_ps``, or what there is, in at most 1024 bins, the shortest that reach so far."""
        span_ps = max(min(span_ps, self.end_ps), 1)
        number = next((n for n in range(_LEVELS) if span_ps <= self.bin_ps * _STEP**n * (_BINS - 1)), _LEVELS - 1)
        bin_ps = self.bin_ps * _STEP**number
        head = self._head[number]
        first = max(head + 1 - max(-(-span_ps // bin_ps), 1), head + 1 - _BINS, 0)
        rows = np.arange(first, head + 1) % _BINS
        counts = self._counts[number, rows]
        return Stretch(first * bin_ps, bin_ps, counts[:, :self.nodes], counts[:, self.nodes:],
                       self._level[number, rows])
