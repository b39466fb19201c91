"""Event dictionaries: what a program's event ids mean, told by whoever wrote the program.

A dictionary is a TOML file with a table an event: its ``id``, and the ``fields`` of its payload in
order, packed, little-endian:

    [send]
    id = 2
    fields = { peer = "u8", sequence = "u16" }
"""

import os
import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.errors import InputError

__all__ = ["EventKind", "load_dictionary"]

#: Types a field can have, as NumPy calls them.
TYPES = {f"{sign}{bits}": f"<{kind}{bits // 8}" for sign, kind in (("u", "u"), ("i", "i")) for bits in (8, 16, 32, 64)}
#: Bytes of the longest payload: an event has 15, one is its id.
PAYLOAD_MAX = 14


@dataclass(frozen=True)
class EventKind:
    """An event of the dictionary: ``fields`` are pairs of name and NumPy type, in order."""

    name: str
    id: int
    fields: tuple[tuple[str, str], ...]

    @property
    def size(self) -> int:
        """Bytes of its payload."""
        return np.dtype(list(self.fields)).itemsize

    def rows(self, events: pa.Table) -> pa.Table:
        """The events of this kind with their fields decoded.

        Parameters
        ----------
        events : as :func:`hypermon.host.framing.frame_events` makes them.

        Returns
        -------
        ``time_ps``, ``node`` and a column a field, in the order of ``events``. Aborted events are left out.

        Raises
        ------
        ValueError
            if such an event has a payload of another length.
        """
        own = events.filter(pc.and_(pc.equal(events["event"], self.id), pc.invert(events["aborted"])))
        payload = own["payload"].combine_chunks()
        sizes = pc.binary_length(payload).to_numpy(zero_copy_only=False)
        if np.any(sizes != self.size):
            raise ValueError(f"{self.name}: a payload of {sizes[sizes != self.size][0]} bytes, not {self.size}")
        columns: dict[str, Any] = {"time_ps": own["time_ps"], "node": own["node"]}
        values = np.frombuffer(b"".join(payload.to_pylist()), np.dtype(list(self.fields))) if self.fields else None
        columns |= {name: pa.array(values[name]) for name, _ in self.fields} if values is not None else {}
        return pa.table(columns)


def load_dictionary(path: str | os.PathLike[str]) -> dict[int, EventKind]:
    """The events of a dictionary by id.

    Raises
    ------
    InputError
        if the file is not readable or makes no sense; it says which event and why.
    """
    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except OSError as error:
        raise InputError(path, None, error.strerror or str(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, None, f"not TOML: {error}") from None
    kinds: dict[int, EventKind] = {}
    for name, table in tables.items():
        kind = _kind(path, name, table)
        if kind.id in kinds:
            raise InputError(path, None, f"{name} and {kinds[kind.id].name} have the same id, {kind.id}")
        kinds[kind.id] = kind
    return kinds


def _kind(path: str | os.PathLike[str], name: str, table: object) -> EventKind:
    if not isinstance(table, dict) or not table.keys() <= {"id", "fields"}:
        raise InputError(path, None, f"{name}: an event is a table with `id` and `fields`, nothing else")
    number, fields = table.get("id"), table.get("fields", {})
    if type(number) is not int or not 0 <= number <= 255:
        raise InputError(path, None, f"{name}: id is 0..255, not {number!r}")
    if not isinstance(fields, dict):
        raise InputError(path, None, f"{name}: fields is a table of names and types, not {fields!r}")
    for field, kind in fields.items():
        if kind not in TYPES:
            raise InputError(path, None, f"{name}: {field} is of type {', '.join(TYPES)}, not {kind!r}")
        if field in ("time_ps", "node"):
            raise InputError(path, None, f"{name}: every event has a {field} already")
    result = EventKind(name, number, tuple((field, TYPES[kind]) for field, kind in fields.items()))
    if result.size > PAYLOAD_MAX:
        raise InputError(path, None, f"{name}: {result.size} bytes of fields; a payload has {PAYLOAD_MAX} at most")
    return result
