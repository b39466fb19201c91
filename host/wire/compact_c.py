"""The decoder of COMPACT payloads in C, ``compact.c``."""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import (
    COMPACT_HEAD,
    EVENT_NIBBLES_MAX,
    GAP_GROUPS,
    GROUP_BITS,
    PORT_BITS,
    WORD_NIBBLES,
    Code,
)
from hypermon.host.wire.compact_rows import CompactRows, Decoded, DecodedItems, Fault, ItemRows, Span
from hypermon.host.wire.item_modes import ItemModes
from hypermon.host.wire.native import native

__all__ = ["NATIVE", "decode_native", "decode_native_items"]

# Also defined in compact.c.
assert (GAP_GROUPS, GROUP_BITS, COMPACT_HEAD.bytes, WORD_NIBBLES, EVENT_NIBBLES_MAX) == (7, 4, 16, 8, 31)
assert [(code.name, code.value) for code in Code] == [("WINDOW", 0), ("ABORTED", 1), ("LATE", 2)]

#: Bytes of payload processed at once, so that their rows stay in a core's cache.
_CHUNK = 1 << 17

_REASONS = (
    "", "an item that is cut short", "a number that ends in a group of 0",
    f"a number of more than {GAP_GROUPS} groups", "unknown code {code}", "an empty strobe vector",
    "strobes of nodes that the board does not have", "a node that the board does not have",
    "a first item that is not in the first window", "items of one window that are not in the order of their nodes",
    "something behind the last item that is none", "a head that is cut short", "a head that makes no sense",
    "a strobe vector with nodes that are not in nibble mode", "an event of no bytes",
    "an abort behind no item of several nibbles", "an abort of more nibbles than there are, or of none",
    "filler that is not zero", "a late item in front", "a late item of one nibble", "a window before time 0")

#: ``struct found`` of compact.c.
_FOUND = np.dtype([("rows", "i8"), ("last_window", "i8"), ("position", "i8"), ("reason", "i4"),
                   ("first_node", "i4"), ("last_node", "i4"), ("code", "i4")])
#: Columns of ``struct rows`` of compact.c; for single nibbles only the first three.
_COLUMNS = (np.int64, np.uint8, np.uint8, np.uint32, np.uint8, np.int32, np.uint8)


#: The C function; None if it is not available.
NATIVE = native("hypermon_compact_2", *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_int32] * 3,
                *[ctypes.c_void_p] * 2)


class _Scratch:
    """Rows of one call: space for one row per group, reused."""

    def __init__(self, size: int, columns: int):
        self._columns = [np.empty(2 * size + 1, kind) for kind in _COLUMNS[:columns]]
        self.rows = np.zeros(len(_COLUMNS), np.uint64)
        self.rows[:columns] = [column.ctypes.data for column in self._columns]

    def take(self, column: int, count: int) -> npt.NDArray[Any]:
        """A copy of the given number of entries of a column."""
        return self._columns[column][:count].copy()


def _chunks(payloads: Sequence[bytes | memoryview]) -> Iterator[tuple[int, int]]:
    """Ranges of payloads to process together."""
    begin = size = 0
    for k, payload in enumerate(payloads):
        if size and size + len(payload) > _CHUNK:
            yield begin, k
            begin, size = k, 0
        size += len(payload)
    if begin < len(payloads):
        yield begin, len(payloads)


def _call(function: Any, payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int, items: bool,
          port_bits: int, scratch: _Scratch) -> tuple[int, npt.NDArray[Any]]:
    data = b"".join(payloads)
    ends = np.fromiter(accumulate(map(len, payloads)), np.int64, len(payloads))
    begins = np.array(times, np.int64)
    found = np.empty(len(payloads), _FOUND)
    rows = function(data, ends.ctypes.data, begins.ctypes.data, len(payloads), nodes, items,
                    port_bits // GROUP_BITS, scratch.rows.ctypes.data, found.ctypes.data)
    return rows, found


def _say(found: npt.NDArray[Any], times: Sequence[int], first: int) -> tuple[list[Span | None], list[Fault]]:
    """Reports spans and faults; ``first`` is the number of the first of these payloads."""
    names = ("rows", "first_node", "last_window", "last_node")
    columns = (found[name].tolist() for name in names)
    spans = [Span((time, node), (window, last)) if rows else None
             for time, rows, node, window, last in zip(times, *columns, strict=True)]
    faults = []
    for k in np.flatnonzero(found["reason"]).tolist():
        one = found[k]
        reason = _REASONS[one["reason"]].format(code=one["code"])
        faults.append(Fault(first + k, int(one["position"]), reason))
    return spans, faults


def _scratch(payloads: Sequence[bytes | memoryview], columns: int) -> _Scratch:
    sizes = [sum(len(payloads[k]) for k in range(*chunk)) for chunk in _chunks(payloads)]
    return _Scratch(max(sizes, default=0), columns)


def decode_native(function: Any, payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                  port_bits: int = PORT_BITS) -> Decoded:
    """:func:`hypermon.host.wire.compact.decode`, in C."""
    decoded = Decoded([], [], [])
    scratch = _scratch(payloads, 3)
    for low, high in _chunks(payloads):
        rows, found = _call(function, payloads[low:high], times[low:high], nodes, False, port_bits, scratch)
        if rows:
            decoded.parts.append(CompactRows(*(scratch.take(column, rows) for column in range(3))))
        spans, faults = _say(found, times[low:high], low)
        decoded.spans.extend(spans)
        decoded.faults.extend(faults)
    return decoded


def decode_native_items(function: Any, payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                        modes: ItemModes, port_bits: int = PORT_BITS) -> DecodedItems:
    """:func:`hypermon.host.wire.compact.decode_items`, in C; payloads with other modes are not legal."""
    decoded = DecodedItems([], [], [])
    scratch = _scratch(payloads, len(_COLUMNS))
    for low, high in _chunks(payloads):
        rows, found = _call(function, payloads[low:high], times[low:high], nodes, True, port_bits, scratch)
        if rows:
            windows, node, value, state, ends = (scratch.take(column, rows) for column in (0, 1, 3, 4, 5))
            decoded.parts.append(ItemRows(windows, node, value, state, ends, scratch.take(6, int(ends[-1])), modes))
        spans, faults = _say(found, times[low:high], low)
        decoded.spans.extend(spans)
        decoded.faults.extend(faults)
    return decoded
