"""Contents of COMPACT payloads, in columns."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.host.wire.frames import Events
from hypermon.host.wire.item_modes import ItemModes
from hypermon.host.wire.times import TimeScale

__all__ = ["ABORTED", "ABORTED_NAMELESS", "CompactRows", "Decoded", "DecodedItems", "Fault", "ItemRows", "Span",
           "WHOLE"]

_Int = npt.NDArray[np.int64]
_Byte = npt.NDArray[np.uint8]

#: States of an item. A nameless one ended before even the event's id had arrived.
WHOLE, ABORTED, ABORTED_NAMELESS = 0, 1, 2


class Fault(NamedTuple):
    """Why a payload is not legal: the index of the payload, the first bad group, and the reason."""

    which: int
    position: int
    reason: str


class Span(NamedTuple):
    """Window and node of a payload's first item, and of its last item that is not late."""

    first: tuple[int, int]
    last: tuple[int, int]


class CompactRows:
    """Items of one nibble in columns: by window, ties by node.

    Members
    -------
    windows : window numbers, int64. ``node``, ``nibble``: uint8.
    """

    def __init__(self, windows: _Int, node: _Byte, nibble: _Byte):
        self.windows, self.node, self.nibble = windows, node, nibble

    def __len__(self) -> int:
        return len(self.windows)

    def per_node(self, nodes: int) -> _Int:
        """Events of each of the given number of nodes."""
        return np.bincount(self.node, minlength=nodes)

    def events(self, scale: TimeScale) -> Events:
        """All events."""
        return Events(scale.starts_ps(self.windows), self.node.astype(np.int16), self.nibble)


@dataclass(frozen=True)
class ItemRows:
    """Items of any mode in columns, in the order in which they are in the payloads.

    Members
    -------
    windows : window numbers, int64. ``node``: uint8.
    value : the nibble, the word or the event's id, uint32.
    state : :data:`WHOLE`, :data:`ABORTED` or :data:`ABORTED_NAMELESS`, uint8.
    ends : where in ``data`` the event's payload ends, int32; it begins where the previous one ends.
    data : payloads of events, uint8.
    modes : of the nodes.
    """

    windows: _Int
    node: _Byte
    value: npt.NDArray[np.uint32]
    state: _Byte
    ends: npt.NDArray[np.int32]
    data: _Byte
    modes: ItemModes

    def __len__(self) -> int:
        return len(self.windows)

    def per_node(self, nodes: int) -> tuple[_Int, _Int]:
        """Whole and aborted items of each of the given number of nodes."""
        aborted = np.bincount(self.node[self.state != WHOLE], minlength=nodes)
        return np.bincount(self.node, minlength=nodes) - aborted, aborted


class Decoded(NamedTuple):
    """Contents of decoded payloads.

    ``parts``: the items of all legal payloads, in order, some ten thousand at a time. ``spans``: the first and the last
    window and node of every payload; None if it is illegal or empty. ``faults``: the illegal ones, in order.
    """

    parts: list[CompactRows]
    spans: list[Span | None]
    faults: list[Fault]


class DecodedItems(NamedTuple):
    """The same for payloads that state the modes of their nodes."""

    parts: list[ItemRows]
    spans: list[Span | None]
    faults: list[Fault]
