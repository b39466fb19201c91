"""The meaning of event ids.

>>> from hypermon.host.dictionary import load_dictionary

Flow: payload, dictionary, fields, log_strings, long_messages, run_dictionary, semantics, c_header
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
