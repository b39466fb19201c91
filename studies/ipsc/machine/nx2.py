"""Events of the instrumented NX/2: encoded as bytes according to the dictionary."""

import struct
from pathlib import Path

from hypermon.host.dictionary.dictionary import EventKind, load_dictionary
from hypermon.studies.machine.core.records import Kind as Bare

__all__ = ["DICTIONARY", "IDLE_PID", "KINDS", "PID", "Call", "Kind", "bare_dictionary"]

DICTIONARY = Path(__file__).with_name("nx2.toml")
_DELTA = ', delta = "u16"'
#: Processes: the kernel's idle loop, the program.
IDLE_PID, PID = 0, 100


class Kind(Bare):
    """An event of the instrumented NX/2: the last field is the delta.

    Members
    -------
    payload : bytes with the id and without the delta: an event's size as section 3.1 counts it.
    pack_bare : to bytes without the delta, for a board that stamps events.
    """

    def __init__(self, kind: EventKind):
        super().__init__(kind)
        self.payload = self.size - 2
        self.pack_bare = struct.Struct(self._struct.format.removesuffix("H")).pack


KINDS = {name: Kind(kind) for name, kind in load_dictionary(DICTIONARY).by_name.items()}


def bare_dictionary() -> str:
    """The dictionary of events without deltas, as :attr:`Kind.pack_bare` writes them."""
    return DICTIONARY.read_text("utf-8").replace(_DELTA, "")


class Call:
    """Numbers of system calls."""

    CSEND, CRECV, IPROBE, MCLOCK = 1, 2, 3, 4
