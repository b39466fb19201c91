"""Verdicts by lines are those of the judges' queries alone, on random traces of all kinds of rules."""

import random

import duckdb
import numpy as np
import pytest
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.lines.sieves import quantiles
from hypermon.host.contracts.rules import KINDS, Event, Rule
from hypermon.host.contracts.trace import GAPS, Extent, Source, Trace

IDS = {"a": 1, "b": 2, "c": 3, "d": 4}


def _trace(db, rows, losses, nodes, end, slack, apart):
    db.execute("create or replace temp table ev (time_ps bigint, node smallint, event utinyint)")
    db.execute(f"create or replace temp table gaps ({GAPS})")
    db.executemany("insert into ev values (?, ?, ?)", rows)
    if losses:
        db.executemany("insert into gaps values (?, ?, ?, ?, 'loss', false)", losses)
    return Trace(db, [Extent(0, end)] * nodes, lambda event: Source(
        f"select time_ps, node from ev where event = {IDS[event.name]}",
        rows="select time_ps, node, event as value from ev", value=IDS[event.name]), slack, apart)


def _regular(rng, nodes, count, period):
    """Events a, b, c, d in turn, some missing, some twice; and losses, with or without what was lost."""
    rows, losses = [], []
    for node in range(nodes):
        times = set()
        for k in range(count):
            for place, name in enumerate("abcd"):
                if rng.random() < 0.02:
                    continue
                for again in (0, 3)[:1 + (rng.random() < 0.02)]:
                    t = k * period + place * period // 5 + node * 3 + rng.randrange(5) + again
                    if t not in times:
                        times.add(t)
                        rows.append((t, node, IDS[name]))
        for _ in range(rng.randrange(3)):
            lo = rng.randrange(count * period)
            losses.append((node, lo, lo + rng.randrange(period), rng.randrange(1, 4)))
    rows = [(t, node, event) for t, node, event in rows
            if rng.random() < 0.3 or not any(n == node and lo <= t <= hi for n, lo, hi, _ in losses)]
    rng.shuffle(rows)
    return rows, losses


def _rule(rng, kind, nodes, period):
    def event(name):
        some = tuple(sorted(rng.sample(range(nodes), rng.randrange(1, nodes + 1)))) if rng.random() < 0.2 else None
        return (Event(name, some),)

    a, b, c, d = (event(name) for name in "abcd")
    time = rng.choice([period // 10, period // 5 - 3, period // 5 + 3, period // 2, period, 3 * period])
    same = kind in ("duration", "period", "rate", "order") or rng.random() < 0.5
    limits = rng.choice([{"max": time}, {"max": time}, {"min": period // 10}, {"min": period // 10, "max": period}])
    events, values = {
        "response": ({"after": a, "expect": b}, limits),
        "precedence": ({"event": b, "needs": a}, rng.choice([{}, {"within": time}])),
        "absence": rng.choice([({"event": d}, {}), ({"event": d, "after": a}, {"within": time}),
                               ({"event": d, "between": (*a, *b)}, {}), ({"event": b, "between": (*a, *c)}, {})]),
        "period": ({"event": a}, {"every": period, "tolerance": rng.choice([4, 10, 30, period, 2 * period])}),
        "duration": ({"begin": a, "end": c}, rng.choice([
            limits, {"max": period // 2, "quantile": rng.choice([0.5, 0.9, 1.0])},
            {"min": period // 4, "quantile": 0.1}])),
        "rate": ({"event": a}, rng.choice([{"max": 3}, {"max": 4}, {"min": 2}, {"min": 2, "max": 4}, {"min": 3}])
                 | {"per": rng.choice([3 * period, 3 * period + 7])}),
        "exclusion": ({"spans": rng.choice([(*a, *b), (*a, *b, *c, *d), (*a, *c, *b, *d)])}, {}),
        "together": ({"event": a}, {"within": rng.choice([3 * nodes, 3 * nodes + 9, period])}),
        "order": ({"events": rng.choice([(*a, *b, *c), (*a, *b, *c, *d), (*b, *a)])}, {}),
        "share": ({"begin": a, "end": c}, rng.choice([{"max": 0.5}, {"min": 0.3}, {"min": 0.39, "max": 0.41}])),
    }[kind]
    return Rule("rule", kind, 1, events, (), same, values, fresh_start=rng.random() < 0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_by_lines(kind):
    """Also the places, and the reasons."""
    rng = random.Random(kind)
    sieved = 0
    with duckdb.connect(config={"threads": 1}) as db:
        for _ in range(20):
            nodes, period = rng.randrange(1, 4), rng.choice([100, 200])
            rows, losses = _regular(rng, nodes, rng.randrange(1, 30), period)
            given = (db, rows, losses, nodes, max(row[0] for row in rows) + rng.randrange(50),
                     rng.choice([0, 2, 5]), rng.choice([0, 3]))
            rule = _rule(rng, kind, nodes, period)
            plain, lined = _trace(*given), _trace(*given)
            plain.fresh = lined.fresh = rule.fresh_start
            lined.share([rule])
            expected = JUDGES[kind](plain, rule)
            assert JUDGES[kind](lined, rule) == expected, (rule, given[1:])
            rest = {"share": "select count(*) from begins", "exclusion": "select count(*) from begins_0"}.get(
                kind, "select count(*) from judged")
            count = sum(row[2] == IDS["a"] for row in rows) if kind in ("share", "exclusion") else expected.instances
            sieved += db.execute(rest).fetchall()[0][0] < count
    assert sieved > 5


def test_what_was_lost_just_before_an_end():
    """It may have come after it: an event is not outside for sure."""
    rows, losses = [(10, 0, IDS["c"]), (30, 0, IDS["a"])], [(1, 1, 9, 1)]
    rule = Rule("rule", "absence", 1, {"event": (Event("a", (0,)),), "between": (Event("b", None), Event("c", None))},
                (), False, {}, fresh_start=True)
    with duckdb.connect(config={"threads": 1}) as db:
        trace = _trace(db, rows, losses, 2, 100, 2, 0)
        trace.fresh = True
        trace.share([rule])
        assert JUDGES["absence"](trace, rule).verdict == "undecided"


@pytest.mark.parametrize(("limits", "verdict"), [
    ({"min": 0.24, "max": 36 / 102}, "pass"), ({"min": 0.241}, "undecided"), ({"max": 0.3529}, "undecided"),
    ({"max": 0.239}, "fail"), ({"min": 0.353}, "fail")])
def test_the_time_outside_is_without_regular_spans(limits, verdict):
    """The second span is one; see ``test_the_share_of_the_time_inside_and_outside``."""
    rows = [(t, 0, IDS[name]) for t, name in ((0, "a"), (10, "c"), (20, "a"), (30, "c"), (90, "a"))]
    rule = Rule("rule", "share", 1, {"begin": (Event("a", None),), "end": (Event("c", None),)}, (), True, limits)
    with duckdb.connect(config={"threads": 1}) as db:
        trace = _trace(db, rows, [], 1, 100, 2, 0)
        trace.share([rule])
        assert JUDGES["share"](trace, rule).verdict == verdict
        assert db.execute("select t from begins").fetchall() == [(0,), (90,)]


@pytest.mark.parametrize(("losses", "end", "kept"), [
    ([], 100, [0, 12]), ([], 63, [0, 12, 50]), ([(0, 64, 66, 1)], 100, [0, 12, 50])])
def test_a_span_close_to_another_is_not_regular(losses, end, kept):
    """Within the uncertainty of stamps there may be no time outside between the two, or before a loss or the end."""
    rows = [(t, 0, IDS[name]) for t, name in ((0, "a"), (10, "c"), (12, "a"), (22, "c"), (50, "a"), (60, "c"))]
    rule = Rule("rule", "share", 1, {"begin": (Event("a", None),), "end": (Event("c", None),)}, (), True, {"min": 0.1})
    with duckdb.connect(config={"threads": 1}) as db:
        trace = _trace(db, rows, losses, 1, end, 5, 0)
        trace.share([rule])
        JUDGES["share"](trace, rule)
        assert db.execute("select t from begins").fetchall() == [(time,) for time in kept]


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 250])
def test_quantiles(count):
    values = np.random.default_rng(count).integers(0, 50, count)
    with duckdb.connect() as db:
        db.register("given", {"d": values})
        expected = db.execute("select quantile_disc(d, 0.01), quantile_disc(d, 0.5), quantile_disc(d, 0.99) from given"
                              ).fetchall()[0]
    assert tuple(quantiles(values.copy(), (1, 50, 99))) == expected
    assert quantiles(values[:0], (1, 50)) == [None, None]
