"""Verdicts on measures: false alarms, planted changes, and what losses and times leave open."""

import dataclasses

import numpy as np
import pytest
from hypermon.host.compare.comparison import compare_measures
from hypermon.host.compare.estimates import Ratio, Samples
from hypermon.host.compare.recording import Measure

LATENCY, RATE, LOST = Measure("latency", "x"), Measure("rate", "x"), Measure("lost", "")


def latencies(rng, count=20_000, scale=1.0, **more) -> Samples:
    values = (scale * 10**6 * np.exp(0.3 * rng.standard_normal(count))).astype(np.int64)
    return Samples.of(values, (np.arange(count) * 100 // count).astype(np.uint16), 100, **more)


def measures(rng) -> dict:
    return {LATENCY: latencies(rng, 4000), RATE: Ratio(rng.poisson(50, 100).astype(float), np.full(100, 0.01))}


def verdicts(first, second) -> list[str]:
    return [figure.verdict for figure in compare_measures(first, second)]


def test_false_alarms_are_rare() -> None:
    """Of 1,000 pairs, tests/bench/bench_compare.py counts them."""
    rng = np.random.default_rng(1)
    alarms = sum(set(verdicts(measures(rng), measures(rng))) != {"same"} for _ in range(60))
    assert alarms <= 3


def test_what_changes_slowly_is_no_alarm() -> None:
    """Levels that last for four blocks of time each; taken for independent, they would give alarms."""
    rng = np.random.default_rng(6)
    pairs = [[dataclasses.replace(own, values=own.values + np.repeat(rng.normal(0, 2e6, 25).astype(np.int64), 160))
              for own in (latencies(rng, 4000), latencies(rng, 4000))] for _ in range(20)]
    assert sum(set(verdicts({LATENCY: one}, {LATENCY: other})) != {"same"} for one, other in pairs) <= 2


def test_a_planted_change_is_found() -> None:
    rng = np.random.default_rng(2)
    assert [verdicts({LATENCY: latencies(rng)}, {LATENCY: latencies(rng, scale=scale)})
            for scale in (1.05, 0.95)] == [["higher"] * 3, ["lower"] * 3]


@pytest.mark.parametrize("more", [{"slack_ps": 10**5}, {"missing": 3000, "wrong": 3000}])
def test_what_is_not_known_leaves_a_change_undecided(more) -> None:
    rng = np.random.default_rng(3)
    first, second = latencies(rng), latencies(rng, scale=1.05)
    assert verdicts({LATENCY: first}, {LATENCY: dataclasses.replace(second, **more)})[0] == "undecided"
    assert verdicts({LATENCY: dataclasses.replace(first, **more)}, {LATENCY: second})[0] == "undecided"


def test_the_intervals_have_the_difference() -> None:
    """In 99 % of pairs; the difference of the medians is 3 %."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(60):
        median = compare_measures({LATENCY: latencies(rng, 4000)}, {LATENCY: latencies(rng, 4000, 1.03)})[0]
        inside += median.difference.low <= 30_000 <= median.difference.high
        assert median.relative.low < median.second / median.first - 1 < median.relative.high
    assert inside >= 57


def test_few_samples_and_one_side() -> None:
    rng = np.random.default_rng(5)
    few = latencies(rng, 500)
    assert verdicts({LATENCY: few}, {LATENCY: few}) == ["same", "same", "few"]
    assert verdicts({LATENCY: few}, {}) == ["few"] * 3
    assert verdicts({RATE: Ratio(np.ones(3), np.ones(3))}, {RATE: Ratio(np.ones(3), np.ones(3))}) == ["few"]


def test_nothing_lost_is_no_test() -> None:
    none = {LOST: Ratio(np.zeros(100), np.ones(100))}
    [figure] = compare_measures(none, none)
    assert (figure.verdict, figure.p) == ("same", None)


def test_the_same_runs_have_the_same_result() -> None:
    """What is drawn at random is drawn alike each time."""
    rng = np.random.default_rng(3)
    first, second = measures(rng), measures(rng)
    assert compare_measures(first, second) == compare_measures(first, second)
