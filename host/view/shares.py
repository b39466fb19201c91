"""How much of each column of a picture each state takes, where the states are too many to be drawn one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypermon.host.view.bins import Bins

__all__ = ["Gathered", "States", "length_for", "occupied"]

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
#: Bins of a run at most, and their cells; and those of the greater length.
_BINS, _CELLS, _LONG_BINS = 1 << 16, 1 << 22, 1 << 13
#: Bins of the greater length in a column, at least.
_WIDE = 2


@dataclass
class States:
    """Columns of a table of states.

    Members
    -------
    kinds : number of the state's node and name.
    begin_ps, end_ps : when it began and ended.
    """

    kinds: _Ints
    begin_ps: _Ints
    end_ps: _Ints


def occupied(states: States, kinds: int, from_ps: int, to_ps: int, columns: int) -> _Floats:
    """The share of each column in which a state of each kind is open; states that overlap add up.

    Parameters
    ----------
    kinds : numbers of kinds are below this.
    columns : of equal length, from ``from_ps`` to ``to_ps``.

    Returns
    -------
    numpy.ndarray
        a row per kind, a column per column.
    """
    width = columns + 1
    shares, opened = np.zeros(kinds * width), np.zeros(kinds * width)
    for times, sign in ((states.begin_ps, 1.0), (states.end_ps, -1.0)):
        places = (np.clip(times, from_ps, to_ps) - from_ps) * (columns / (to_ps - from_ps))
        at = places.astype(np.int64)
        cells = states.kinds * width + np.minimum(at, columns)
        opened += sign * np.bincount(cells, minlength=len(opened))
        shares += sign * np.bincount(cells, weights=at + 1 - places, minlength=len(shares))
    result = shares.reshape(kinds, width)
    # A state that began in an earlier column, and has not ended in one.
    result[:, 1:] += np.cumsum(opened.reshape(kinds, width), axis=1)[:, :-1]
    return np.maximum(result[:, :columns], 0)


class Gathered:
    """The time for which states of each kind are open, of a whole run, in bins.

    Parameters
    ----------
    kinds : numbers of kinds are below this.
    begin_ps, end_ps : of the run.
    """

    def __init__(self, kinds: int, begin_ps: int, end_ps: int):
        self._bins = Bins.empty(kinds, begin_ps, end_ps, max(min(_BINS, _CELLS // max(kinds, 1)), 1))
        # A row more: a state may end where the last bin does.
        self._open, self._part = (np.zeros((len(self._bins.values) + 1) * kinds, np.int64) for _ in range(2))

    def add(self, states: States) -> None:
        bins = self._bins
        for times, sign in ((states.begin_ps, 1), (states.end_ps, -1)):
            times = np.clip(times, bins.begin_ps, bins.end_ps)
            at = (times >> bins.shift) - bins.first
            cells = at * bins.values.shape[1] + states.kinds
            # Up to the end of its bin; in integers, which are exact.
            np.add.at(self._part, cells, sign * (((at + 1 + bins.first) << bins.shift) - times))
            np.add.at(self._open, cells, sign)

    def lengths(self) -> list[Bins]:
        """The bins of all states that were added, in two lengths, the longer one first."""
        bins = self._bins
        part, opened = (each.reshape(-1, bins.values.shape[1])[:-1] for each in (self._part, self._open))
        bins.values[:] = part
        bins.values[1:] += np.cumsum(opened, axis=0)[:-1] << bins.shift
        return [bins.coarser(_LONG_BINS), bins]


def length_for(lengths: Sequence[Bins], column_ps: float) -> Bins | None:
    """The bins of a picture with columns of this length: the longest ones that are half a column at most, or the
    shortest ones if these are a column at most. None: such a picture is made from the states.
    """
    if lengths and column_ps >= _WIDE * lengths[0].bin_ps:
        return lengths[0]
    return lengths[-1] if len(lengths) > 1 and column_ps >= lengths[-1].bin_ps else None
