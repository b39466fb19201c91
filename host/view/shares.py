"""How much of each column of a picture each state takes, where the states are too many to be drawn one by one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Grid", "States", "occupied"]

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
#: Bins of a grid at most, and its cells.
_BINS, _CELLS = 1 << 16, 1 << 24


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


class Grid:
    """The states of a whole run, in bins.

    Parameters
    ----------
    kinds : numbers of kinds are below this.
    begin_ps, end_ps : of the run.
    """

    def __init__(self, kinds: int, begin_ps: int, end_ps: int):
        self.bins = max(min(_BINS, _CELLS // max(kinds, 1)), 1)
        self.kinds, self.begin_ps, self.end_ps = kinds, begin_ps, end_ps
        self.bin_ps = (end_ps - begin_ps) / self.bins
        self._sums = np.zeros((kinds, self.bins + 1))

    def fill(self, batches: Iterable[States]) -> None:
        """Adds all states of the run."""
        shares = np.zeros((self.kinds, self.bins))
        for batch in batches:
            shares += occupied(batch, self.kinds, self.begin_ps, self.end_ps, self.bins)
        np.cumsum(shares, axis=1, out=self._sums[:, 1:])

    def shares(self, kinds: Sequence[int], from_ps: int, to_ps: int, columns: int) -> _Floats:
        """Like :func:`occupied`, for some kinds, and for columns that are not shorter than a bin."""
        edges = from_ps + np.arange(columns + 1) * ((to_ps - from_ps) / columns)
        places = (edges - self.begin_ps) / self.bin_ps
        at = np.arange(self.bins + 1)
        width = (to_ps - from_ps) / columns / self.bin_ps
        found = [np.diff(np.interp(places, at, self._sums[kind])) / width for kind in kinds]
        return np.array(found).reshape(len(kinds), columns)
