"""Numbers: checks those in options more strictly than the library ``click``, which accepts whatever ``float()``
accepts; and formats numbers for people.
"""

import math

import click
from hypermon.host.errors import HypermonError

__all__ = ["counted", "finite", "significant", "whole"]

#: Larger than any meaningful number.
_DIGITS = 100

#: Thirty years in milliseconds; for minutes and bytes more than anyone needs.
_MOST = 1e12


def counted(count: int, thing: str) -> str:
    """A number of things in words: ``1 item``, ``1,234 items``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Option callback that rejects ``nan``, which is in every range, ``inf``, and values larger than anyone needs."""
    if value is not None and not math.isfinite(value):
        raise HypermonError(f"{option.opts[0]} {value}: it must be a number")
    if value is not None and abs(value) > _MOST:
        raise HypermonError(f"{option.opts[0]} {value:g}: it must be {_MOST:g} at most")
    return value


def whole(text: str) -> int:
    """An integer of decimal digits, perhaps with a sign; one with more digits than any range allows becomes a number
    outside all ranges.

    Python refuses to read 4,300 digits.
    """
    return int(text) if len(text) <= _DIGITS else 10**_DIGITS * (-1 if text.startswith("-") else 1)


def significant(value: float, digits: int) -> str:
    """At least this many significant digits, without an exponent or trailing zeros: 0.0123, 1.5, 12,345."""
    if value == 0:
        return "0"
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
