"""Numbers of options: click takes what Python's float() takes, and that is more than numbers."""

import math

import click
from hypermon.host.errors import HypermonError

__all__ = ["finite"]


def finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuses ``nan``, which is in every range, and ``inf``: the callback of an option."""
    if value is not None and not math.isfinite(value):
        raise HypermonError(f"{option.opts[0]} {value}: it must be a number")
    return value
