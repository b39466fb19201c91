"""The decoder of COMPACT payloads in C, ``compact.c``."""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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
from hypermon.host.blocks.compact_rows import (
    CompactRows,
    Decoded,
    DecodedItems,
    Fault,
    ItemRows,
    Payloads,
    Spans,
)
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.blocks.native import cores, native

__all__ = ["NATIVE", "decode_native", "decode_native_items"]

# Also defined in compact.c.
assert (GAP_GROUPS, GROUP_BITS, COMPACT_HEAD.bytes, WORD_NIBBLES, EVENT_NIBBLES_MAX) == (7, 4, 16, 8, 31)
assert [(code.name, code.value) for code in Code] == [("WINDOW", 0), ("ABORTED", 1), ("LATE", 2)]

#: Bytes of payload processed at once: their rows should stay in a core's cache. Items of several nibbles are fewer.
_CHUNK, _ITEM_CHUNK = 1 << 18, 1 << 20

_REASONS = (
    "", "an item that is cut short", "a number that ends in a group of 0",
    f"a number of more than {GAP_GROUPS} groups", "unknown code {code}", "an empty strobe vector",
    "strobes of nodes that the board does not have", "a node that the board does not have",
    "a first item that is not in the first window", "items of one window that are not in the order of their nodes",
    "something after the last item that is not an item", "a head that is cut short", "a head that makes no sense",
    "a strobe vector with nodes that are not in nibble mode", "an event of no bytes",
    "an abort without an item of several nibbles before it", "an abort of more nibbles than there are, or of none",
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
    """Rows of one call: space for one row per group of the given number of bytes.

    It is reused by later calls: the memory of a new one would cost more than decoding into it.
    """

    def __init__(self, size: int, columns: int):
        self.size = size
        self._columns = [np.empty(2 * size + 1, kind) for kind in _COLUMNS[:columns]]
        self.rows = np.zeros(len(_COLUMNS), np.uint64)
        self.rows[:columns] = [column.ctypes.data for column in self._columns]

    def take(self, column: int, count: int) -> npt.NDArray[Any]:
        """A copy of the given number of entries of a column."""
        return self._columns[column][:count].copy()


#: Those not in use, by number of columns.
_FREE: dict[int, list[_Scratch]] = {}


def _scratch(size: int, columns: int) -> _Scratch:
    free = _FREE.setdefault(columns, [])
    while free:
        scratch = free.pop()
        if scratch.size >= size:
            return scratch
    return _Scratch(size, columns)


def _chunks(payloads: Payloads, size: int) -> list[Payloads]:
    """The payloads in chunks of at most ``size`` bytes, or of one payload that is longer."""
    begin, made = 0, []
    while begin < len(payloads):
        before = int(payloads.ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(payloads.ends, before + size, "right")), begin + 1)
        made.append(payloads.slice(begin, end))
        begin = end
    return made


def _call(function: Any, payloads: Payloads, nodes: int, items: bool, port_bits: int,
          scratch: _Scratch) -> tuple[int, npt.NDArray[Any]]:
    found = np.empty(len(payloads), _FOUND)
    rows = function(payloads.data.ctypes.data, payloads.ends.ctypes.data, payloads.times.ctypes.data, len(payloads),
                    nodes, items, port_bits // GROUP_BITS, scratch.rows.ctypes.data, found.ctypes.data)
    return rows, found


def _spans(found: npt.NDArray[Any], times: npt.NDArray[np.int64]) -> Spans:
    return Spans(found["rows"] > 0, np.stack([times, found["first_node"], found["last_window"], found["last_node"]]))


def _faults(found: npt.NDArray[Any]) -> Iterator[Fault]:
    for k in np.flatnonzero(found["reason"]).tolist():
        one = found[k]
        yield Fault(k, int(one["position"]), _REASONS[one["reason"]].format(code=one["code"]))


_Part = TypeVar("_Part")


def _decoded(payloads: Payloads, columns: int, size: int,
             decode: Callable[[Payloads, _Scratch], tuple[_Part | None, npt.NDArray[Any]]]
             ) -> tuple[list[_Part], Spans, list[Fault]]:
    """Decodes chunks of ``size`` bytes, several at once if there are cores and enough bytes: C releases the GIL."""
    chunks = _chunks(payloads, min(size, -(-len(payloads.data) // cores())))
    most = max((len(chunk.data) for chunk in chunks), default=0)
    at_once = min(cores(), len(chunks))

    def one(chunk: Payloads) -> tuple[_Part | None, npt.NDArray[Any]]:
        scratch = _scratch(max(most, size), columns)
        try:
            return decode(chunk, scratch)
        finally:
            _FREE[columns].append(scratch)

    if at_once > 1:
        with ThreadPoolExecutor(at_once) as pool:
            done = list(pool.map(one, chunks))
    else:
        done = list(map(one, chunks))
    found = done[0][1] if len(done) == 1 else np.concatenate([np.empty(0, _FOUND), *(found for _, found in done)])
    return [part for part, _ in done if part is not None], _spans(found, payloads.times), list(_faults(found))


def decode_native(function: Any, payloads: Payloads, nodes: int, port_bits: int = PORT_BITS) -> Decoded:
    """:func:`hypermon.host.blocks.compact.decode`, in C."""
    def decode(chunk: Payloads, scratch: _Scratch) -> tuple[CompactRows | None, npt.NDArray[Any]]:
        rows, found = _call(function, chunk, nodes, False, port_bits, scratch)
        return CompactRows(*(scratch.take(column, rows) for column in range(3))) if rows else None, found

    return Decoded(*_decoded(payloads, 3, _CHUNK, decode))


def decode_native_items(function: Any, payloads: Payloads, nodes: int, modes: ItemModes,
                        port_bits: int = PORT_BITS) -> DecodedItems:
    """:func:`hypermon.host.blocks.compact.decode_items`, in C; payloads with other modes are not legal."""
    def decode(chunk: Payloads, scratch: _Scratch) -> tuple[ItemRows | None, npt.NDArray[Any]]:
        rows, found = _call(function, chunk, nodes, True, port_bits, scratch)
        if not rows:
            return None, found
        windows, node, value, state, ends = (scratch.take(column, rows) for column in (0, 1, 3, 4, 5))
        return ItemRows(windows, node, value, state, ends, scratch.take(6, int(ends[-1])), modes), found

    return DecodedItems(*_decoded(payloads, len(_COLUMNS), _ITEM_CHUNK, decode))
