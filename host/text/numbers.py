"""Numbers of options: click takes what Python's float() takes, and that is more than numbers."""

import math

import click
from hypermon.host.errors import HypermonError

__all__ = ["finite", "whole"]

#: More than any number has that means something.
_DIGITS = 100

#: Thirty years in milliseconds; of minutes and bytes more than anybody has.
_MOST = 1e12


def finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuses ``nan``, which is in every range, ``inf``, and more than anybody needs: the callback of an option."""
    if value is not None and not math.isfinite(value):
        raise HypermonError(f"{option.opts[0]} {value}: it must be a number")
    if value is not None and abs(value) > _MOST:
        raise HypermonError(f"{option.opts[0]} {value:g}: it must be {_MOST:g} at most")
    return value


def whole(text: str) -> int:
    """An integer of decimal digits, perhaps with a sign; of more than any range has, one that is in no range.

    Python refuses to read 4,300 digits.
    """
    return int(text) if len(text) <= _DIGITS else 10**_DIGITS * (-1 if text.startswith("-") else 1)
