"""The fields of a payload, and how they are read out of payloads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

__all__ = ["Field", "Filled", "Payloads", "extract", "joined", "one_array", "sizes_of", "words_of"]

Sizes = npt.NDArray[np.int64]
_ARROW = {("u", 8): pa.uint8(), ("u", 16): pa.uint16(), ("u", 32): pa.uint32(), ("u", 64): pa.uint64(),
          ("i", 8): pa.int8(), ("i", 16): pa.int16(), ("i", 32): pa.int32(), ("i", 64): pa.int64(),
          ("f", 32): pa.float32(), ("f", 64): pa.float64()}


@dataclass(frozen=True)
class Field:
    """A field of a payload.

    Parameters
    ----------
    name : a C identifier.
    kind : ``u``, ``i`` (two's complement), ``f``, ``char`` (UTF-8, padded with zeros) or ``bytes``.
    offset : of its lowest bit. ``bits``: its width; None for all remaining bytes.
    values : names of some of its values, for people; pairs of name and number.
    """

    name: str
    kind: str
    offset: int
    bits: int | None
    values: tuple[tuple[str, int], ...] = ()
    doc: str = ""

    @property
    def type(self) -> str:
        """The type as the file spells it."""
        if self.bits is None:
            return "string" if self.kind == "char" else "bytes"
        return f"{self.kind}[{self.bits // 8}]" if self.kind in ("char", "bytes") else f"{self.kind}{self.bits}"

    @property
    def storage(self) -> int:
        """Bits of the smallest standard number that can contain it: 8, 16, 32 or 64."""
        return next(size for size in (8, 16, 32, 64) if self.bits is not None and self.bits <= size)

    @property
    def numeric(self) -> bool:
        """It can be counted: a number without names."""
        return self.kind in "uif" and not self.values

    @property
    def arrow(self) -> pa.DataType:
        """Type of its column; named values are strings."""
        if self.kind == "bytes":
            return pa.binary()
        return pa.string() if self.kind == "char" or self.values else _ARROW[self.kind, self.storage]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array: older versions of pyarrow return the chunks even so, if there are none."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def sizes_of(payload: pa.Array) -> Sizes:
    """Bytes of each payload, 0 of one that is null."""
    sizes: Sizes = pc.fill_null(pc.binary_length(payload), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


@dataclass(frozen=True)
class Payloads:
    """Some of the payloads: rows ``own`` of all; ``cut``: they may have been longer."""

    all: pa.Array
    own: Sizes
    words: npt.NDArray[np.uint64]
    sizes: Sizes
    cut: npt.NDArray[np.bool_]

    def missing(self, field: Field) -> npt.NDArray[np.bool_]:
        """Where not all bits of a field arrived."""
        if field.bits is None:
            return (8 * self.sizes < field.offset) | self.cut
        missing: npt.NDArray[np.bool_] = 8 * self.sizes < field.offset + field.bits
        return missing


class Filled(NamedTuple):
    """The rows of a column that one kind's field fills."""

    own: Sizes
    field: Field
    payloads: Payloads


def joined(filled: list[Filled], rows: int) -> pa.Array:
    """One column from the fields of several kinds of events; rows of other kinds are null."""
    fields = [part.field for part in filled]
    if all(_is_number(field) for field in fields) and len({field.values for field in fields}) == 1:
        numbers = [_numbers(part.field, part.payloads) for part in filled]
        column = np.zeros(rows, numbers[0].dtype)
        missing = np.ones(rows, np.bool_)
        if all(number.dtype == column.dtype for number in numbers):
            for part, number in zip(filled, numbers, strict=True):
                column[part.own], missing[part.own] = number, part.payloads.missing(part.field)
            array = pa.array(column, mask=missing)
            return _named(fields[0], array.dictionary_encode()) if fields[0].values else array
    index = np.full(rows, -1, np.int64)
    values = pa.concat_arrays([_column(part.field, part.payloads) for part in filled])
    index[np.concatenate([part.own for part in filled])] = np.arange(len(values))
    array = values.take(pa.array(index, mask=index < 0))
    return array.dictionary_encode() if any(field.values for field in fields) else array


def extract(fields: Sequence[Field], payload: pa.Array, sizes: Sizes,
            cut: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Fields, extracted from payloads of one kind. Null where not all of a field's bits arrived; ``cut``: the payload
    may have been longer.
    """
    every = Payloads(payload, np.arange(len(sizes)), words_of(payload, sizes), sizes, cut)
    return {field.name: _column(field, every) for field in fields}


def words_of(payload: pa.Array, sizes: Sizes) -> npt.NDArray[np.uint64]:
    """Two little-endian words of 64 bits per payload, padded with zeros; bytes after the sixteenth are left out."""
    _, offsets, data = payload.buffers()
    words = np.zeros((len(sizes), 2), np.uint64)
    if len(sizes) == 0 or data is None:
        return words
    starts = np.frombuffer(offsets, np.int32)[payload.offset:payload.offset + len(sizes)].astype(np.int64)
    padded = np.zeros(data.size + _WORDS, np.uint8)
    padded[:data.size] = np.frombuffer(data, np.uint8)
    # A word from every byte on.
    every = np.ndarray(data.size + _WORDS - 7, "<u8", padded.data, strides=(1,))
    lengths = np.minimum(sizes, _WORDS)
    words[:, 0] = every[starts] & _ONES[np.minimum(lengths, 8)]
    words[:, 1] = every[starts + 8] & _ONES[np.maximum(lengths, 8) - 8]
    return words


#: Bytes in the words of a payload, and words of 0 to 8 bytes of ones.
_WORDS = 16
_ONES = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


def _is_number(field: Field) -> bool:
    return field.bits is not None and field.kind not in ("char", "bytes")


def _column(field: Field, payloads: Payloads) -> pa.Array:
    missing = payloads.missing(field)
    if not _is_number(field):
        return _text(field, payloads.all.take(pa.array(payloads.own)), missing)
    array = pa.array(_numbers(field, payloads), mask=missing)
    return _named(field, array.dictionary_encode()).cast(pa.string()) if field.values else array


def _numbers(field: Field, payloads: Payloads) -> npt.NDArray[Any]:
    words = payloads.words
    assert field.bits is not None
    bits = words[:, 0] >> np.uint64(field.offset) if field.offset < 64 else words[:, 1] >> np.uint64(field.offset - 64)
    if field.offset < 64 < field.offset + field.bits:
        bits = bits | words[:, 1] << np.uint64(64 - field.offset)
    spare = np.uint64(64 - field.bits)
    bits = bits << spare
    number: npt.NDArray[Any] = bits.view(np.int64) >> spare.astype(np.int64) if field.kind == "i" else bits >> spare
    if field.kind == "f":
        return number.astype(f"u{field.storage // 8}").view(f"f{field.storage // 8}")
    return number.astype(f"{field.kind}{field.storage // 8}")


def _named(field: Field, numbers: pa.DictionaryArray) -> pa.DictionaryArray:
    """The names of numbers; a number without one is its own name."""
    names = {value: name for name, value in field.values}
    texts = [names.get(value, str(value)) for value in numbers.dictionary.to_pylist()]
    if len(set(texts)) < len(texts):
        return pa.array(texts, pa.string()).take(numbers.indices).dictionary_encode()
    return pa.DictionaryArray.from_arrays(numbers.indices, pa.array(texts, pa.string()))


def _text(field: Field, payload: pa.Array, missing: npt.NDArray[np.bool_]) -> pa.Array:
    first = field.offset // 8
    last = None if field.bits is None else first + field.bits // 8
    values = [None if absent else value[first:last]
              for value, absent in zip(payload.to_pylist(), missing.tolist(), strict=True)]
    if field.kind == "char":
        return pa.array([None if v is None else v.rstrip(b"\0").decode(errors="replace") for v in values], pa.string())
    return pa.array(values, pa.binary())
