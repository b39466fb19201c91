"""Rules on a recording that grows: never a violation that the whole recording does not have, and all that it has."""

import os
import random
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.contracts import growing
from hypermon.host.contracts.growing import Growing, only_at_end
from hypermon.host.contracts.judge import JUDGES
from hypermon.host.contracts.rules import KINDS, Event, Rule, Rules, Scope
from hypermon.host.contracts.trace import Source

from tests.host.contracts.oracle.brute_force import made_up
from tests.host.contracts.oracle.test_oracle import made_rule
from tests.host.contracts.traces import event, traced

#: Traces of each kind.
TRACES = int(os.environ.get("HYPERMON_TRACES", "12"))
SCHEMA = pa.schema([("time_ps", pa.int64()), ("node", pa.int16()), ("ev", pa.string()), ("k", pa.int64())])


class _Vocabulary:
    """Of tables with the name of each event."""

    def __init__(self, *arguments):
        pass

    def source(self, event):
        return Source(f"select time_ps, node, k from events where ev = '{event.name}'", ("k",), frozenset("k"))


@pytest.fixture
def grown(monkeypatch):
    """``grown(rule, nodes, slack)``: the rule, on a recording that grows."""
    made = []

    def make(rule, nodes=2, slack=0, itm=0):
        monkeypatch.setattr(growing, "Vocabulary", _Vocabulary)
        monkeypatch.setattr(growing, "slack_of", lambda info, late: slack + late)
        info = SimpleNamespace(nodes=nodes, port_bits=4, item_modes=ItemModes.of([ItemMode.NIBBLE] * nodes),
                               configuration={}, itm_nodes=itm)
        made.append(Growing(Rules("rules", (rule,)), info, SCHEMA, None))
        return made[-1]

    yield make
    for each in made:
        each.close()


def step(own, items, losses, since, until, nodes):
    """Adds what is from a time until before another one, and looks."""
    rows = sorted(row for row in items if since <= row[0] < until)
    if rows:
        own.add(pa.table([pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA,
                                                                                 strict=True)], schema=SCHEMA))
    for node, lo, hi, lost in losses:
        if since <= lo < until:
            own.lose(node, lost, lo, hi)
    own.know(0, [until - 1] * nodes, 0, [0] * nodes, 0)
    return own.look()


def both(grown, kind, seed):
    """The rule; the first violation while a trace grows; and the verdict on the whole."""
    rng = random.Random(f"{kind} {seed}")
    recorded = made_up(rng)
    _, rule = made_rule(rng, kind, recorded.nodes)
    if only_at_end(rule):
        return rule, None, None
    with traced(recorded.items, recorded.losses, recorded.end, recorded.nodes, recorded.slack).db as db:
        whole = JUDGES[kind](traced(recorded.items, recorded.losses, recorded.end, recorded.nodes, recorded.slack, db),
                             rule)
    own, found, at = grown(rule, recorded.nodes, recorded.slack), [], 0
    while at <= recorded.end:
        until = min(at + rng.randint(1, 6), recorded.end + 1)
        found += step(own, recorded.items, recorded.losses, at, until, recorded.nodes)
        at = until
    return rule, found, whole


def agree(rule, found, whole):
    """A least rate is about the nodes that are seen, maybe for the first time after what was discarded. And a part that
    begins later can violate it, where the whole, with a loss in it, leaves that open."""
    if "min" in rule.values and rule.kind == "rate":
        return not found or whole.verdict != "pass"
    return len(found) == (whole.verdict == "fail")


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"share"}))
@pytest.mark.parametrize("spare", [0, 1000])
def test_as_the_whole(grown, monkeypatch, kind, spare):
    """With no events to spare, what is not needed is discarded after each look."""
    monkeypatch.setattr(growing, "_SPARE", spare - 1)
    failed = 0
    for seed in range(TRACES):
        rule, found, whole = both(grown, kind, seed)
        if whole is None:
            continue
        places = [(place.time_ps, place.node) for place in whole.where if place.failed]
        assert agree(rule, found, whole), (seed, rule, found, whole)
        where = [(one.time_ps, one.node) for one in found]
        assert kind == "rate" or len(places) > 9 or set(where) <= set(places), (seed, rule, found, whole)
        failed += len(found)
    assert failed or kind == "together"


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"share"}))
def test_as_the_whole_in_many(grown, monkeypatch, kind):
    monkeypatch.setattr(growing, "_SPARE", -1)
    failed = 0
    for seed in range(1000, 1000 + 10 * TRACES):
        rule, found, whole = both(grown, kind, seed)
        assert whole is None or agree(rule, found, whole), (seed, rule, found, whole)
        failed += bool(found)
    assert failed


PERIOD = Rule("tick", "period", 1, {"event": event("a")}, (), True, {"every": 10, "tolerance": 1})


def test_the_first_violation_only(grown):
    own, items = grown(PERIOD), [(t, 0, "a", 0) for t in (10, 20, 33, 50)]
    assert not step(own, items, [], 0, 30, 2)
    assert [(one.rule, one.time_ps, one.node) for one in step(own, items, [], 30, 45, 2)] == [(PERIOD, 33, 0)]
    assert not step(own, items, [], 45, 60, 2)
    assert not own.watched


def test_a_loss_excuses(grown):
    own, items = grown(PERIOD), [(t, 0, "a", 0) for t in (10, 20, 40)]
    assert not step(own, items, [(0, 25, 35, 1)], 0, 60, 2)
    own.know(0, [59, 59], 0, [0, 0], 0)
    assert step(own, [(80, 0, "a", 0)], [(1, 61, 70, 1)], 60, 90, 2)


def test_an_overflow_excuses_more_than_it_counts(grown):
    """The packet does not say how many items the node lost."""
    for itm, violated in ((0, True), (1, False)):
        own = grown(PERIOD, itm=itm)
        found = step(own, [(t, 0, "a", 0) for t in (10, 20, 60)], [(0, 25, 55, 1)], 0, 70, 2)
        assert bool(found) == violated, itm


@pytest.mark.parametrize(("rejected", "discarded"), [([1, 0], 0), ([0, 0], 2)])
def test_what_was_kept_back_excuses(grown, rejected, discarded):
    own = grown(PERIOD)
    own.know(0, [-1, -1], 0, rejected, discarded)
    own.add(pa.table([[10, 30], [0, 0], ["a", "a"], [0, 0]], schema=SCHEMA))
    own.know(0, [60, 60], 0, rejected, discarded)
    assert not own.look()


def test_a_scope_is_judged_after_the_end(grown):
    own = grown(replace(PERIOD, scope=Scope(event("b"), ())))
    assert (len(own.watched), len(own.later)) == (0, 1)


def test_what_is_not_known_yet(grown):
    """An answer is missing only when all losses up to its time are known."""
    rule = Rule("answer", "response", 1, {"after": event("a"), "expect": event("b")}, (), False, {"max": 10})
    own, items = grown(rule), [(10, 0, "a", 0), (12, 1, "a", 0)]
    assert not step(own, items, [], 0, 20, 2)
    own.know(0, [25, 19], 0, [0, 0], 0)
    assert not own.look()
    own.know(0, [25, 25], 0, [0, 0], 0)
    assert [(one.time_ps, one.node) for one in own.look()] == [(10, 0)]


def test_forgotten(grown):
    """What a ring has overwritten is not known, and a rule about a fresh start has none."""
    rule = Rule("order", "order", 1, {"events": event("a") + event("b")}, (), True, {}, fresh_start=True)
    own = grown(rule)
    own.forget()
    own.know(100, [99, 99], 0, [0, 0], 0)
    own.add(pa.table([[110], [0], ["b"], [0]], schema=SCHEMA))
    own.know(100, [120, 120], 0, [0, 0], 0)
    assert not own.look()
    whole = grown(rule)
    assert step(whole, [(110, 0, "b", 0)], [], 0, 120, 2)


def test_many_events(grown, monkeypatch):
    """Of a rule that needs all that came before, the newest events are kept."""
    monkeypatch.setattr(growing, "_SPARE", 10)
    monkeypatch.setattr(growing, "_MOST", 100)
    rule = Rule("once", "order", 1, {"events": (Event("a"), Event("b"))}, ("k",), True, {})
    own = grown(rule)
    for turn in range(40):
        rows = [(20 * turn + k, 0, "ab"[k % 2], turn) for k in range(20)]
        assert not step(own, rows, [], 20 * turn, 20 * turn + 20, 2)
    assert own._trace.since[0][0] > 600
    assert step(own, [(800, 0, "a", 39), (801, 0, "a", 39)], [], 800, 820, 2)
