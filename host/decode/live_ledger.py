"""The accounting of a stream that is shown while it arrives: items are not held back for longer than needed."""

from collections.abc import Iterator

from hypermon.host.decode.ledger import Ledger
from hypermon.host.tables.item_order import ItemTable

__all__ = ["LiveLedger"]


class LiveLedger(Ledger):
    """A :class:`.Ledger` that returns items of several nibbles as soon as their order is known.

    A Ledger returns them in large batches, which is faster.
    """

    @property
    def newest(self) -> int:
        """Stamp of the newest item; -1 before the first."""
        return self._last[0]

    @property
    def hold(self) -> int:
        """The number of stamps by which an item may arrive after newer ones."""
        return self._hold * self.scale.stamp_window

    @property
    def counted_late(self) -> int:
        """The number of stamps by which a census may count a rejected item late."""
        return self._counted_late * self.scale.stamp_window

    @property
    def agreed(self) -> list[int]:
        """For each node, the window of the last census that counts no more refused items than the records before it."""
        return list(self._agreed)

    def settle(self, stamp: int) -> Iterator[ItemTable]:
        """Declares that everything up to ``stamp`` has left the board, and returns the rows that are now final."""
        for rows in self._order.settle(stamp - self.hold):
            self._windows.add(rows.windows, rows.state)
            yield rows
