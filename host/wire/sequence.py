"""Sequence numbers of a run's blocks: they only rise, whatever a link or a copy has done to the stream.

A block whose number is behind is never taken: its events have been counted already, or a census has counted them as
lost. Both are told apart as far as the last gaps are remembered, so memory does not grow with the run.
"""

from collections import deque

__all__ = ["Sequence"]

#: Numbers are 32 bits; what is less than half of them ahead is ahead.
_ALL, _HALF = 1 << 32, 1 << 31
#: Gaps that are remembered.
_GAPS = 256


class Sequence:
    """Numbers of blocks from one source.

    Parameters
    ----------
    due : the number that comes next; None: any.

    Members
    -------
    due : likewise, counted on beyond 32 bits. ``next``: its 32 bits, which the next block has; None: any.
    """

    def __init__(self, due: int | None = None):
        self.due = due
        self.next = None if due is None else due % _ALL
        # Before the first block nothing has come, unless it was said which one is due.
        self._first = None if due is None else due - _HALF
        self._gaps: deque[tuple[int, int]] = deque(maxlen=_GAPS)

    def ahead(self, number: int) -> int:
        """How many numbers are missing before this one; negative: how far it is behind the one that is due."""
        return 0 if self.due is None else (number - self.due + _HALF) % _ALL - _HALF

    def missed(self, number: int) -> bool:
        """Whether a number that is behind had not come when those after it came. Of old gaps that is forgotten."""
        if self.due is None or self._first is None:
            return False
        at = self.due + self.ahead(number)
        return at < self._first or any(first <= at < end for first, end in self._gaps)

    def take(self, number: int, blocks: int = 1) -> None:
        """So many blocks in a row have come, the first of which has this number, which is not behind."""
        ahead = self.ahead(number)
        first = number if self.due is None else self.due + ahead
        if self._first is None:
            self._first = first
        if ahead:
            self._gaps.append((first - ahead, first))
        self.due = first + blocks
        self.next = self.due % _ALL
