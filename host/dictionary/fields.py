"""Decodes payloads into fields with an event dictionary: additional columns for a table of events."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.dictionary.dictionary import Dictionary, EventKind, Field

__all__ = ["Fit", "decode_fields", "kind_rows"]

_Sizes = npt.NDArray[np.int64]
#: Rows that are decoded at a time, 16 bytes each and more.
_PIECE = 1 << 18


@dataclass
class Fit:
    """How well events and dictionary match: ``named`` events have a kind, ``unknown`` ones an id that is not in the
    dictionary.

    Of the named whole events, ``short`` counts those whose payload is too short for their fields, ``long`` those whose
    payload is longer than all fields. Aborted events are in neither.
    """

    named: int = 0
    unknown: int = 0
    short: int = 0
    long: int = 0

    def __iadd__(self, other: "Fit") -> "Fit":
        self.named += other.named
        self.unknown += other.unknown
        self.short += other.short
        self.long += other.long
        return self

    def as_text(self) -> str:
        """One line, for people."""
        parts = [f"{self.named:,} events named"]
        parts += [f"{self.unknown:,} of unknown ids"] if self.unknown else []
        parts += [f"{self.short:,} payloads too short for their fields"] if self.short else []
        parts += [f"{self.long:,} longer than their fields"] if self.long else []
        return ", ".join(parts)


def decode_fields(events: pa.Table, dictionary: Dictionary) -> tuple[pa.Table, Fit]:
    """Adds the columns of a dictionary.

    Parameters
    ----------
    events : has ``event`` (uint8, null if unknown, or if the row is not an event) and ``payload`` (binary, likewise);
        ``aborted`` (bool) if known. Existing columns with the names of added ones are replaced.

    Returns
    -------
    the table with ``name`` (null for an id that is not in the dictionary) and one column per field
    (:attr:`.Dictionary.columns`). A field is null in events that have no field of that name, and where not all of its
    bits arrived. Names and named values are dictionary-encoded strings; a value without a name is its number in
    decimal.
    """
    added = ["name", *dict.fromkeys(dictionary.columns.values())]
    base = events.drop_columns([name for name in added if name in events.column_names])
    fit = Fit()
    pieces = []
    for start in range(0, max(base.num_rows, 1), _PIECE):
        piece, found = _decode(base.slice(start, _PIECE), dictionary)
        pieces.append(piece)
        fit += found
    return pa.concat_tables(pieces).unify_dictionaries(), fit


def kind_rows(kind: EventKind, events: pa.Table) -> pa.Table:
    """See :meth:`.EventKind.rows`."""
    own = events.filter(pc.and_(pc.equal(events["event"], kind.id), pc.invert(events["aborted"])))
    payload = _one(own["payload"])
    sizes = _sizes(payload)
    wrong = sizes < kind.size if kind.open_ended else sizes != kind.size
    if np.any(wrong):
        raise ValueError(f"{kind.name}: a payload of {sizes[wrong][0]} bytes, not {kind.size}")
    columns = _extract(kind, payload, sizes, np.zeros(len(sizes), np.bool_))
    return pa.table({"time_ps": own["time_ps"], "node": own["node"], **columns})


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array: older versions of pyarrow return the chunks even so, if there are none."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _sizes(payload: pa.Array) -> _Sizes:
    sizes: _Sizes = pc.fill_null(pc.binary_length(payload), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _decode(events: pa.Table, dictionary: Dictionary) -> tuple[pa.Table, Fit]:
    rows = events.num_rows
    event = pc.fill_null(_one(events["event"]).cast(pa.int16()), -1).to_numpy(zero_copy_only=False)
    aborted = (pc.fill_null(_one(events["aborted"]), False).to_numpy(zero_copy_only=False)
               if "aborted" in events.column_names else np.zeros(rows, np.bool_))
    payload = _one(events["payload"])
    sizes = _sizes(payload)

    fit = Fit()
    names = np.full(rows, -1, np.int16)
    parts: dict[str, list[tuple[npt.NDArray[np.int64], pa.Array]]] = {}
    for number, kind in enumerate(dictionary.events):
        own = np.flatnonzero(event == kind.id)
        names[own] = number
        whole = ~aborted[own]
        fit.named += len(own)
        fit.short += int(np.count_nonzero(whole & (sizes[own] < kind.size)))
        fit.long += int(np.count_nonzero(whole & (sizes[own] > kind.size))) if not kind.open_ended else 0
        for name, array in _extract(kind, payload.take(pa.array(own)), sizes[own], ~whole).items():
            parts.setdefault(dictionary.columns[kind.name, name], []).append((own, array))
    fit.unknown = int(np.count_nonzero((event >= 0) & (names < 0)))

    encoded = pa.DictionaryArray.from_arrays(pa.array(names, mask=names < 0),
                                             pa.array([kind.name for kind in dictionary.events], pa.string()))
    table = events.append_column("name", encoded)
    coded = {dictionary.columns[kind.name, field.name] for kind in dictionary.events
             for field in kind.fields if field.values}
    for column, filled in parts.items():
        index = np.full(rows, -1, np.int64)
        values = pa.concat_arrays([array for _, array in filled])
        index[np.concatenate([own for own, _ in filled])] = np.arange(len(values))
        array = values.take(pa.array(index, mask=index < 0))
        table = table.append_column(column, _encode(array) if column in coded else array)
    return table, fit


def _encode(array: pa.Array) -> pa.Array:
    return array.dictionary_encode()


def _extract(kind: EventKind, payload: pa.Array, sizes: _Sizes, cut: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    """A kind's fields, extracted from its payloads. Null where not all of a field's bits arrived; ``cut``: the payload
    may have been longer.
    """
    if not kind.fields:
        return {}
    words = _words(payload, sizes)
    return {field.name: _column(field, payload, words, sizes, cut) for field in kind.fields}


def _words(payload: pa.Array, sizes: _Sizes) -> npt.NDArray[np.uint64]:
    """Two little-endian words of 64 bits per payload, padded with zeros."""
    data = np.zeros((len(sizes), 16), np.uint8)
    here = np.arange(16) < sizes[:, None]
    data[here] = np.frombuffer(b"".join(payload.to_pylist()), np.uint8)
    return data.view("<u8")


def _column(field: Field, payload: pa.Array, words: npt.NDArray[np.uint64], sizes: _Sizes,
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
