"""Decodes payloads into fields with an event dictionary: additional columns for a table of events."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.payload import Filled, Payloads, joined, one_array, sizes_of, words_of

__all__ = ["Fit", "decode_fields"]

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


def _decode(events: pa.Table, dictionary: Dictionary) -> tuple[pa.Table, Fit]:
    rows = events.num_rows
    event = pc.fill_null(one_array(events["event"]).cast(pa.int16()), -1).to_numpy(zero_copy_only=False)
    aborted = (pc.fill_null(one_array(events["aborted"]), False).to_numpy(zero_copy_only=False)
               if "aborted" in events.column_names else np.zeros(rows, np.bool_))
    payload = one_array(events["payload"])
    sizes = sizes_of(payload)

    words = words_of(payload, sizes)
    fit = Fit()
    names = np.full(rows, -1, np.int16)
    parts: dict[str, list[Filled]] = {}
    # Rows by id, in their order: a sort of small numbers is faster than a look at all rows for each kind.
    order = np.argsort(event, kind="stable")
    ordered = event[order]
    for number, kind in enumerate(dictionary.events):
        own = order[np.searchsorted(ordered, kind.id):np.searchsorted(ordered, kind.id, "right")]
        names[own] = number
        whole, size = ~aborted[own], sizes[own]
        fit.named += len(own)
        fit.short += int(np.count_nonzero(whole & (size < kind.size)))
        fit.long += int(np.count_nonzero(whole & (size > kind.size))) if not kind.open_ended else 0
        some = Payloads(payload, own, words[own], size, ~whole)
        for field in kind.fields:
            parts.setdefault(dictionary.columns[kind.name, field.name], []).append(Filled(own, field, some))
    messages = () if dictionary.logging is None else (dictionary.logging.piece, dictionary.logging.log,
                                                 dictionary.logging.text)
    fit.unknown = int(np.count_nonzero((event >= 0) & (names < 0) & ~np.isin(event, messages)))

    encoded = pa.DictionaryArray.from_arrays(pa.array(names, mask=names < 0),
                                             pa.array([kind.name for kind in dictionary.events], pa.string()))
    table = events.append_column("name", encoded)
    for column, filled in parts.items():
        table = table.append_column(column, joined(filled, rows))
    return table, fit
