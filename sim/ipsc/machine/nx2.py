"""Events of the instrumented NX/2: encoded as bytes according to the dictionary."""

import struct
from pathlib import Path

from hypermon.host.dictionary.dictionary import EventKind, load_dictionary

__all__ = ["DICTIONARY", "IDLE_PID", "KINDS", "PID", "Call", "Kind", "bare_dictionary"]

DICTIONARY = Path(__file__).with_name("nx2.toml")
_DELTA = ', delta = "u16"'
#: Processes: the kernel's idle loop, the program.
IDLE_PID, PID = 0, 100

_FORMAT = {8: "B", 16: "H", 32: "I"}


class Kind:
    """An event as the node's software writes it.

    Members
    -------
    id : of the dictionary. ``size``: bytes of its record, including id and delta.
    pack, unpack : id, fields and delta, to bytes and back.
    """

    def __init__(self, kind: EventKind):
        self.id = kind.id
        self._struct = struct.Struct("<B" + "".join(_FORMAT[field.bits or 0] for field in kind.fields))
        self.size = self._struct.size
        #: Bytes with the id and without the delta: an event's size as section 3.1 counts it.
        self.payload = self.size - 2
        self.pack = self._struct.pack
        self.unpack = self._struct.unpack_from
        #: Without the delta, for a board that stamps events.
        self.pack_bare = struct.Struct(self._struct.format.removesuffix("H")).pack


KINDS = {name: Kind(kind) for name, kind in load_dictionary(DICTIONARY).by_name.items()}


def bare_dictionary() -> str:
    """The dictionary of events without deltas, as :attr:`Kind.pack_bare` writes them."""
    return DICTIONARY.read_text("utf-8").replace(_DELTA, "")


class Call:
    """Numbers of system calls."""

    CSEND, CRECV, IPROBE, MCLOCK = 1, 2, 3, 4
