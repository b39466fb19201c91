"""Sequence numbers of a run's blocks: they only increase, whatever a link or a copy has done to the stream.

A block whose number has already passed is never used: its items have been counted already, or a census has counted
them as lost. The two cases are distinguished as long as the gap is remembered. Only recent gaps are remembered, so
memory does not grow with the run.
"""

from collections import deque

__all__ = ["Sequence"]

#: Numbers have 32 bits; a number less than half of them ahead counts as ahead.
_ALL, _HALF = 1 << 32, 1 << 31
#: Number of gaps that are remembered.
_GAPS = 256


class Sequence:
    """Sequence numbers of blocks from one source.

    Parameters
    ----------
    due : the number that comes next; None: any.

    Members
    -------
    due : the number that comes next, extended beyond 32 bits. ``next``: its low 32 bits, which the next block has;
        None: any.
    """

    def __init__(self, due: int | None = None):
        self.due = due
        self.next = None if due is None else due % _ALL
        # Before the first block nothing has arrived, unless the caller states which number is due.
        self._first = None if due is None else due - _HALF
        self._gaps: deque[tuple[int, int]] = deque(maxlen=_GAPS)

    def ahead(self, number: int) -> int:
        """How many numbers are missing before this one; negative: by how much it precedes the one that is due."""
        return 0 if self.due is None else (number - self.due + _HALF) % _ALL - _HALF

    def missed(self, number: int) -> bool:
        """Whether an earlier number was still missing when later ones arrived. Old gaps are forgotten."""
        if self.due is None or self._first is None:
            return False
        at = self.due + self.ahead(number)
        return at < self._first or any(first <= at < end for first, end in self._gaps)

    def take(self, number: int, blocks: int = 1) -> None:
        """Records the arrival of N consecutive blocks; the number of the first must not have passed."""
        ahead = self.ahead(number)
        first = number if self.due is None else self.due + ahead
        if self._first is None:
            self._first = first
        if ahead:
            self._gaps.append((first - ahead, first))
        self.due = first + blocks
        self.next = self.due % _ALL
