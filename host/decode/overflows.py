"""Overflow packets of an ITM: the node itself has lost packets, and reports it with the next one that it sends."""

import numpy as np
from hypermon.hdl.layout import ITM_OVERFLOW
from hypermon.host.blocks.compact_rows import WHOLE, ItemRows

__all__ = ["Overflows"]


class Overflows:
    """Removes overflow packets from a stream of items and counts them. Items are given in the order of their arrival.

    Parameters
    ----------
    nodes : number of nodes.
    itm : nodes whose events are packets of an ITM, one bit each.

    Members
    -------
    counts : overflow packets of each node so far.
    """

    def __init__(self, nodes: int, itm: int):
        self._itm = np.array([itm >> node & 1 for node in range(nodes)], np.bool_)
        self.counts = np.zeros(nodes, np.int64)
        self._newest = np.zeros(nodes, np.int64)    # stamp of a node's last item

    def taken(self, rows: ItemRows) -> tuple[ItemRows, list[tuple[int, int, int]]]:
        """The other rows; and for each overflow packet the node, the stamp of the item before it, and its own stamp."""
        mine = self._itm[rows.node]
        overflow = mine & (rows.value == ITM_OVERFLOW) & (rows.state == WHOLE)
        told = []
        for row in np.flatnonzero(overflow).tolist():
            node = int(rows.node[row])
            before = np.flatnonzero(rows.node[:row] == node)
            first = int(rows.windows[before[-1]]) if len(before) else int(self._newest[node])
            told.append((node, first, int(rows.windows[row])))
            self.counts[node] += 1
        np.maximum.at(self._newest, rows.node[mine], rows.windows[mine])
        return rows.picked(np.flatnonzero(~overflow)) if told else rows, told
