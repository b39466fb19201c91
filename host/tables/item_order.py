"""Sorts items that arrive later than the order of their times.

An item of several nibbles arrives when it is complete, and has the time of its first strobe. Rows are therefore held
back until nothing older can arrive any more: see :func:`hypermon.host.blocks.item_modes.hold_windows`. Most rows arrive
in order; those that do not are taken out, sorted, and merged with the others.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.blocks.compact_rows import ABORTED_NAMELESS, WHOLE, ItemRows
from hypermon.host.blocks.item_merge import behind, merged
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.tables.parquet import event_schema

__all__ = ["ItemOrder", "ItemTable"]

#: Minimum number of new rows before they are sorted in; or as many as are held back, so that no row is moved often.
_BATCH = 1 << 16
#: Before all windows, and all keys.
_BEFORE = -1 << 62


@dataclass(frozen=True)
class ItemTable:
    """Items of any mode by window, ties by node, then by arrival.

    Parameters
    ----------
    nodes : number of nodes of the board.
    """

    items: ItemRows
    nodes: int

    def __len__(self) -> int:
        return len(self.items)

    @property
    def windows(self) -> npt.NDArray[np.int64]:
        return self.items.windows

    @property
    def state(self) -> npt.NDArray[np.uint8]:
        return self.items.state

    def events(self, scale: TimeScale) -> pa.Table:
        """The rows as they are stored: see :func:`.parquet.event_schema`."""
        rows = self.items
        modes = _modes(rows.modes, self.nodes)
        mode = None if modes is None else modes[rows.node]
        cut = bool(rows.state.any())
        nameless = rows.state == ABORTED_NAMELESS if cut else None

        def others(own: ItemMode) -> npt.NDArray[np.bool_] | None:
            """The rows of nodes in other modes; None if there are none."""
            return None if mode is None else mode != own

        def unnamed() -> npt.NDArray[np.bool_] | None:
            other = others(ItemMode.EVENT)
            return nameless if other is None else other if nameless is None else other | nameless

        made = {
            "time_ps": lambda: pa.array(scale.starts_ps(rows.windows)),
            "node": lambda: pa.array(rows.node.astype(np.int16)),
            "nibble": lambda: pa.array(rows.value.astype(np.uint8), mask=others(ItemMode.NIBBLE)),
            "word": lambda: pa.array(rows.value, mask=others(ItemMode.WORD)),
            "event": lambda: pa.array(rows.value.astype(np.uint8), mask=unnamed()),
            "payload": lambda: _payloads(rows, others(ItemMode.EVENT)),
            "aborted": lambda: _flags(rows.state != WHOLE if cut else None, len(rows)),
        }
        schema = event_schema(rows.modes, self.nodes)
        return pa.Table.from_arrays([made[name]() for name in schema.names], schema=schema)


@cache
def _modes(modes: ItemModes, nodes: int) -> npt.NDArray[np.uint8] | None:
    """The modes of the nodes; None if all have the same."""
    found = np.array([modes[node] for node in range(nodes)], np.uint8)
    return None if np.all(found == found[0]) else found


def _payloads(rows: ItemRows, missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    offsets = np.zeros(len(rows) + 1, np.int32)
    offsets[1:] = rows.ends
    return pa.Array.from_buffers(pa.binary(), len(rows), [valid, pa.py_buffer(offsets), pa.py_buffer(rows.data)])


def _flags(flags: npt.NDArray[np.bool_] | None, count: int) -> pa.Array:
    """An array of flags; None: all are false."""
    bits = np.zeros((count + 7) // 8, np.uint8) if flags is None else np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), count, [None, pa.py_buffer(bits)])


class _Chunk(NamedTuple):
    """Rows as they arrived, and which of them were behind earlier ones and are therefore elsewhere.

    ``newest``: 32 times the window, plus the node, of the newest of the others.
    """

    rows: ItemRows
    behind: npt.NDArray[np.int64]
    newest: int


class ItemOrder:
    """Puts items in order.

    Parameters
    ----------
    nodes : number of nodes of the board.
    hold : windows that an item can be older than the newest one before it.

    Members
    -------
    late : rows that arrived later than that, after newer ones had been returned.
    """

    def __init__(self, nodes: int, hold: int):
        self._nodes, self._hold = nodes, hold
        self._chunks: deque[_Chunk] = deque()
        self._behind: list[ItemRows] = []       # the rows that were behind
        # An item may begin before time 0: the constant of a front end is subtracted from its stamp.
        self._newest = self._given = self._newest_key = _BEFORE
        self._held = self._count = 0
        self.late: list[ItemRows] = []

    def add(self, rows: ItemRows) -> int:
        """Adds rows, in any order; returns how many of them arrived too late."""
        too_late = 0
        if len(rows) and int(rows.windows.min()) < self._given:
            late = rows.windows < self._given
            self.late.append(rows.picked(np.flatnonzero(late)))
            too_late, rows = int(np.count_nonzero(late)), rows.picked(np.flatnonzero(~late))
        if len(rows):
            which, self._newest_key = behind(rows, self._newest_key)
            if len(which):
                self._behind.append(rows.picked(which))
            if len(which) < len(rows):
                self._chunks.append(_Chunk(rows, which, self._newest_key))
            self._count += len(rows)
        return too_late

    def take(self, newest: int) -> Iterator[ItemTable]:
        """Rows that are due, when there are enough of them; ``newest``: window of the newest regular item."""
        self._newest = max(self._newest, newest)
        return self._sort(self._newest - self._hold) if self._count >= max(_BATCH, self._held) else iter(())

    def settle(self, until: int) -> Iterator[ItemTable]:
        """The rows of windows before ``until``, however few they are."""
        return self._sort(until) if self._count or self._held else iter(())

    def finish(self) -> Iterator[ItemTable]:
        """All remaining rows, except the late ones."""
        return self._sort(None)

    def late_rows(self) -> ItemTable | None:
        """The late ones, in order."""
        return ItemTable(_sorted(ItemRows.joined(self.late)), self._nodes) if self.late else None

    def _sort(self, until: int | None) -> Iterator[ItemTable]:
        """The rows of windows before ``until``, or all, in order; all of them must be taken."""
        self._held, self._count = self._held + self._count, 0
        aside = _sorted(ItemRows.joined(self._behind)) if self._behind else None
        self._behind = []
        if aside is not None and until is not None:
            due = int(np.searchsorted(aside.windows, until))
            if due < len(aside):
                self._behind = [aside.slice(due, len(aside))]
            aside = aside.slice(0, due)
        if until is not None:
            self._given = max(self._given, until)
        for rows in self._merge(self._due(until), aside):
            self._held -= len(rows)
            yield ItemTable(rows, self._nodes)

    def _due(self, until: int | None) -> Iterator[_Chunk]:
        """The chunks of windows before ``until``, taken out."""
        while self._chunks:
            chunk = self._chunks[0]
            if until is None or chunk.newest < until * 32:
                yield self._chunks.popleft()
                continue
            # The first row that is not due is none that was behind.
            end = int(np.argmax(chunk.rows.windows >= until))
            split = int(np.searchsorted(chunk.behind, end))
            if end == split:
                return
            self._chunks[0] = _Chunk(chunk.rows.slice(end, len(chunk.rows)), chunk.behind[split:] - end, chunk.newest)
            yield _Chunk(chunk.rows.slice(0, end), chunk.behind[:split], until * 32 - 1)
            return

    def _merge(self, chunks: Iterator[_Chunk], aside: ItemRows | None) -> Iterator[ItemRows]:
        """The rows of chunks and those that were behind, merged."""
        chunk = next(chunks, None)
        while chunk is not None:
            following = next(chunks, None)
            own = None
            if aside is not None and len(aside):
                # All rows before its newest one belong here; at the end, all that are left.
                end = len(aside) if following is None else int(np.searchsorted(_key(aside), chunk.newest))
                own, aside = aside.slice(0, end), aside.slice(end, len(aside))
            yield merged(chunk.rows, chunk.behind, own)
            chunk = following
        if aside is not None and len(aside):
            yield aside


def _key(rows: ItemRows) -> npt.NDArray[np.int64]:
    key = rows.windows * 32
    key += rows.node
    return key


def _sorted(rows: ItemRows) -> ItemRows:
    key = _key(rows)
    return rows if np.all(key[1:] >= key[:-1]) else rows.picked(np.argsort(key, kind="stable"))
