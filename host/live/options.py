"""Converts the fields of a page's form to options of ``hypermon record``."""

from collections.abc import Mapping

from hypermon.host.errors import HypermonError
from hypermon.host.text.printable import printable

__all__ = ["FIELDS", "options"]

#: Fields of the form and the corresponding options. Their values are checked where they are used.
FIELDS = {
    "config": "--config", "window": "--window", "mode": "--mode", "edge": "--edge", "sample": "--sample",
    "start": "--start", "stop": "--stop", "pretrigger": "--pretrigger", "seconds": "--seconds", "events": "--events",
    "glitch": "--glitch", "rate_limit": "--rate-limit", "flush_ms": "--flush-ms",
}
#: Those that may be given several times, separated by blanks.
_SEVERAL = ("mode", "edge", "sample")
_MASKS = {"mask_nodes": "nodes", "mask_nibbles": "nibbles", "mask_events": "events"}
_LONGEST, _NAME = 200, 40


def options(form: Mapping[str, object]) -> list[str]:
    """The options; an empty field gives none.

    Raises
    ------
    HypermonError
        for a field that is not known, or not text.
    """
    found = []
    for name, value in form.items():
        if name not in FIELDS and name not in _MASKS:
            raise HypermonError(f"{printable(name, _NAME)}: there is no such setting")
        if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
            raise HypermonError(f"{name}: it must be a line of text")
        parts = value.split() if name in _SEVERAL else [value.strip()]
        # With "=", so that a value is never read as an option.
        found += [f"{FIELDS[name]}={part}" if name in FIELDS else f"--mask={_MASKS[name]}={part}"
                  for part in parts if part]
    return found
