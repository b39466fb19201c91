"""Transaction-layer packets as records, exchanged between the link and the adapter to an FPGA's PCIe block.

Data are in the order of the bytes in memory: the byte with the lowest address is in the lowest bits. Adapters swap
bytes and place dwords as their block needs them. Source: PCI Express Base Specification, revision 3.0, section 2.2.
"""

import enum

from amaranth.hdl import Array, Const, Mux, Value
from amaranth.lib import data

__all__ = [
    "CompletionStatus", "Kind", "byte_count", "completion_layout", "first_byte", "mps_beats", "request_layout",
    "write_layout",
]

#: Bits of the offset of a dword in BAR0, which has 8 KiB.
OFFSET_BITS = 11
#: Beats of 16 bytes in the longest write.
MPS_BEATS_MAX = 32
#: Beats in a write of 128 bytes, the smallest maximum payload size.
MPS_BEATS_MIN = 8


class Kind(enum.IntEnum):
    """Kinds of requests that the link distinguishes."""

    #: Memory read: a completion is due.
    READ = 0
    #: Memory write: posted.
    WRITE = 1
    #: Any other posted request: a message.
    POSTED = 2
    #: Any other non-posted request: a completion is due.
    NONPOSTED = 3
    #: Locked memory read: its completion is one for a locked read, and never has data.
    LOCKED = 4


class CompletionStatus(enum.IntEnum):
    """Status of a completion (table 2-32)."""

    SUCCESS = 0
    UNSUPPORTED = 1
    ABORT = 4


def request_layout() -> data.StructLayout:
    """A beat of a request. The header is the same in all its beats, of which a request without data has one.

    ``kind``, see :class:`Kind`; ``offset`` of the first dword in BAR0, in dwords; ``length`` in dwords, 1..1024;
    ``first_be``, ``last_be``: byte enables of the first and the last dword (0 if there is only one); ``requester``,
    ``tag``, ``tc``, ``attr``: for the completion. ``data``: the lowest dword first; ``dwords``: how many of them
    this beat has; ``bad``: poisoned or discontinued, in any beat; ``last`` beat.
    """
    return data.StructLayout({
        "kind": 3, "offset": OFFSET_BITS, "length": 11, "first_be": 4, "last_be": 4, "requester": 16, "tag": 10,
        "tc": 3, "attr": 3, "data": 128, "dwords": 3, "bad": 1, "last": 1,
    })


def completion_layout() -> data.StructLayout:
    """A completion: always one beat, because no completion has more than one dword.

    ``status``, see :class:`CompletionStatus`; ``dwords`` of data, 0 or 1; ``bytes``: the byte count, 1..4096;
    ``lower``: the lower address; ``locked``: it answers a locked read; ``requester``, ``tag``, ``tc``, ``attr`` of the
    request; ``data``.
    """
    return data.StructLayout({
        "status": 3, "dwords": 1, "bytes": 13, "lower": 7, "locked": 1, "requester": 16, "tag": 10, "tc": 3, "attr": 3,
        "data": 32,
    })


def write_layout() -> data.StructLayout:
    """A beat of a memory write. ``address``, in units of 16 bytes, and ``beats``, 1..32, are the same in all beats
    of a write; ``data``; ``last`` beat."""
    return data.StructLayout({"address": 60, "beats": 6, "data": 128, "last": 1})


def _first(be: int) -> int:
    return next((k for k in range(4) if be >> k & 1), 0)


def _behind(be: int) -> int:
    """Bytes after the last one enabled; with none enabled the first byte counts (section 2.2.5)."""
    return next((3 - k for k in (3, 2, 1) if be >> k & 1), 3)


def _table(function, be):
    """``function`` of four byte enables, a number or a value."""
    if isinstance(be, int):
        return function(be)
    return Array(Const(function(k), 2) for k in range(16))[be]


def first_byte(be: int | Value):
    """Index of the first byte enabled, 0 if none is: bits 1..0 of the lower address."""
    return _table(_first, be)


def byte_count(length: int | Value, first_be: int | Value, last_be: int | Value):
    """Bytes from the first to the last one enabled, as a completion states them (table 2-37).

    ``length`` in dwords. Numbers give a number, values a value.
    """
    one = length == 1
    if isinstance(length, int):
        return 4 * length - _first(first_be) - _behind(first_be if one else last_be)
    return ((length << 2) - first_byte(first_be) - _table(_behind, Mux(one, first_be, last_be)))[:13]


def mps_beats(code: int | Value):
    """Beats in the longest write for a maximum payload size of 128 << ``code`` bytes; at most MPS_BEATS_MAX."""
    if isinstance(code, int):
        return min(MPS_BEATS_MIN << code, MPS_BEATS_MAX)
    return Mux(code == 0, MPS_BEATS_MIN, Mux(code == 1, 2 * MPS_BEATS_MIN, MPS_BEATS_MAX))
