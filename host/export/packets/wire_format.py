"""Messages in the wire format of Protocol Buffers, many at once from columns.

A :class:`Part` is a part of each of many messages. The parts of a message are put side by side and packed together, so
that no message is made alone. Source: the encoding in Google's documentation, protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

__all__ = ["FIXED_64", "LENGTH", "VARINT", "Part", "beside", "constant", "doubles", "hexadecimal", "in_order",
           "messages", "tag", "texts", "varint", "varints"]

_Bytes = npt.NDArray[np.uint8]
_There = npt.NDArray[np.bool_]
#: Wire types.
VARINT, FIXED_64, LENGTH = 0, 1, 2
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True)
class Part:
    """Bytes of each message, a row of ``data`` for each; ``there``: those that are used."""

    data: _Bytes
    there: _There

    def __len__(self) -> int:
        return len(self.data)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of each row that are used."""
        found: npt.NDArray[np.int64] = np.count_nonzero(self.there, axis=1)
        return found

    def where(self, rows: _There) -> "Part":
        """The part, empty in all but the given rows."""
        return Part(self.data, self.there & rows[:, np.newaxis])

    def packed(self) -> bytes:
        """All rows, one after the other."""
        return self.data[self.there].tobytes()


def varint(value: int) -> bytes:
    """An integer that is not negative."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*data, value])


def tag(number: int, kind: int) -> bytes:
    """What precedes a field."""
    return varint(number << 3 | kind)


def constant(data: bytes, rows: int) -> Part:
    """The same bytes in each row."""
    own = np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data)))
    return Part(own, np.ones(own.shape, bool))


def varints(values: npt.NDArray[Any]) -> Part:
    """Integers of 64 bits at most, a negative one in two's complement."""
    left = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    digits = max(-(-int(left.max(initial=0)).bit_length() // 7), 1)
    data, there = np.empty((len(left), digits), np.uint8), np.ones((len(left), digits), bool)
    for digit in range(digits):
        if digit:
            there[:, digit] = left != 0
            data[:, digit - 1] |= (there[:, digit] << 7).astype(np.uint8)
        data[:, digit] = left & np.uint64(0x7f)
        left = left >> np.uint64(7)
    return Part(data, there)


def doubles(values: npt.NDArray[Any]) -> Part:
    """Real numbers."""
    with np.errstate(invalid="ignore"):     # a signalling NaN of 32 bits
        data = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(len(values), 8)
    return Part(data, np.ones(data.shape, bool))


def texts(values: pa.Array) -> Part:
    """Bytes of each row; of a null none."""
    values = values.cast(pa.binary())
    sizes = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.frombuffer(values.buffers()[1], np.int32)[values.offset:values.offset + len(values)].astype(np.int64)
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    places = np.arange(int(sizes.max(initial=0)))
    there = places < sizes[:, np.newaxis]
    data = np.zeros(there.shape, np.uint8)
    data[there] = content[(begins[:, np.newaxis] + places)[there]]
    return Part(data, there)


def hexadecimal(part: Part) -> Part:
    """Two digits for each byte."""
    digits = np.empty((len(part), 2 * part.data.shape[1]), np.uint8)
    digits[:, ::2], digits[:, 1::2] = _HEX[part.data >> 4], _HEX[part.data & 15]
    return Part(digits, np.repeat(part.there, 2, axis=1))


def beside(parts: Sequence[Part]) -> Part:
    """Parts of the same messages, in their order."""
    return Part(np.concatenate([part.data for part in parts], axis=1),
                np.concatenate([part.there for part in parts], axis=1))


def messages(number: int, parts: Sequence[Part]) -> Part:
    """A field with a message, whose fields are the parts: its tag and its length before them."""
    inside = beside(parts)
    return beside([constant(tag(number, LENGTH), len(inside)), varints(inside.sizes), inside])


def in_order(rows: int, parts: Sequence[tuple[npt.NDArray[np.int64], Part]]) -> Part:
    """Parts of different messages, each with the numbers of its rows; other rows are empty."""
    width = max((part.data.shape[1] for _, part in parts), default=0)
    data, there = np.zeros((rows, width), np.uint8), np.zeros((rows, width), bool)
    for own, part in parts:
        data[own, :part.data.shape[1]] = part.data
        there[own, :part.data.shape[1]] = part.there
    return Part(data, there)
