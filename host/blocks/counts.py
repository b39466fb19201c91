"""Counts items by node and by window, in C (``items.c``) or with NumPy."""

import ctypes

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import NODES_MAX
from hypermon.host.blocks.native import native

__all__ = ["ABORTED", "ABORTED_NAMELESS", "WHOLE", "WindowCount", "per_node"]

#: States of an item. A nameless one ended before even the event's id had arrived.
WHOLE, ABORTED, ABORTED_NAMELESS = 0, 1, 2

_PER_NODE = native("hypermon_per_node_1", *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)
_WINDOWS = native("hypermon_windows_1", *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p)


def per_node(node: npt.NDArray[np.uint8], state: npt.NDArray[np.uint8] | None, nodes: int
             ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Whole and other items of each of the given number of nodes; ``state``: of the items, None if all are whole."""
    if _PER_NODE is None:
        count = np.bincount(node, minlength=nodes)
        cut = np.zeros(nodes, np.int64) if state is None else np.bincount(node[state != WHOLE], minlength=nodes)
        return count - cut, cut
    sums = np.zeros((2, NODES_MAX), np.int64)
    _PER_NODE(node.ctypes.data, None if state is None else state.ctypes.data, len(node), sums[0].ctypes.data,
              sums[1].ctypes.data)
    return sums[0, :nodes], sums[1, :nodes]


class WindowCount:
    """Counts the windows of items that arrive in order.

    Members
    -------
    windows : number of windows with items. ``shared``: number of whole items that share their window.
    """

    def __init__(self) -> None:
        # The last window, which may continue, and whether it has one item so far, which is whole; and the counts.
        self._run = np.array([-1, 0, 0, 0], np.int64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowCount) and self._run.tolist() == other._run.tolist()

    __hash__ = None  # type: ignore[assignment]

    @property
    def windows(self) -> int:
        return int(self._run[2])

    @property
    def shared(self) -> int:
        return int(self._run[3])

    def add(self, windows: npt.NDArray[np.int64], state: npt.NDArray[np.uint8] | None) -> None:
        """Adds items; ``state``: of the items, None if all are whole."""
        if len(windows) == 0:
            return
        if _WINDOWS is not None:
            _WINDOWS(windows.ctypes.data, None if state is None else state.ctypes.data, len(windows),
                     self._run.ctypes.data)
            return
        begins = np.empty(len(windows) + 1, np.bool_)
        begins[0], begins[-1] = windows[0] != self._run[0], True
        np.not_equal(windows[1:], windows[:-1], out=begins[1:-1])
        whole = np.ones(len(windows), np.bool_) if state is None else state == WHOLE
        alone = begins[:-1] & begins[1:]
        shared = int(np.count_nonzero(whole > alone)) + int(self._run[1] and not begins[0])
        self._run += np.array([0, 0, np.count_nonzero(begins[:-1]), shared])
        self._run[:2] = windows[-1], alone[-1] and whole[-1]
