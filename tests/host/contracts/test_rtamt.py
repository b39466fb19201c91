"""Verdicts on complete traces against rtamt 0.4.10, a monitor of signal temporal logic (STL), for what STL can express.

``pip install rtamt==0.4.10``: it is not among the project's requirements, because it pins ANTLR's runtime of 2017.
"""

import random
from collections import Counter

import pytest
from hypermon.host.contracts.rules import Event

from tests.host.contracts.traces import judged

#: Traces of each kind; the time at which their events end, and at which the trace does.
TRACES, LAST, END = 150, 40, 80
A, B = {"event": (Event("a"),)}, (Event("b"),)


def response(rng):
    least, most = rng.choice([(0, 3), (2, 6), (1, 12), (0, 20)])
    return {"after": A["event"], "expect": B}, {"min": least, "max": most}, f"a -> eventually[{least}:{most}] b"


def precedence(rng):
    within = rng.choice([2, 6, 15])
    return {**A, "needs": B}, {"within": within}, f"a -> once[0:{within}] b"


def absence(rng):
    if rng.random() < 0.3:
        return A, {}, "not a"
    within = rng.choice([1, 3, 6])
    return {**A, "after": B}, {"within": within}, f"b -> always[0:{within}] not a"


def period(rng):
    every, tolerance = rng.choice([(4, 1), (4, 3), (10, 6)])
    least, most = every - tolerance, every + tolerance
    early = f"(always[1:{least - 1}] not a) and " if least > 1 else ""
    return A, {"every": every, "tolerance": tolerance}, (
        f"a -> ((always[1:{END}] not a) or ({early}eventually[{least}:{most}] a))")


def rate(rng):
    per = rng.choice([3, 6, 10])
    return A, {"per": per, "max": 1}, f"a -> always[1:{per - 1}] not a"


RULES = {rule.__name__: rule for rule in (response, precedence, absence, period, rate)}


def holds(rtamt, formula, items):
    """What rtamt says of a formula at all times of a trace."""
    specification = rtamt.StlDiscreteTimeSpecification()
    for name in "ab":
        specification.declare_var(name, "float")
        formula = formula.replace(f"not {name}", f"({name} <= 0.5)")
    words = [f"({word} >= 0.5)" if word in ("a", "b") else word for word in formula.split(" ")]
    specification.spec = f"always({' '.join(words)})"
    specification.parse()
    times = range(2 * END)
    signals = {name: [float((t, name) in items) for t in times] for name in "ab"}
    return specification.evaluate({"time": list(times), **signals})[0][1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(RULES))
def test_as_rtamt(kind):
    rtamt = pytest.importorskip("rtamt", reason="pip install rtamt==0.4.10")
    rng, count = random.Random(kind), Counter()
    for _ in range(TRACES):
        times = sorted(rng.sample(range(1, LAST), rng.randint(2, 9)))
        rows = [(t, 0, rng.choice(rng.choice(["ab", "aab", "b"])), 0) for t in times]
        events, values, formula = RULES[kind](rng)
        found = judged(kind, rows, events=events, same_node=True, nodes=1, end=END, fresh=True, **values)
        if not found.instances and kind != "absence":
            continue
        right = holds(rtamt, formula, {(t, name) for t, _, name, _ in rows})
        assert found.verdict == ("pass" if right else "fail"), (formula, rows, found)
        count[found.verdict] += 1
    assert min(count["pass"], count["fail"]) > TRACES // 20, count
