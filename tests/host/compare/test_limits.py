"""``--fail-if``: what it means, and what it does not take."""

import math

import pytest
from hypermon.host.compare.comparison import Figure, Interval
from hypermon.host.compare.limits import judge_limits, limit_of
from hypermon.host.compare.recording import Measure
from hypermon.host.compare.tables import as_dict, markdown, overall
from hypermon.host.errors import HypermonError


def figure(low: float, high: float, first: float = 1000, measure=("latency", "a|b"), name="p99") -> Figure:
    relative = Interval(low / first, high / first) if first else None
    return Figure(Measure(*measure), name, "ps", first, first, Interval(low, high), relative, 0.5, "same")


@pytest.mark.parametrize(("text", "low", "high", "verdict"), [
    ("latency.p99 > +5 %", 51, 60, "fail"), ("latency.p99 > +5 %", 40, 60, "undecided"),
    ("latency.p99 > +5 %", -90, 50, "pass"), ("latency.p99 > 5%", 51, math.inf, "fail"),
    ("latency > 0 ns", 1, 2, "fail"), ("latency:a|b < -5 %", -60, -51, "fail"),
    ("latency:a|b.p99 < -0.05 ns", -60, -40, "undecided"), ("latency < -5 %", -50, 90, "pass")])
def test_limits(text: str, low: float, high: float, verdict: str) -> None:
    assert overall(judge_limits([figure(low, high)], [limit_of(text)])) == verdict


@pytest.mark.parametrize(("ends", "verdict"), [((0, 0), "pass"), ((1, 2), "fail"), ((0, 1), "undecided")])
def test_what_was_nothing_before(ends: tuple[float, float], verdict: str) -> None:
    rate = figure(*ends, first=0, measure=("rate", "x"), name="mean")
    assert overall(judge_limits([rate], [limit_of("rate > +5 %")])) == verdict


def test_per_cent_of_losses_are_points() -> None:
    lost = figure(0.011, 0.012, first=0, measure=("lost", ""), name="mean")
    assert overall(judge_limits([lost], [limit_of("lost > 1 %")])) == "fail"
    assert overall(judge_limits([lost], [limit_of("lost > 2 %")])) == "pass"


@pytest.mark.parametrize(("text", "said"), [
    ("latency", "expected MEASURE"), ("latenzy > 5 %", "there is no measure 'latenzy'; there are latency"),
    ("latency.mean > 5 %", "latency has p50, p90, p99"), ("rate.p99 > 5 %", "rate has mean"),
    ("latency > 5", "by a time with a unit"), ("latency > 5 parsec", "by a time with a unit"),
    ("rate > 5 us", "rate changes by a number"), ("rate > 1.2.3 %", "1.2.3 is no number"),
    ("latency:b > 5 %", "neither A nor B has it; they have latency:a|b.p99")])
def test_what_is_no_limit(text: str, said: str) -> None:
    with pytest.raises(HypermonError, match="--fail-if") as caught:
        judge_limits([figure(0, 1)], [limit_of(text)])
    assert said in str(caught.value)


def test_markdown_and_json() -> None:
    figures = [figure(51, math.inf)]
    broken = judge_limits(figures, [limit_of("latency > +5 %")])
    text = markdown(figures, broken)
    assert "**hypermon compare: fail**" in text
    assert r"latency:a\|b.p99" in text
    values = as_dict(figures, broken)
    assert (values["verdict"], values["figures"][0]["difference"]) == ("fail", [51, None])
    assert values["limits"] == [{"limit": "latency > +5 %", "name": "latency:a|b.p99", "verdict": "fail"}]
