"""Limits on the differences of two groups of recordings, as ``--fail-if`` states them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypermon.host.compare.comparison import QUANTILES, Figure, Interval
from hypermon.host.contracts.rules import near
from hypermon.host.contracts.units import UNITS, ps_of
from hypermon.host.errors import HypermonError

__all__ = ["Broken", "Limit", "judge_limits", "limit_of"]

_KINDS = ("duration", "latency", "lost", "period", "rate", "share")
_FORM = re.compile(r"\s*(\w+)(?::(.+?))?(?:\.(p50|p90|p99|mean))?\s*([<>])\s*([+-]?)\s*([0-9.]+)\s*(.*?)\s*")


@dataclass(frozen=True)
class Limit:
    """A change that fails.

    Parameters
    ----------
    text : as it was written. ``kind``, ``name``, ``figure``: the figures that it is about; None: all.
    above : the change fails above the limit; otherwise below it.
    limit : limit of the difference. ``relative``: it is a part of the first value.
    """

    text: str
    kind: str
    name: str | None
    figure: str | None
    above: bool
    limit: float
    relative: bool


@dataclass(frozen=True)
class Broken:
    """A limit on a figure: ``verdict`` is ``fail`` or ``undecided``."""

    limit: Limit
    figure: Figure
    verdict: str


def limit_of(text: str) -> Limit:
    """Reads a limit such as ``latency.p99 > +5 %``.

    Raises
    ------
    HypermonError
        if the text has another form; the message states what is allowed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise HypermonError(f"--fail-if {text!r:.100}: expected MEASURE[:NAME][.FIGURE] > +CHANGE, such as "
                            "'latency.p99 > +5 %' or 'duration:computing > +20 us'")
    kind, name, figure, way, sign, number, unit = match.groups()
    if kind not in _KINDS:
        raise HypermonError(f"--fail-if {text!r:.100}: there is no measure {kind!r}; there are {near(kind, _KINDS)}")
    timed = kind in ("duration", "latency", "period")
    if figure is not None and timed != (figure in QUANTILES):
        raise HypermonError(f"--fail-if {text!r:.100}: {kind} has {', '.join(QUANTILES) if timed else 'mean'}")
    if unit == "%" or (not timed and unit in ("", "/s")):
        try:
            limit = float(number) / (100 if unit == "%" else 1)
        except ValueError:
            raise HypermonError(f"--fail-if {text!r:.100}: {number} is no number") from None
    elif not timed:
        raise HypermonError(f"--fail-if {text!r:.100}: {kind} changes by a number, or by %")
    else:
        try:
            limit = ps_of(f"{number} {unit}")
        except ValueError:
            raise HypermonError(f"--fail-if {text!r:.100}: {kind} changes by %, or by a time with a unit: "
                                f"{', '.join(UNITS)}") from None
    # The share of lost items is mostly 0: per cent of it are percentage points.
    relative = unit == "%" and kind not in ("lost", "share")
    return Limit(text, kind, name, figure, way == ">", -limit if sign == "-" else limit, relative)


def judge_limits(figures: Sequence[Figure], limits: Sequence[Limit]) -> list[Broken]:
    """The limits that are exceeded, or may be.

    Raises
    ------
    HypermonError
        if a limit is about no figure that both groups have.
    """
    broken = []
    for limit in limits:
        about = [figure for figure in figures if figure.measure.kind == limit.kind
                 and limit.name in (None, figure.measure.name) and limit.figure in (None, figure.figure)]
        if not about:
            raise HypermonError(f"--fail-if {limit.text!r:.100}: neither A nor B has it; they have "
                                f"{near(f'{limit.kind}:{limit.name}', [figure.name for figure in figures]) or 'none'}")
        found = [(figure, _verdict(figure, limit)) for figure in about]
        broken += [Broken(limit, figure, verdict) for figure, verdict in found if verdict != "pass"]
    return broken


def _verdict(figure: Figure, limit: Limit) -> str:
    interval = figure.relative if limit.relative else figure.difference
    if interval is None and limit.relative and figure.difference is not None:
        # A value that was 0 has grown by more than any part of it, or is still 0.
        interval = Interval(*((math.copysign(math.inf, end) if end else 0.0)
                              for end in (figure.difference.low, figure.difference.high)))
    if interval is None:
        return "undecided"
    low, high = (interval.low, interval.high) if limit.above else (-interval.high, -interval.low)
    bound = limit.limit if limit.above else -limit.limit
    return "fail" if low > bound else "pass" if high <= bound else "undecided"
