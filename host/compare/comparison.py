"""The figures of two groups of recordings side by side: differences, their intervals, and verdicts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from hypermon.host.compare import estimates, measures
from hypermon.host.compare.estimates import (
    DRAWS,
    Estimate,
    Quantile,
    Ratio,
    Samples,
    estimate_ratio,
    holm,
    p_value,
    quantiles_of,
)
from hypermon.host.compare.recording import Measure

__all__ = ["LEVEL", "QUANTILES", "THRESHOLDS", "Figure", "Interval", "compare_measures"]

#: The quantiles of durations; the probability of a false alarm among all figures.
QUANTILES, LEVEL = {"p50": 0.5, "p90": 0.9, "p99": 0.99}, 0.01
#: Samples that must be beyond a quantile, and blocks of time that must have samples: else chance cannot be estimated.
_BEYOND, _BLOCKS = 10, 8
_SEED = 1
#: The limits that a comparison depends on, by their names in output.
THRESHOLDS = {"beyond": _BEYOND, "least_blocks": _BLOCKS, **measures.THRESHOLDS, **estimates.THRESHOLDS}


@dataclass(frozen=True)
class Interval:
    """Bounds of a value; they may be infinite."""

    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """A figure of both groups.

    Parameters
    ----------
    measure, figure : the measure, and which figure of it: ``p99``, for instance; for rates, shares and losses ``mean``.
    unit : ``ps``, ``/s``, or nothing.
    first, second : its values. None: the group has too few samples.
    difference : interval of the second less the first, including chance, losses and the uncertainty of times.
    relative : the difference as a part of the first; None if that is not positive.
    p : the probability of such a difference by chance, corrected for the number of figures.
    verdict : ``higher``, ``lower``, ``same`` (no difference was found), ``undecided`` (there is a difference, but
        losses or the uncertainty of times could explain it; or the difference has no bound), ``few`` (too few samples).
    """

    measure: Measure
    figure: str
    unit: str
    first: float | None
    second: float | None
    difference: Interval | None = None
    relative: Interval | None = None
    p: float | None = None
    verdict: str = "few"

    @property
    def name(self) -> str:
        """``latency:border.p99``, for instance."""
        return f"{self.measure.kind}{':' * bool(self.measure.name)}{self.measure.name}.{self.figure}"


def compare_measures(first: Mapping[Measure, Samples | Ratio], second: Mapping[Measure, Samples | Ratio],
                     level: float = LEVEL) -> list[Figure]:
    """Compares the measures of two groups of recordings. The same measures have the same result: the seed is fixed.

    Parameters
    ----------
    level : the probability that any of the figures is called different if there is no difference; the intervals
        contain the difference with the probability ``1 - level`` each.
    """
    rng = np.random.default_rng(_SEED)
    figures: list[Figure] = []
    for measure in sorted({*first, *second}):
        one, other = first.get(measure), second.get(measure)
        if isinstance(one or other, Ratio):
            figures.append(_ratio(measure, one, other, level, rng))
        else:
            figures += _quantiles(measure, one, other, level, rng)
    tested = [at for at, figure in enumerate(figures) if figure.p is not None]
    for at, p in zip(tested, holm([figures[at].p or 0.0 for at in tested]), strict=True):
        figures[at] = _concluded(replace(figures[at], p=p), level)
    return figures


def _ratio(measure: Measure, one: Samples | Ratio | None, other: Samples | Ratio | None, level: float,
           rng: np.random.Generator) -> Figure:
    unit = "/s" if measure.kind == "rate" else ""
    some = [own if isinstance(own, Ratio) and own.whole.sum() > 0 else None for own in (one, other)]
    values = [None if own is None else float(own.part.sum() / own.whole.sum()) for own in some]
    figure = Figure(measure, "mean", unit, values[0], values[1])
    if some[0] is None or some[1] is None or min(np.count_nonzero(own.whole) for own in some if own) < _BLOCKS:
        return figure
    estimates = [estimate_ratio(own, rng) for own in some if own is not None]
    if values == [0, 0] and estimates[0].low == estimates[0].high and estimates[1].low == estimates[1].high:
        # Nothing was lost in either: this is certain, and no test of chance.
        return replace(figure, difference=Interval(0, 0), verdict="same")
    difference, relative = _intervals(estimates[0], estimates[1], level)
    return replace(figure, difference=difference, relative=relative, p=p_value(some[0], some[1], 0))


def _quantiles(measure: Measure, one: Samples | Ratio | None, other: Samples | Ratio | None, level: float,
               rng: np.random.Generator) -> list[Figure]:
    some = [own if isinstance(own, Samples) else None for own in (one, other)]
    known = [{} if own is None else _known(own) for own in some]
    figures = []
    for name in QUANTILES:
        estimates = [own[name].estimate(rng) if name in own else None for own in known]
        values = [None if own is None else own.value for own in estimates]
        figure = Figure(measure, name, "ps", values[0], values[1])
        if some[0] is not None and some[1] is not None and estimates[0] is not None and estimates[1] is not None:
            difference, relative = _intervals(estimates[0], estimates[1], level)
            middle = (estimates[0].value + estimates[1].value) / 2
            figure = replace(figure, difference=difference, relative=relative, p=p_value(some[0], some[1], middle))
        figures.append(figure)
    return figures


def _known(samples: Samples) -> dict[str, Quantile]:
    """The quantiles that there are enough samples for."""
    names = [name for name, share in QUANTILES.items() if _enough(samples, share)]
    return dict(zip(names, quantiles_of(samples, [QUANTILES[name] for name in names]), strict=True)) if names else {}


def _enough(samples: Samples, share: float) -> bool:
    return (len(samples.values) * min(share, 1 - share) > _BEYOND - 0.5
            and bool(np.count_nonzero(samples.per_block) >= _BLOCKS))


def _intervals(one: Estimate, other: Estimate, level: float) -> tuple[Interval, Interval | None]:
    """Intervals of the difference and of the relative one: by chance, then widened by what is not known."""
    ends = [level / 2, 1 - level / 2]
    chance = np.quantile(other.draws - one.draws, ends)
    difference = Interval(float(chance[0] - (other.value - other.low) - (one.high - one.value)),
                          float(chance[1] + (other.high - other.value) + (one.value - one.low)))
    if one.value <= 0:
        return difference, None
    parts = np.divide(other.draws, one.draws, out=np.full(DRAWS, np.inf), where=one.draws > 0)
    chance = np.quantile(parts, ends, method="nearest") - other.value / one.value
    least = max(other.low, 0.0) / one.high if math.isfinite(one.high) else 0.0
    most = other.high / one.low if one.low > 0 else math.inf
    return difference, Interval(max(float(least + chance[0]), 0.0) - 1, float(most + chance[1]) - 1)


def _concluded(figure: Figure, level: float) -> Figure:
    difference, p = figure.difference, figure.p
    if difference is None or p is None or p > level or figure.first == figure.second:
        known = difference is None or (math.isfinite(difference.low) and math.isfinite(difference.high))
        return replace(figure, verdict="same" if known else "undecided")
    if difference.low > 0:
        return replace(figure, verdict="higher")
    return replace(figure, verdict="lower" if difference.high < 0 else "undecided")
