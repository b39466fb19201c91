"""Figures of a group of recordings with their uncertainty, from blocks of time.

Samples of one recording depend on each other, so the unit of chance is a block of time, not a sample. All chance is
estimated from how the blocks differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["DRAWS", "THRESHOLDS", "Estimate", "Ratio", "Samples", "estimate_quantile", "estimate_ratio", "holm",
           "p_value"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Groups of blocks that are drawn; values among which a quantile of a draw is searched.
DRAWS, _EDGES = 1000, 256
#: Standard deviations around a quantile within which those of the draws are.
_BAND = 6.0
#: How many neighbouring blocks are taken together; groups that there must be.
_TOGETHER, _GROUPS = (1, 2, 4, 8), 12
#: The limits that intervals depend on, by their names in output.
THRESHOLDS = {"draws": DRAWS, "together": max(_TOGETHER), "least_groups": _GROUPS}


@dataclass(frozen=True)
class Samples:
    """Durations of a group of recordings.

    Parameters
    ----------
    values : in picoseconds. ``block``: the block of time of each, less than ``blocks``.
    missing, wrong : number of samples that may be missing, and number of samples that may be wrong; infinite: not
        known.
    slack_ps : by how much each value may be off.
    """

    values: Ints
    block: npt.NDArray[np.uint16]
    blocks: int
    missing: float = 0
    wrong: float = 0
    slack_ps: float = 0


@dataclass(frozen=True)
class Ratio:
    """A sum divided by another sum, such as events per second.

    Parameters
    ----------
    part, whole : the two sums, for each block.
    less, more : by how much the true ratio may be lower or higher.
    """

    part: Floats
    whole: Floats
    less: float = 0
    more: float = 0


@dataclass(frozen=True)
class Estimate:
    """A figure.

    Parameters
    ----------
    draws : the figure of each draw of blocks.
    low, high : bounds of the true figure, for all losses and errors of stamps that are possible; without chance.
    """

    value: float
    draws: Floats
    low: float
    high: float


def _weights(blocks: int, together: int, rng: np.random.Generator) -> Floats:
    """How often each draw has each block, if the given number of neighbours are drawn together."""
    groups = -(-blocks // together)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), DRAWS).astype(np.float64)
    return np.repeat(drawn, together, axis=1)[:, :blocks]


def estimate_ratio(ratio: Ratio, rng: np.random.Generator) -> Estimate:
    """The ratio, and that of each draw."""
    weights = _weights(len(ratio.part), _variance(ratio)[1], rng)
    whole = weights @ ratio.whole
    value = float(ratio.part.sum() / ratio.whole.sum())
    draws = np.divide(weights @ ratio.part, whole, out=np.full(DRAWS, value), where=whole > 0)
    return Estimate(value, draws, value - ratio.less, value + ratio.more)


def _ranked(values: Ints, shares: Sequence[float]) -> list[int]:
    """For each share, the smallest value that at least this share of all values do not exceed."""
    ranks = [min(max(math.ceil(share * len(values)) - 1, 0), len(values) - 1) for share in shares]
    ordered = np.partition(values, sorted(set(ranks)))
    return [int(ordered[rank]) for rank in ranks]


def _per_block(samples: Samples, chosen: npt.NDArray[np.bool_] | None = None) -> Floats:
    block = samples.block if chosen is None else samples.block[chosen]
    return np.bincount(block, minlength=samples.blocks).astype(np.float64)


def _below(samples: Samples, value: float) -> Ratio:
    """The share of samples below a value; those that equal it count half."""
    part = (_per_block(samples, samples.values < value) + _per_block(samples, samples.values <= value)) / 2
    return Ratio(part, _per_block(samples))


def _variance(ratio: Ratio) -> tuple[float, int, int]:
    """The variance of a ratio, from how its blocks differ; the number of neighbours that were taken together for it,
    and the number of such groups.

    If samples depend on each other for longer than a block, groups of neighbours have a larger variance. The largest
    one is used.
    """
    whole = ratio.whole.sum()
    off = (ratio.part - ratio.part.sum() / whole * ratio.whole) / whole
    found = []
    for together in _TOGETHER:
        starts = np.arange(0, len(off), together)
        groups = int(np.count_nonzero(np.add.reduceat(ratio.whole, starts)))
        if groups >= _GROUPS or together == 1:
            sums = np.add.reduceat(off, starts)
            found.append((float((sums * sums).sum() * groups / max(groups - 1, 1)), together, groups))
    return max(found, key=lambda one: one[0])


def estimate_quantile(samples: Samples, share: float, rng: np.random.Generator) -> Estimate:
    """A quantile, and that of each draw: exact to a small part of its standard deviation."""
    count = len(samples.values)
    [value] = _ranked(samples.values, [share])
    variance, together, _ = _variance(_below(samples, value))
    off = _BAND * math.sqrt(variance) + 2 / count
    bottom, top = _ranked(samples.values, [share - off, share + off])
    within = (samples.values > bottom) & (samples.values <= top)
    inner = samples.values[within]
    edges = np.unique(np.concatenate([np.sort(inner)[::max(len(inner) // _EDGES, 1)], [bottom, top]]))
    cell = samples.block[within].astype(np.int64) * len(edges) + np.searchsorted(edges, inner)
    counts = np.bincount(cell, minlength=samples.blocks * len(edges)).reshape(samples.blocks, len(edges))
    counts[:, 0] += _per_block(samples, samples.values <= bottom).astype(np.int64)
    weights = _weights(samples.blocks, together, rng)
    reached = weights @ np.cumsum(counts, axis=1) >= share * (weights @ _per_block(samples))[:, None]
    draws = np.where(reached.any(axis=1), edges[reached.argmax(axis=1)], top).astype(np.float64)
    low, high = _bounds(samples, share, value)
    return Estimate(float(value), draws, low, high)


def _bounds(samples: Samples, share: float, value: int) -> tuple[float, float]:
    """The quantile if all missing samples are shorter than the others, and if all are longer."""
    count, low, high = len(samples.values), float(value), float(value)
    if math.isinf(samples.missing + samples.wrong):
        return min(0.0, value - samples.slack_ps), math.inf
    if samples.missing or samples.wrong:
        at = share * (count + samples.missing - samples.wrong)
        first, last = (at - samples.missing) / count, (at + samples.wrong) / count
        low, high = map(float, _ranked(samples.values, [first, last]))
        low, high = low if first > 0 else min(0.0, low), high if last < 1 else math.inf
    return low - samples.slack_ps, high + samples.slack_ps


def p_value(one: Samples | Ratio, other: Samples | Ratio, middle: float) -> float:
    """The probability of a difference of at least this size if both groups are of the same kind.

    Parameters
    ----------
    middle : for samples, the value at which their shares are compared; it is between the quantiles.
    """
    ratios = [_below(own, middle) if isinstance(own, Samples) else own for own in (one, other)]
    values = [float(own.part.sum() / own.whole.sum()) for own in ratios]
    spreads = [_variance(own) for own in ratios]
    variances = [own[0] for own in spreads]
    if not sum(variances):
        return 1.0 if values[0] == values[1] else 0.0
    free = sum(variances)**2 / sum(own**2 / max(groups - 1, 1) for own, _, groups in spreads)
    t = abs(values[0] - values[1]) / math.sqrt(sum(variances))
    # Student's t as a normal deviate (Wallace 1959).
    z = (8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p(t * t / free))
    return math.erfc(z / math.sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """The probabilities, corrected for their number (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    found: dict[int, Any] = {}
    worst = 0.0
    for done, at in enumerate(order):
        worst = max(worst, min(1.0, p_values[at] * (len(order) - done)))
        found[at] = worst
    return [found[at] for at in range(len(p_values))]
