"""Events of a dictionary as the bytes of their records."""

import struct
from pathlib import Path

from hypermon.host.dictionary.dictionary import EventKind, load_dictionary

__all__ = ["EVENTS", "Kind", "kinds_of"]

#: The dictionary of the machines' programs. Its ids are fixed.
EVENTS = Path(__file__).parents[1] / "events.toml"
_FORMAT = {8: "B", 16: "H", 32: "I", 64: "Q"}


class Kind:
    """An event as a node's software writes it.

    Members
    -------
    id : of the dictionary. ``size``: bytes of its record, including the id.
    pack, unpack : id and fields, to bytes and back.
    """

    def __init__(self, kind: EventKind):
        self.id = kind.id
        self._struct = struct.Struct("<B" + "".join(_FORMAT[field.bits or 0] for field in kind.fields))
        self.size = self._struct.size
        self.pack = self._struct.pack
        self.unpack = self._struct.unpack_from


def kinds_of(path: Path = EVENTS) -> dict[str, Kind]:
    """The events of a dictionary whose fields are all unsigned, of 8, 16 or 32 bits, by name."""
    return {name: Kind(kind) for name, kind in load_dictionary(path).by_name.items()}
