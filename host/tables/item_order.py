"""Sorts items that arrive later than the order of their times.

An item of several nibbles arrives when it is complete, and has the time of its first strobe. Rows are therefore held
back until nothing older can arrive any more: see :func:`hypermon.host.wire.item_modes.hold_windows`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.tables.parquet import event_schema
from hypermon.host.wire.compact_rows import ABORTED_NAMELESS, WHOLE, ItemRows
from hypermon.host.wire.item_modes import ItemMode
from hypermon.host.wire.times import TimeScale

__all__ = ["ItemOrder", "ItemTable", "item_table"]

#: Minimum number of new rows before they are sorted in; or as many as are held back, so that no row is moved often.
_BATCH = 1 << 16


class ItemTable(NamedTuple):
    """Items of any mode by window, ties by node, then by arrival.

    Members
    -------
    windows : window numbers, int64.
    columns : the columns of :func:`.parquet.event_schema` except the first, which is the time.
    """

    windows: npt.NDArray[np.int64]
    columns: pa.Table

    @property
    def rows(self) -> int:
        return len(self.windows)

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Which items were not aborted."""
        aborted: npt.NDArray[np.bool_] = self.columns["aborted"].to_numpy()
        return ~aborted

    def events(self, scale: TimeScale) -> pa.Table:
        """The rows as they are stored."""
        return self.columns.add_column(0, pa.field("time_ps", pa.int64(), nullable=False),
                                       pa.array(scale.starts_ps(self.windows)))

    def slice(self, low: int, high: int) -> "ItemTable":
        return ItemTable(self.windows[low:high], self.columns.slice(low, high - low))


def item_table(rows: ItemRows, nodes: int) -> ItemTable:
    """Decoded rows, in the order in which they arrived."""
    schema = event_schema(rows.modes, nodes)
    mode = np.array([rows.modes[node] for node in range(nodes)], np.uint8)[rows.node]
    is_event = mode == ItemMode.EVENT
    made = {
        "node": lambda: pa.array(rows.node.astype(np.int16)),
        "nibble": lambda: pa.array(rows.value.astype(np.uint8), mask=mode != ItemMode.NIBBLE),
        "word": lambda: pa.array(rows.value, mask=mode != ItemMode.WORD),
        "event": lambda: pa.array(rows.value.astype(np.uint8), mask=~is_event | (rows.state == ABORTED_NAMELESS)),
        "payload": lambda: pa.Array.from_buffers(pa.binary(), len(rows), [
            pa.py_buffer(np.packbits(is_event, bitorder="little").tobytes()),
            pa.py_buffer(np.concatenate([np.zeros(1, np.int32), rows.ends])), pa.py_buffer(rows.data)]),
        "aborted": lambda: pa.array(rows.state != WHOLE),
    }
    fields = list(schema)[1:]
    return ItemTable(rows.windows, pa.Table.from_arrays([made[field.name]() for field in fields],
                                                        schema=pa.schema(fields)))


def _joined(parts: list[ItemTable]) -> ItemTable:
    return ItemTable(np.concatenate([part.windows for part in parts]),
                     pa.concat_tables([part.columns for part in parts]).combine_chunks())


def _sorted(table: ItemTable) -> ItemTable:
    key = table.windows * 32
    key += table.columns["node"].to_numpy()
    if np.all(key[1:] >= key[:-1]):
        return table
    order = np.argsort(key, kind="stable")
    return ItemTable(table.windows[order], table.columns.take(pa.array(order)))


class ItemOrder:
    """Puts items in order.

    Parameters
    ----------
    nodes : of the board.
    hold : windows that an item can be older than the newest one before it.

    Members
    -------
    late : rows that arrived later than that, after newer ones had been returned.
    """

    def __init__(self, nodes: int, hold: int):
        self._nodes, self._hold = nodes, hold
        self._held: ItemTable | None = None
        self._came: list[ItemTable] = []
        self._count = 0
        self._newest = self._given = 0
        self.late: list[ItemTable] = []

    def add(self, rows: ItemRows) -> int:
        """Adds rows, in any order; returns how many of them arrived too late."""
        table = item_table(rows, self._nodes)
        too_late = table.windows < self._given
        if too_late.any():
            keep = np.flatnonzero(~too_late)
            out = np.flatnonzero(too_late)
            self.late.append(ItemTable(table.windows[out], table.columns.take(pa.array(out))))
            table = ItemTable(table.windows[keep], table.columns.take(pa.array(keep)))
        if table.rows:
            self._came.append(table)
            self._count += table.rows
        return int(np.count_nonzero(too_late))

    def take(self, newest: int) -> ItemTable | None:
        """Rows that are due, when there are enough of them; ``newest``: window of the newest regular item."""
        self._newest = max(self._newest, newest)
        held = self._held.rows if self._held is not None else 0
        return self._sort(self._newest - self._hold) if self._count >= max(_BATCH, held) else None

    def finish(self) -> ItemTable | None:
        """All remaining rows, except the late ones."""
        return self._sort(None)

    def finish_late(self) -> ItemTable | None:
        """The late ones, in order."""
        return _sorted(_joined(self.late)) if self.late else None

    def _sort(self, until: int | None) -> ItemTable | None:
        """Sorts the new rows in, and returns the rows of windows before ``until``, or all."""
        parts = [*([self._held] if self._held is not None else []), *self._came]
        self._came, self._count = [], 0
        if not parts:
            return None
        table = _sorted(_joined(parts))
        end = table.rows if until is None else int(np.searchsorted(table.windows, until))
        self._held = table.slice(end, table.rows) if end < table.rows else None
        if until is not None:
            self._given = max(self._given, until)
        return table.slice(0, end) if end else None
