"""The fields of a payload, and how they are read out of payloads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

__all__ = ["Field", "extract", "one_array", "sizes_of"]

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


def extract(fields: Sequence[Field], payload: pa.Array, sizes: Sizes,
            cut: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Fields, extracted from payloads of one kind. Null where not all of a field's bits arrived; ``cut``: the payload
    may have been longer.
    """
    if not fields:
        return {}
    words = _words(payload, sizes)
    return {field.name: _column(field, payload, words, sizes, cut) for field in fields}


def _words(payload: pa.Array, sizes: Sizes) -> npt.NDArray[np.uint64]:
    """Two little-endian words of 64 bits per payload, padded with zeros."""
    data = np.zeros((len(sizes), 16), np.uint8)
    here = np.arange(16) < sizes[:, None]
    data[here] = np.frombuffer(b"".join(payload.to_pylist()), np.uint8)
    return data.view("<u8")


def _column(field: Field, payload: pa.Array, words: npt.NDArray[np.uint64], sizes: Sizes,
            cut: npt.NDArray[np.bool_]) -> pa.Array:
    if field.bits is None:
        missing = (8 * sizes < field.offset) | cut
        return _text(field, payload, missing)
    missing = 8 * sizes < field.offset + field.bits
    if field.kind in ("char", "bytes"):
        return _text(field, payload, missing)
    bits = words[:, 0] >> np.uint64(field.offset) if field.offset < 64 else words[:, 1] >> np.uint64(field.offset - 64)
    if field.offset < 64 < field.offset + field.bits:
        bits = bits | words[:, 1] << np.uint64(64 - field.offset)
    spare = np.uint64(64 - field.bits)
    bits = bits << spare
    number: npt.NDArray[Any] = bits.view(np.int64) >> spare.astype(np.int64) if field.kind == "i" else bits >> spare
    if field.kind == "f":
        number = number.astype(f"u{field.storage // 8}").view(f"f{field.storage // 8}")
    else:
        number = number.astype(f"{field.kind}{field.storage // 8}")
    return _named(field, number, missing) if field.values else pa.array(number, mask=missing)


def _named(field: Field, number: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    names = {value: name for name, value in field.values}
    found, index = np.unique(number, return_inverse=True)
    texts = pa.array([names.get(int(value), str(int(value))) for value in found], pa.string())
    return texts.take(pa.array(index.reshape(-1), mask=missing))


def _text(field: Field, payload: pa.Array, missing: npt.NDArray[np.bool_]) -> pa.Array:
    first = field.offset // 8
    last = None if field.bits is None else first + field.bits // 8
    values = [None if absent else value[first:last]
              for value, absent in zip(payload.to_pylist(), missing.tolist(), strict=True)]
    if field.kind == "char":
        return pa.array([None if v is None else v.rstrip(b"\0").decode(errors="replace") for v in values], pa.string())
    return pa.array(values, pa.binary())
