"""Contents of COMPACT payloads, in columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt
from hypermon.host.blocks.counts import ABORTED, ABORTED_NAMELESS, WHOLE, per_node
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.blocks.times import TimeScale

__all__ = ["ABORTED", "ABORTED_NAMELESS", "CompactRows", "Decoded", "DecodedItems", "Fault", "ItemRows",
           "Payloads", "Span", "Spans", "WHOLE"]

_Int = npt.NDArray[np.int64]
_Byte = npt.NDArray[np.uint8]


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
        """Number of items of each node, for the given number of nodes."""
        return per_node(self.node, None, nodes)[0]

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
        return per_node(self.node, self.state, nodes)

    @classmethod
    def joined(cls, parts: Sequence["ItemRows"]) -> "ItemRows":
        """Joins several rows, at least one, with the same modes."""
        if len(parts) == 1:
            return parts[0]
        bases = accumulate((len(part.data) for part in parts), initial=0)
        ends = [part.ends + np.int32(base) for part, base in zip(parts, bases, strict=False)]
        return cls(np.concatenate([part.windows for part in parts]), np.concatenate([part.node for part in parts]),
                   np.concatenate([part.value for part in parts]), np.concatenate([part.state for part in parts]),
                   np.concatenate(ends), np.concatenate([part.data for part in parts]), parts[0].modes)

    def slice(self, low: int, high: int) -> "ItemRows":
        """Rows ``low`` to ``high``."""
        if (low, high) == (0, len(self)):
            return self
        begin = int(self.ends[low - 1]) if low else 0
        end = int(self.ends[high - 1]) if high > low else begin
        return ItemRows(self.windows[low:high], self.node[low:high], self.value[low:high], self.state[low:high],
                        self.ends[low:high] - np.int32(begin), self.data[begin:end], self.modes)

    def picked(self, rows: _Int) -> "ItemRows":
        """The given rows, in that order."""
        starts = np.zeros_like(self.ends)
        starts[1:] = self.ends[:-1]
        begins = starts[rows].astype(np.int64)
        sizes = self.ends[rows] - begins
        ends = np.cumsum(sizes)
        data = self.data[np.repeat(begins - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)]
        return ItemRows(self.windows[rows], self.node[rows], self.value[rows], self.state[rows],
                        ends.astype(np.int32), data, self.modes)


@dataclass(frozen=True)
class Payloads:
    """Payloads of COMPACT blocks, without padding.

    Members
    -------
    data : all of them, one after the other, uint8.
    ends : where in ``data`` each ends, int64; it begins where the previous one ends.
    times : of their blocks, int64.
    """

    data: _Byte
    ends: _Int
    times: _Int

    @classmethod
    def of(cls, payloads: Sequence[bytes | memoryview], times: Sequence[int]) -> "Payloads":
        return cls(np.frombuffer(b"".join(payloads), np.uint8),
                   np.fromiter(accumulate(map(len, payloads)), np.int64, len(payloads)), np.array(times, np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Payloads"]) -> "Payloads":
        if len(parts) == 1:
            return parts[0]
        bases = accumulate((len(part.data) for part in parts), initial=0)
        return cls(np.concatenate([part.data for part in parts]),
                   np.concatenate([part.ends + base for part, base in zip(parts, bases, strict=False)]),
                   np.concatenate([part.times for part in parts]))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def starts(self) -> _Int:
        """Where in ``data`` each begins."""
        starts = np.zeros_like(self.ends)
        starts[1:] = self.ends[:-1]
        return starts

    def slice(self, low: int, high: int) -> "Payloads":
        begin = int(self.ends[low - 1]) if low else 0
        end = int(self.ends[high - 1]) if high else 0
        return Payloads(self.data[begin:end], self.ends[low:high] - begin, self.times[low:high])

    def each(self) -> list[memoryview]:
        """The payloads, one by one."""
        data = self.data.data
        return [data[low:high] for low, high in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


class Spans(Sequence[Span | None]):
    """The :class:`Span` of each of several payloads; None for one that is illegal or has no items.

    Members
    -------
    there : whether a payload has a span, bool.
    table : window and node of the first item, and window and node of the last; each is a row of int64.
    """

    def __init__(self, there: npt.NDArray[np.bool_], table: _Int):
        self.there, self.table = there, table

    @classmethod
    def of(cls, spans: Sequence[Span | None]) -> "Spans":
        rows = [(0, 0, 0, 0) if span is None else (*span.first, *span.last) for span in spans]
        return cls(np.array([span is not None for span in spans], np.bool_),
                   np.array(rows, np.int64).reshape(len(rows), 4).T)

    @classmethod
    def joined(cls, parts: Sequence["Spans"]) -> "Spans":
        if not parts:
            return cls.of([])
        return cls(np.concatenate([part.there for part in parts]), np.concatenate([part.table for part in parts], 1))

    def __len__(self) -> int:
        return len(self.there)

    @overload
    def __getitem__(self, which: int) -> Span | None: ...

    @overload
    def __getitem__(self, which: slice) -> "Spans": ...

    def __getitem__(self, which: int | slice) -> "Span | Spans | None":
        if isinstance(which, slice):
            return Spans(self.there[which], self.table[:, which])
        if not self.there[which]:
            return None
        window, node, last, last_node = self.table[:, which].tolist()
        return Span((window, node), (last, last_node))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def present(self) -> _Int:
        """The columns of ``table`` of the payloads that have a span."""
        return self.table if self.there.all() else self.table[:, self.there]

    def rise(self, after: tuple[int, int]) -> bool:
        """Whether each begins after the last item of the one before it, and the first one after the given item."""
        window, node, last, last_node = self.present
        before = np.concatenate([[after[0]], last[:-1]]), np.concatenate([[after[1]], last_node[:-1]])
        return bool(np.all((window > before[0]) | ((window == before[0]) & (node > before[1]))))


class Decoded(NamedTuple):
    """Contents of decoded payloads.

    ``parts``: the items of all legal payloads, in order, some ten thousand at a time. ``spans``: the first and the last
    window and node of every payload; None if it is illegal or empty. ``faults``: the illegal ones, in order.
    """

    parts: list[CompactRows]
    spans: Spans
    faults: list[Fault]


class DecodedItems(NamedTuple):
    """Contents of decoded payloads that state the modes of their nodes; members as in :class:`Decoded`."""

    parts: list[ItemRows]
    spans: Spans
    faults: list[Fault]
