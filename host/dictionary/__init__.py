"""What event ids mean.

>>> from hypermon.host.dictionary import load_dictionary

Flow: dictionary, fields, naming, semantics, cheader
"""

from hypermon.host.dictionary.dictionary import (
    PAYLOAD_MAX,
    Dictionary,
    EventKind,
    Field,
    load_dictionary,
    print_dictionary,
)

__all__ = ["Dictionary", "EventKind", "Field", "PAYLOAD_MAX", "load_dictionary", "print_dictionary"]
