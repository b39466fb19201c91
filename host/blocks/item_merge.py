"""Merges items that arrived late with those that arrived in order, and orders times: in C (``items.c``) or NumPy."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.blocks.compact_rows import ItemRows
from hypermon.host.blocks.native import native

__all__ = ["Room", "behind", "merged", "time_order"]

_Int = npt.NDArray[np.int64]

_BEHIND = native("hypermon_behind_1", *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)
_MERGE = native("hypermon_merge_1", *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 3)
_ORDER = native("hypermon_time_order_1", ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3)


def behind(rows: ItemRows, newest: int) -> tuple[_Int, int]:
    """Indices of the rows that come before the newest one so far, by window and node, in ascending order; and the
    newest item after these rows.

    Parameters
    ----------
    newest : 32 times the window, plus the node, of the newest item before these rows; less than any if there is none.
    """
    if _BEHIND is None:
        key = rows.windows * 32 + rows.node
        before = np.maximum.accumulate(np.concatenate([[newest], key]))
        return np.flatnonzero(key < before[:-1]), int(before[-1])
    state, which = np.array([newest]), np.empty(len(rows), np.int64)
    count = _BEHIND(rows.windows.ctypes.data, rows.node.ctypes.data, len(rows), state.ctypes.data, which.ctypes.data)
    return which[:count].copy(), int(state[0])


def merged(rows: ItemRows, without: _Int, more: ItemRows | None) -> ItemRows:
    """Merges rows in order, without some of them, with other rows in order; of equal ones those of ``more`` come last.

    Parameters
    ----------
    without : indices, in ascending order.
    """
    if len(without) == 0 and (more is None or len(more) == 0):
        return rows
    if more is None:
        more = rows.slice(0, 0)
    if _MERGE is None:
        kept = np.ones(len(rows), np.bool_)
        kept[without] = False
        both = ItemRows.joined([rows.picked(np.flatnonzero(kept)), more])
        return both.picked(np.argsort(both.windows * 32 + both.node, kind="stable"))
    count = len(rows) - len(without) + len(more)
    made = ItemRows(np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.uint32),
                    np.empty(count, np.uint8), np.empty(count, np.int32),
                    np.empty(len(rows.data) + len(more.data), np.uint8), rows.modes)
    sizes = np.array([len(rows), len(more)])
    ours, others, out = _columns(rows), _columns(more), _columns(made)
    size = _MERGE(ours.ctypes.data, without.ctypes.data, len(without), others.ctypes.data, sizes.ctypes.data,
                  out.ctypes.data)
    return ItemRows(made.windows, made.node, made.value, made.state, made.ends, made.data[:size], made.modes)


def _columns(rows: ItemRows) -> npt.NDArray[np.uint64]:
    """``struct items`` of items.c."""
    columns = (rows.windows, rows.node, rows.value, rows.state, rows.ends, rows.data)
    return np.array([column.ctypes.data for column in columns], np.uint64)


class Room:
    """Memory that is reused, because new memory costs more than sorting in it (docs/performance.md)."""

    def __init__(self) -> None:
        self._kept: dict[str, npt.NDArray[np.uint8]] = {}

    def array(self, name: str, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array of this length. Its contents are lost when one of the same name is asked for."""
        size = count * np.dtype(dtype).itemsize
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size + size // 4, np.uint8)
        return kept[:size].view(dtype)


def time_order(times: _Int, room: Room | None = None) -> tuple[_Int, _Int]:
    """Times in ascending order, and the index of each; equal times stay in the order in which they are given.

    Parameters
    ----------
    room : memory for the index and other arrays; the index is valid until ``room`` is used again.
    """
    times, room = np.ascontiguousarray(times), room or Room()
    if _ORDER is not None:
        made, which = np.empty_like(times), room.array("which", len(times), np.int64)
        keys = room.array("keys", 2 * len(times), np.uint64)
        if _ORDER(times.ctypes.data, len(times), *(array.ctypes.data for array in (made, which, keys))) == 0:
            return made, which
    which = np.argsort(times, kind="stable")
    return times[which], which
