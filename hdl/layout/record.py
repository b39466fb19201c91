"""Records: rows of little-endian fields, from which every format and its documentation is made."""

import builtins
import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "Field", "Record",
]


@dataclass(frozen=True)
class Field:
    """One little-endian field of a :class:`Record`: name, width in bits, meaning."""

    name: str
    bits: int
    doc: str


@dataclass(frozen=True)
class Record:
    """A row of little-endian fields, packed in order, least significant bit first.

    Every field is a whole number of bytes (8, 16, 32 or 64 bits). A record is therefore at the
    same time a :mod:`struct` format, a NumPy dtype and an Amaranth structure.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for f in self.fields:
            if f.bits not in (8, 16, 32, 64):
                raise ValueError(f"{self.name}.{f.name}: {f.bits} bits; a field has 8, 16, 32 or 64")

    @property
    def bits(self) -> int:
        return sum(f.bits for f in self.fields)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def format(self) -> str:
        """The record as a :mod:`struct` format string."""
        return "<" + "".join({8: "B", 16: "H", 32: "I", 64: "Q"}[f.bits] for f in self.fields)

    def offsets(self) -> Iterator[tuple[int, Field]]:
        """Pairs of byte offset and field."""
        at = 0
        for f in self.fields:
            yield at, f
            at += f.bits // 8

    def numpy(self) -> list[tuple[str, str]]:
        """The record as a NumPy dtype description."""
        return [(f.name, f"<u{f.bits // 8}") for f in self.fields]

    def unpack(self, data: builtins.bytes | bytearray | memoryview, offset: int = 0) -> dict[str, int]:
        """Returns the fields by name of the record at ``offset``; raises :exc:`struct.error` if the data are cut
        short.
        """
        values = struct.unpack_from(self.format, data, offset)
        return {f.name: v for f, v in zip(self.fields, values, strict=True)}

    def pack(self, **values: int) -> builtins.bytes:
        """The record's bytes; fields that are not named are 0."""
        unknown = set(values) - {f.name for f in self.fields}
        if unknown:
            raise TypeError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        return struct.pack(self.format, *(values.get(f.name, 0) for f in self.fields))
