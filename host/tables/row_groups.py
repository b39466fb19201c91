"""Joins row groups that were encoded separately into one Parquet file.

A row group is encoded as a file of its own, so that several cores can encode at once. In the joined file the bytes of
its columns are the same. Only their positions, which the footer states, are different. The footer is in Thrift's
compact protocol, of which this module reads and writes what footers consist of.
"""

from dataclasses import dataclass, field
from typing import Any, BinaryIO

__all__ = ["RowGroupFile"]

_MAGIC = b"PAR1"
#: Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_NUMBERS = (_I16, _I32, _I64)

#: Fields of a footer that count or list row groups.
_ROWS, _ROW_GROUPS = 3, 4
#: Fields with positions in the file, from a row group downwards.
_GROUP_AT, _ORDINAL, _COLUMNS = 5, 7, 1
_COLUMN_AT, _META, _COLUMN_INDEXES = 2, 3, (4, 6)
_PAGES_AT = (9, 10, 11, 14)

#: A value and its type; a struct is a dictionary of them, by field.
_Value = tuple[int, Any]
_Struct = dict[int, _Value]


@dataclass
class _Reader:
    data: bytes | memoryview
    at: int = 0

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _signed(self) -> int:
        value = self._number()
        return value >> 1 ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def _value(self, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._signed()
        if kind == _BINARY:
            return self._bytes(self._number())
        if kind == _STRUCT:
            return self.struct()
        if kind == _LIST:
            head = self._bytes(1)[0]
            size, of = head >> 4, head & 15
            return of, [self._value(of) for _ in range(self._number() if size == 15 else size)]
        if kind in (_TRUE, _FALSE, _BYTE):      # in a list; in a struct the type says it all
            return self._bytes(1)
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"a footer with a value of type {kind}")

    def struct(self) -> _Struct:
        found: _Struct = {}
        number = 0
        while head := self._bytes(1)[0]:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = kind, None if kind in (_TRUE, _FALSE) else self._value(kind)
        return found


def _number(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _signed(value: int) -> bytes:
    return _number(value << 1 if value >= 0 else ~value << 1 | 1)


def _value(kind: int, value: Any) -> bytes:
    if kind in _NUMBERS:
        return _signed(value)
    if kind == _BINARY:
        return _number(len(value)) + bytes(value)
    if kind == _STRUCT:
        return _struct(value)
    if kind == _LIST:
        of, values = value
        size = bytes([len(values) << 4 | of]) if len(values) < 15 else bytes([0xf0 | of]) + _number(len(values))
        return size + b"".join(_value(of, one) for one in values)
    return bytes(value or b"")


def _struct(fields: _Struct) -> bytes:
    data, before = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        data += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _signed(number)
        data += _value(kind, value)
        before = number
    return bytes(data) + b"\0"


def _moved(fields: _Struct, numbers: tuple[int, ...], by: int) -> None:
    """Adds to positions; 0 is none."""
    for number in numbers:
        if number in fields and fields[number][1]:
            kind, value = fields[number]
            fields[number] = kind, value + by


@dataclass
class RowGroupFile:
    """A Parquet file that is made of others.

    Parameters
    ----------
    file : open for writing, and empty.

    Members
    -------
    groups : row groups so far.
    """

    file: BinaryIO
    groups: int = 0
    _footer: _Struct = field(default_factory=dict)
    _at: int = len(_MAGIC)

    def add(self, encoded: memoryview) -> None:
        """Appends the row groups of a whole file, which has the schema, the metadata and the writer of the first.

        Raises
        ------
        ValueError
            if its footer has parts that this module does not know.
        """
        size = int.from_bytes(encoded[-8:-4], "little")
        body = encoded[len(_MAGIC):len(encoded) - 8 - size]
        footer = _Reader(encoded[len(encoded) - 8 - size:-8]).struct()
        if not self._footer:
            self.file.write(_MAGIC)
            self._footer = {**footer, _ROWS: (_I64, 0), _ROW_GROUPS: (_LIST, (_STRUCT, []))}
        for group in footer[_ROW_GROUPS][1][1]:
            self._place(group, self._at - len(_MAGIC))
        self._footer[_ROWS] = _I64, self._footer[_ROWS][1] + footer[_ROWS][1]
        self.file.write(body)
        self._at += len(body)

    def _place(self, group: _Struct, by: int) -> None:
        _moved(group, (_GROUP_AT,), by)
        group[_ORDINAL] = _I16, self.groups
        for column in group[_COLUMNS][1][1]:
            _moved(column, (_COLUMN_AT, *_COLUMN_INDEXES), by)
            _moved(column[_META][1], _PAGES_AT, by)
        self._footer[_ROW_GROUPS][1][1].append(group)
        self.groups += 1

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._at

    def close(self) -> None:
        """Writes the footer and closes the file."""
        footer = _struct(self._footer)
        self.file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        self.file.close()
