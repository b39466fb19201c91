"""Counts over time in constant memory: the last seconds at fine resolution, earlier hours coarsely."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["History", "Stretch"]

_Floats = npt.NDArray[np.float64]
#: Bins of each level; a level's bins are ``_STEP`` times as long as those of the previous one.
_BINS = 1024
_STEP = 4
#: The longest bins are ``_STEP ** (_LEVELS - 1)`` times the shortest: with bins of 10 ms, 31 days are kept.
_LEVELS = 10
#: The last time that can be counted: the ends of the bins around it must fit int64.
_LATEST_PS = 2**62


class Stretch(NamedTuple):
    """Consecutive bins.

    Members
    -------
    begin_ps, bin_ps : when the first begins, and how long one is.
    end_ps : the time until which items are counted, which may be within the last bin.
    items, lost : counts, one row per bin, one column per node.
    level : the highest level in each bin.
    """

    begin_ps: int
    bin_ps: int
    end_ps: int
    items: _Floats
    lost: _Floats
    level: _Floats


class History:
    """Adds up counts in bins of several lengths.

    Parameters
    ----------
    nodes : columns.
    bin_ps : length of the shortest bins.
    levels : lengths of bins. With 1, the last ten seconds are kept.
    """

    def __init__(self, nodes: int, bin_ps: int = 10**10, levels: int = _LEVELS):
        self.nodes, self.bin_ps, self.levels = nodes, bin_ps, levels
        self._counts = np.zeros((levels, _BINS, 2 * nodes))
        self._level = np.zeros((levels, _BINS))
        self._head = [-1] * levels      # the newest bin that has been begun
        self.end_ps = 0                  # the time until which items are counted

    def add(self, end_ps: npt.NDArray[np.int64], items: _Floats, lost: _Floats, level: _Floats) -> None:
        """Adds the counts of consecutive intervals.

        The counts of an interval are spread evenly over the bins that it overlaps: in whole items, so that the bins add
        up to the counts. Times beyond 106 days are treated as the last one that can be shown.

        Parameters
        ----------
        end_ps : when each interval ends. An interval begins where the previous one ended, the first at 0. Times do not
            decrease.
        items, lost : whole numbers, one row per interval, one column per node.
        level : the highest level that is known at the end of each interval.
        """
        if len(end_ps) == 0:
            return
        end_ps = np.minimum(end_ps, _LATEST_PS)
        knots = np.concatenate([[self.end_ps], end_ps])
        sums = np.concatenate([items, lost], axis=1).cumsum(axis=0)
        sums = np.concatenate([np.zeros((1, 2 * self.nodes)), sums])
        for number in range(self.levels):
            bin_ps = self.bin_ps * _STEP**number
            bins = np.maximum(knots - 1, 0) // bin_ps
            head = int(bins[-1])
            self._begin(number, head)
            first = max(int(bins[0]), head - _BINS + 1)
            until = _sums_at(np.arange(first, head + 2) * bin_ps, knots, sums)
            if first == bins[0]:
                until[0] = 0    # an interval that ends together with the previous one belongs to its bin
            self._counts[number, np.arange(first, head + 1) % _BINS] += np.diff(until, axis=0)
            seen = bins[1:] >= first
            np.maximum.at(self._level[number], bins[1:][seen] % _BINS, level[seen])
        self.end_ps = int(end_ps[-1])

    def _begin(self, number: int, head: int) -> None:
        """Creates the bins of a level up to ``head``; those without counts so far are empty."""
        fresh = np.arange(max(self._head[number] + 1, head - _BINS + 1), head + 1) % _BINS
        self._counts[number, fresh] = 0
        self._level[number, fresh] = 0
        self._head[number] = max(head, self._head[number])

    def stretch(self, span_ps: int) -> Stretch:
        """The last ``span_ps``, or all that exists, in at most 1024 bins: the shortest that reach that far."""
        span_ps = max(min(span_ps, self.end_ps), 1)
        number = next((n for n in range(self.levels) if span_ps <= self.bin_ps * _STEP**n * (_BINS - 1)),
                      self.levels - 1)
        bin_ps = self.bin_ps * _STEP**number
        head = self._head[number]
        first = max(head + 1 - max(-(-span_ps // bin_ps), 1), head + 1 - _BINS, 0)
        rows = np.arange(first, head + 1) % _BINS
        counts = self._counts[number, rows]
        return Stretch(first * bin_ps, bin_ps, self.end_ps, counts[:, :self.nodes], counts[:, self.nodes:],
                       self._level[number, rows])


def _sums_at(times: npt.NDArray[np.int64], knots: npt.NDArray[np.int64], sums: _Floats) -> _Floats:
    """The counts up to ``times``, in whole items: ``sums`` at ``knots``, and in proportion between them."""
    times = np.clip(times, knots[0], knots[-1])
    left = np.searchsorted(knots, times, side="right") - 1
    right = np.minimum(left + 1, len(knots) - 1)
    share = (times - knots[left]) / np.maximum(knots[right] - knots[left], 1)
    found: _Floats = sums[left] + np.rint((sums[right] - sums[left]) * share[:, None])
    return found
