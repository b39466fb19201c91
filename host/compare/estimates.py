"""Figures of a group of recordings with their uncertainty, from blocks of time.

Samples of one recording depend on each other, so the unit of chance is a block of time, not a sample. All chance is
estimated from how the blocks differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from hypermon.host.contracts.lines.line import each

__all__ = ["DRAWS", "THRESHOLDS", "Estimate", "Quantile", "Ratio", "Samples", "estimate_ratio", "holm", "p_value",
           "quantiles_of"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Groups of blocks that are drawn; values among which a quantile of a draw is searched.
DRAWS, _EDGES = 1000, 256
#: Parts into which a range of values is divided in the search for a quantile.
_TRIED = 64
#: Samples that are looked at to choose a value.
_PER_EDGE = 64
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
    values : in picoseconds: block of time by block of time, and in order within each.
    starts : the number of the first value of each block, and the number of values.
    missing, wrong : number of samples that may be missing, and number of samples that may be wrong; infinite: not
        known.
    slack_ps : by how much each value may be off.
    """

    values: Ints
    starts: Ints
    missing: float = 0
    wrong: float = 0
    slack_ps: float = 0

    @classmethod
    def of(cls, values: Ints, block: npt.NDArray[np.uint16], blocks: int, **more: float) -> "Samples":
        """Samples in any order; ``block``: the block of time of each, less than ``blocks``."""
        values = values[np.argsort(block, kind="stable")]
        return cls.of_blocks(values, _starts(np.bincount(block, minlength=blocks)), **more)

    @classmethod
    def of_blocks(cls, values: Ints, starts: Ints, **more: float) -> "Samples":
        """Samples whose values are in order but for those within a block. The values are put in order in place."""
        made = cls(values, starts, **more)
        each(lambda k: made.blocks[k].sort(), range(len(made.blocks)))
        return made

    @cached_property
    def blocks(self) -> list[Ints]:
        """The values of each block."""
        return [self.values[begin:end] for begin, end in pairwise(self.starts.tolist())]

    @property
    def per_block(self) -> Ints:
        """How many samples each block has."""
        return np.diff(self.starts)

    def reached(self, values: Ints, strictly: bool = False) -> Ints:
        """For each block, how many of its samples are at most as large as each value; strictly: smaller."""
        side: Literal["left", "right"] = "left" if strictly else "right"
        return np.array([own.searchsorted(values, side) for own in self.blocks])

    def ranked(self, shares: Sequence[float]) -> list[int]:
        """For each share, the smallest value that at least this share of all values do not exceed."""
        count = len(self.values)
        ranks = np.array([min(max(math.ceil(share * count), 1), count) for share in shares])
        some = [own for own in self.blocks if len(own)]
        low = np.full(len(ranks), min(int(own[0]) for own in some))
        high = np.full(len(ranks), max(int(own[-1]) for own in some))
        while np.any(low < high):
            # One pass over the blocks tries several values for each rank: from low to high, which is large enough.
            steps = (high - low)[:, None] // _TRIED + 1
            tried = np.minimum(low[:, None] + steps * np.arange(_TRIED + 1), high[:, None])
            first = np.argmax(self.reached(tried.ravel()).sum(axis=0).reshape(tried.shape) >= ranks[:, None], axis=1)
            rows = np.arange(len(ranks))
            low, high = np.where(first > 0, tried[rows, first - 1] + 1, low), tried[rows, first]
        return [int(value) for value in low]


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


def _starts(counts: npt.NDArray[np.intp]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


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


def _below(samples: Samples, value: float) -> Ratio:
    """The share of samples below a value; those that equal it count half."""
    values = np.array([value])
    part = (samples.reached(values, strictly=True) + samples.reached(values))[:, 0] / 2
    return Ratio(part, samples.per_block.astype(np.float64))


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


@dataclass(frozen=True)
class Quantile:
    """A quantile, and how many values of each block are near to it.

    Parameters
    ----------
    share : of all values, those that the quantile is not less than. ``value``: the quantile.
    edges : values around the quantile; that of a draw is hardly ever above the last.
    reached : for each block, how many samples are not above each of them.
    counts : for each block, its samples.
    together : neighbouring blocks that are drawn together.
    low, high : as in :class:`Estimate`.
    """

    share: float
    value: int
    edges: Ints
    reached: Ints
    counts: Ints
    together: int
    low: float
    high: float

    def estimate(self, rng: np.random.Generator) -> Estimate:
        """The quantile, and that of each draw: exact to a small part of its standard deviation."""
        weights = _weights(len(self.counts), self.together, rng)
        reached = weights @ self.reached >= self.share * (weights @ self.counts)[:, None]
        draws = np.where(reached.any(axis=1), self.edges[reached.argmax(axis=1)], self.edges[-1]).astype(np.float64)
        return Estimate(float(self.value), draws, self.low, self.high)


def quantiles_of(samples: Samples, shares: Sequence[float]) -> list[Quantile]:
    """The quantiles for some shares, of at least one sample."""
    count = len(samples.values)
    bounds = [_bounding_shares(samples, share) for share in shares]
    values = samples.ranked(shares)
    spreads = [_variance(_below(samples, value)) for value in values]
    offs = [_BAND * math.sqrt(variance) + 2 / count for variance, _, _ in spreads]
    ends = iter(samples.ranked([*chain.from_iterable((share - off, share + off) for share, off
                                                     in zip(shares, offs, strict=True)), *chain.from_iterable(bounds)]))
    edges = [_edges(samples, next(ends), next(ends)) for _ in shares]
    return [Quantile(share, value, own, samples.reached(own), samples.per_block, together,
                     *_bounds(samples, value, [(at, next(ends)) for at in bound]))
            for share, value, own, (_, together, _), bound in zip(shares, values, edges, spreads, bounds, strict=True)]


def _edges(samples: Samples, bottom: int, top: int) -> Ints:
    """Values from ``bottom`` to ``top``, both among them, with about as many samples between any two."""
    ends = samples.reached(np.array([bottom, top]))
    step = max(int((ends[:, 1] - ends[:, 0]).sum()) // (_EDGES * _PER_EDGE), 1)
    some = np.sort(np.concatenate([own[begin:end:step] for own, (begin, end) in zip(samples.blocks, ends.tolist(),
                                                                                      strict=True)]))
    return np.unique(np.concatenate([some[::max(len(some) // _EDGES, 1)], [bottom, top]]))


def _bounding_shares(samples: Samples, share: float) -> list[float]:
    """The shares of the samples there are at which the quantile is if all missing samples are shorter than the others,
    and if all are longer. Empty if it is known, or nothing is known of it."""
    if not samples.missing + samples.wrong or math.isinf(samples.missing + samples.wrong):
        return []
    count = len(samples.values)
    at = share * (count + samples.missing - samples.wrong)
    return [(at - samples.missing) / count, (at + samples.wrong) / count]


def _bounds(samples: Samples, value: int, ends: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Bounds of a quantile; ``ends``: the two shares that bound it, and their values."""
    low, high = float(value), float(value)
    if math.isinf(samples.missing + samples.wrong):
        return min(0.0, value - samples.slack_ps), math.inf
    if ends:
        (first, shortest), (last, longest) = ends
        low, high = float(shortest) if first > 0 else min(0.0, shortest), float(longest) if last < 1 else math.inf
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
