"""The judges against brute force: they may say undecided where the oracle decides, but never decide wrongly."""

import os
import random
from collections import Counter
from dataclasses import replace

import duckdb
import pytest
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import KINDS, Event, Rule, Scope

from tests.host.contracts.oracle.brute_force import EVENTS, made_up, possible
from tests.host.contracts.traces import traced

#: Traces of each kind, and of each: completions at random, and steps. ``HYPERMON_TRACES=2000`` for more.
TRACES, COMPLETIONS, STEPS = int(os.environ.get("HYPERMON_TRACES", "20")), 80, 80

A, B, C = Event("a"), Event("b"), Event("c")


#: Events that begin and end scopes.
EDGES = "se"


def made_scope(rng, kind, same):
    """A scope: as the oracle reads it, and as the judges do."""
    plain = rng.choice([{"from": "s"}, {"to": "e"}, *[{"from": "s", "to": "e"}] * 4, {"from": "a", "to": "e"}])
    own = kind != "exclusion" and not (kind == "rate" and not same) and rng.random() < 0.3
    begin, end = ((Event(plain[way]),) if way in plain else () for way in ("from", "to"))
    return {**plain, "same_node": own}, Scope(begin, end, own)


def made_rule(rng, kind, nodes):
    """A rule: as the oracle reads it, and as the judges do."""
    key, same = rng.random() < 0.4, rng.random() < 0.4
    events, values = {"event": (A,)}, {}
    if kind == "response":
        events = {"after": (A,), "expect": (B,)}
        values = rng.choice([{"max": 5}, {"max": 2}, {"min": 1, "max": 6}, {"max": 10}, {}])
    elif kind == "precedence":
        events, values = {"event": (A,), "needs": (B,)}, rng.choice([{"within": 3}, {"within": 8}, {}])
    elif kind == "absence":
        how = rng.choice(["plain", "between", "after"])
        if how == "plain":
            key = same = False
        elif how == "between":
            events["between"] = (B, C)
        else:
            events["after"], values = (B,), {"within": rng.choice([1, 3, 6])}
    elif kind == "period":
        key, same = False, rng.random() < 0.7
        values = {"every": rng.choice([3, 5]), "tolerance": rng.choice([1, 3, 5])}
    elif kind == "rate":
        key, same = False, rng.random() < 0.7
        values = {"per": rng.choice([3, 6]), **rng.choice([{"max": 2}, {"max": 1}, {"min": 1}, {"max": 4, "min": 1}])}
    elif kind == "duration":
        events = {"begin": (A,), "end": (B,)}
        key, same = (True, False) if rng.random() < 0.3 else (rng.random() < 0.5, True)
        values = rng.choice([{"max": 5}, {"min": 2}, {"min": 1, "max": 9}, {"max": 5, "quantile": 0.5}])
    elif kind == "share":
        events, key, same = {"begin": (A,), "end": (B,)}, False, False
        values = rng.choice([{"max": 0.7}, {"min": 0.1}, {"min": 0.3, "max": 0.6}])
    elif kind == "exclusion":
        key = same = False
        others = tuple(range(1, nodes))
        events = {"spans": (A, B)} if nodes == 1 or rng.random() < 0.5 else {"spans": (
            Event("a", (0,)), Event("b", (0,)), Event("a", others), Event("b", others))}
    elif kind == "together":
        same = False
        events, values = {"event": (Event("a", tuple(range(nodes))),)}, {"within": rng.choice([2, 5, 9])}
    elif kind == "order":
        events = {"events": (A, B, C)}
        same = not key or same
    plain = {**values, **dict.fromkeys(events, True), "key": key, "same_node": same,
             "groups": len(events.get("spans", ())) // 2}
    return plain, Rule("rule", kind, 1, events, ("k",) if key else (), same, values)


def made(rng, kind, nodes, scoped=False, fresh=False):
    """A rule with a scope, or without one. ``fresh``: of a share, with all nodes named, of which none began before."""
    plain, rule = made_rule(rng, kind, nodes)
    if fresh:
        plain["fresh"] = True
        events = {key: tuple(Event(own.name, tuple(range(nodes))) for own in of) for key, of in rule.events.items()}
        rule = replace(rule, events=events, fresh_start=True)
    if scoped:
        plain["scope"], scope = made_scope(rng, kind, rule.same_node)
        rule = replace(rule, scope=scope)
    return plain, rule


def counted(kind, seeds, scoped=False, fresh=False):
    """How often each verdict is given; ``excess``: undecided, where all completions that were tried agree."""
    events = EVENTS + EDGES * scoped
    count = Counter()
    with duckdb.connect(config={"threads": 1}) as db:
        for seed in seeds:
            rng = random.Random(f"{kind} {seed}")
            recorded = made_up(rng, events)
            plain, rule = made(rng, kind, recorded.nodes, scoped, fresh)
            trace = traced(recorded.items, recorded.losses, recorded.end, recorded.nodes, recorded.slack, db)
            trace.fresh = rule.fresh_start
            judged = JUDGES[kind](trace, rule)
            found = possible(rng, kind, plain, recorded, events, COMPLETIONS, STEPS)
            wrong = {"pass": False, "fail": True}.get(judged.verdict)
            assert wrong not in found, (seed, judged.verdict, rule, recorded)
            idle = "excess" if judged.verdict == "undecided" and len(found) == 1 and judged.instances else "same"
            count[judged.verdict, idle] += 1
    print(kind, dict(count))
    return count


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_wrong_decision(kind):
    count = counted(kind, range(TRACES))
    assert count["fail", "same"]
    assert count["undecided", "same"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_wrong_decision_in_many(kind):
    count = counted(kind, range(1000, 1000 + 10 * TRACES))
    assert count["pass", "same"]
    assert count["fail", "same"]
    assert count["undecided", "same"]


@pytest.mark.parametrize("scoped", [False, True])
def test_no_wrong_decision_about_named_nodes_that_began_in_the_recording(scoped):
    count = counted("share", range(5 * TRACES), scoped, fresh=True)
    assert count["fail", "same"]
    assert count["undecided", "same"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_wrong_decision_in_a_scope(kind):
    count = counted(kind, range(TRACES), scoped=True)
    assert count["undecided", "same"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_wrong_decision_in_a_scope_in_many(kind):
    count = counted(kind, range(1000, 1000 + 10 * TRACES), scoped=True)
    # Of so few items, no period passes in a scope with losses.
    assert count["pass", "same"] or kind == "period"
    assert count["fail", "same"]
    assert count["undecided", "same"]
