"""Quantiles and ratios of blocks of time: against what is computed in another way."""

import math

import numpy as np
import pytest
from hypermon.host.compare.estimates import Estimate, Ratio, Samples, estimate_ratio, holm, p_value, quantiles_of


def samples(values, blocks=20, **more) -> Samples:
    values = np.asarray(values, np.int64)
    return Samples.of(values, (np.arange(len(values)) * blocks // len(values)).astype(np.uint16), blocks, **more)


def estimate_quantile(own: Samples, share: float, rng: np.random.Generator) -> Estimate:
    return quantiles_of(own, [share])[0].estimate(rng)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("most", [3, 100, 10**9])
def test_quantiles_and_their_spread(share: float, most: int) -> None:
    """The draws are spread as if whole blocks were drawn and sorted; of few different values, too."""
    rng = np.random.default_rng(most)
    own = samples(rng.integers(0, most, 4000))
    found = estimate_quantile(own, share, rng)
    assert found.value == found.low == found.high == np.quantile(own.values, share, method="inverted_cdf")
    drawn = [np.quantile(own.values.reshape(20, 200)[rng.integers(0, 20, 20)].ravel(), share, method="inverted_cdf")
             for _ in range(500)]
    assert found.draws.mean() == pytest.approx(np.mean(drawn), rel=0.02, abs=0.1)
    assert found.draws.std() == pytest.approx(np.std(drawn), rel=0.2, abs=0.1)


def test_blocks_that_depend_widen() -> None:
    """A value for each block: the spread is that of 20 values, not of 4,000."""
    rng = np.random.default_rng(1)
    levels = np.repeat(rng.normal(1000, 100, 20), 200)
    noise = rng.normal(0, 100, 4000)
    together = estimate_quantile(samples(levels + noise), 0.5, rng)
    apart = estimate_quantile(samples(rng.permutation(levels) + noise), 0.5, rng)
    assert together.draws.std() > 5 * apart.draws.std()


def test_what_is_missing_or_wrong_bounds_a_quantile() -> None:
    """All ways to add two values and to remove one: the bounds are the extremes."""
    values = [10 * k for k in range(1, 21)]
    found = estimate_quantile(samples(values, missing=2, wrong=1), 0.5, np.random.default_rng(1))
    extremes = [sorted([*values[:k], *values[k + 1:], *added])[math.ceil(0.5 * (19 + len(added))) - 1]
                for k in range(20) for added in ([], [0], [999], [0, 0], [0, 999], [999, 999])]
    assert found.low <= min(extremes) <= max(extremes) <= found.high
    assert (min(extremes) - found.low, found.high - max(extremes)) <= (10, 10)


def test_a_quantile_that_may_be_missing_is_open() -> None:
    found = estimate_quantile(samples(range(100), missing=2, wrong=0, slack_ps=7), 0.99, np.random.default_rng(1))
    assert (found.low, found.high) == (98 - 7, math.inf)
    found = estimate_quantile(samples(range(1, 101), missing=math.inf, wrong=math.inf), 0.5, np.random.default_rng(1))
    assert (found.low, found.high) == (0, math.inf)


def test_ratios() -> None:
    rng = np.random.default_rng(1)
    part, whole = rng.poisson(100, 50).astype(float), np.full(50, 0.5)
    found = estimate_ratio(Ratio(part, whole, 1, 2), rng)
    assert (found.value, found.low, found.high) == (part.sum() / 25, part.sum() / 25 - 1, part.sum() / 25 + 2)
    assert found.draws.std() == pytest.approx(np.sqrt(100 / 50) / 0.5, rel=0.25)


def test_probabilities_are_uniform_if_nothing_differs() -> None:
    rng = np.random.default_rng(3)
    found = np.sort([p_value(samples(rng.integers(0, 50, 1000)), samples(rng.integers(0, 50, 1000)), 44)
                     for _ in range(400)])
    assert np.abs(found - np.arange(1, 401) / 400).max() < 0.1


def test_certain_values() -> None:
    same = Ratio(np.full(10, 3.0), np.ones(10))
    assert p_value(same, same, 0) == 1
    assert p_value(same, Ratio(np.full(10, 4.0), np.ones(10)), 0) == 0


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
