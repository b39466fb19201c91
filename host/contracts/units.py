"""Times with units, as rules state them."""

import re
from decimal import Decimal

__all__ = ["LONGEST_PS", "UNITS", "ps_of"]

#: Units and their lengths in picoseconds.
UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12, "min": 60 * 10**12, "h": 3600 * 10**12}
#: The longest time of a rule, eleven days: sums of times and uncertainties then fit into 64 bits.
LONGEST_PS = 10**18
#: Two characters of Unicode look like the same Greek letter.
_MICRO = ("\u00b5", "\u03bc")
_TIME = re.compile(rf"([0-9]{{1,18}}(?:\.[0-9]{{1,12}})?)\s*([a-z{_MICRO[0]}{_MICRO[1]}]+)")


def ps_of(text: object) -> int:
    """A time such as ``"20 us"`` in picoseconds. Raises ValueError, whose text states the allowed form."""
    match = _TIME.fullmatch(text.strip()) if isinstance(text, str) else None
    unit = match[2].replace(_MICRO[0], "u").replace(_MICRO[1], "u") if match else ""
    if match is None or unit not in UNITS:
        raise ValueError(f'a time is a text with a unit, such as "20 us" ({", ".join(UNITS)}), not {text!r:.60}')
    value = Decimal(match[1]) * UNITS[unit]
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number of picoseconds")
    if value > LONGEST_PS:
        raise ValueError(f"{text!r} is longer than eleven days")
    return int(value)
