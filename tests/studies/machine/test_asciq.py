"""ASCI Q: its noise is found, and does to collective operations what the paper's table says."""

import json
from random import Random

import numpy as np
import pytest
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import asciq
from hypermon.studies.machine.page.blind import drawn_asciq

from tests.studies.machine.dry import analysed


def close(found, wanted):
    return [one for one in wanted if not any(
        other["node"] == one["node"] and other["period_s"] and abs(other["period_s"] / one["period_s"] - 1) <= 0.01
        and abs(other["duration_ms"] - one["duration_ms"]) <= 0.1 for other in found)]


def table(*nodes):
    return [{"node": node, "period_s": source.period_s, "duration_ms": source.duration_ms} for node in nodes
            for source in asciq.Daemons().sources(node)]


def quanta(noise=None, nodes=(0, 1, 5, 31), seed=3, slower=None):
    session = Session(asciq.machine(32, noise=noise, seed=seed, slower=slower), len(nodes))
    asciq.quantum(session, nodes=nodes, each=50)
    return session


def test_table_2_1_is_found(monkeypatch):
    done = analysed(monkeypatch, "asciq", quanta(slower={5: 1.25}))
    assert close(done["sources"], table(0, 1, 5, 31)) == []
    assert len(done["sources"]) == len(table(0, 1, 5, 31))
    assert [row["node"] for row in done["slow_nodes"]] == [5]
    assert done["slow_nodes"][0]["quantum_us"] == pytest.approx(1250, rel=1e-3)
    assert done["quantum_us"] == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize("seed", range(1, 21))
def test_what_is_drawn_is_found(monkeypatch, seed):
    noise, slower, planted = drawn_asciq(Random(seed))
    done = analysed(monkeypatch, "asciq", quanta(noise, (0, 1, 31, *slower), seed, slower))
    assert close(done["sources"], planted) == []
    assert len(done["sources"]) == len(planted), json.dumps(done["sources"])
    assert {row["node"] for row in done["slow_nodes"]} == set(slower)


def test_a_sum_that_always_comes_is_parted_by_other_nodes(monkeypatch):
    # 24 s is a multiple of 1 s: on node 31 both always meet if they meet once.
    phases = {asciq.ALL: (asciq.Source(24, 16, phase=0.5), asciq.Source(42, 19, phase=0.31)),
              31: (asciq.Source(1, 7, phase=0.002),)}
    done = analysed(monkeypatch, "asciq", quanta(asciq.Daemons(phases), (2, 5, 31)))
    assert sorted(round(row["duration_ms"], 1) for row in done["sources"] if row["node"] == 31) == [7, 16, 19]


def test_a_loss_is_no_freeze(monkeypatch):
    session = quanta()
    times = session.recorders[2].times
    losses = ((2, times[5000], times[5040]),)
    done = analysed(monkeypatch, "asciq", session, losses=losses)
    assert close(done["sources"], table(0, 1, 5, 31)) == []
    assert max(row["duration_ms"] for row in done["sources"] if row["node"] == 5) < 20
    assert done["left_out"] == ["1 gaps of node 5"]


def test_missing_events_are_counted(monkeypatch):
    random = np.random.default_rng(1)
    done = analysed(monkeypatch, "asciq", quanta(nodes=(5,)), keep=lambda port, us: (random.random(len(us)) > 0.01)
                    | (us < 2000))
    assert 40 < done["missing"] < 120
    assert any("missing by their numbers" in text for text in done["warnings"])
    assert close(done["sources"], table(5)) == []


def latency(monkeypatch, us, seconds, rule="timeline", drop=(), seed=1):
    session = Session(asciq.machine(noise=asciq.without(*drop), rule=rule, seed=seed), 4)
    asciq.bsp(session, us=us, seconds=seconds)
    [row] = analysed(monkeypatch, "asciq", session)["bsp"]
    assert (row["nodes"], row["compute_us"], row["kind"]) == (1024, us, "allreduce")
    return row["latency_ms"]


def test_rules_are_in_order(monkeypatch):
    absorbed, timeline, deferred = (latency(monkeypatch, 5000, 60, rule) for rule in ("absorb", "timeline", "defer"))
    assert absorbed < 14 < timeline < 21 < deferred


def test_the_background_makes_most_of_it(monkeypatch):
    whole = latency(monkeypatch, 5000, 60)
    parts = {drop: latency(monkeypatch, 5000, 60, drop=drop) for drop in ((0,), (31,), (0, 1, 31), (asciq.ALL,))}
    assert whole == pytest.approx(18.76, rel=0.1)
    assert parts[asciq.ALL,] < parts[0, 1, 31] < min(parts[0,], parts[31,]) < whole


def test_operations_that_a_loss_covers_are_left_out(monkeypatch):
    session = Session(asciq.machine(seed=1), 4)
    asciq.bsp(session, us=5000, seconds=20)
    times = session.recorders[0].times
    losses = ((0, times[-400], times[-300]),)
    done = analysed(monkeypatch, "asciq", session, losses=losses)
    assert done["left_out"] == ["1 operations of node 0, 5000 us of computation"]
    [row] = done["bsp"]
    assert row["missing"] == 0
    assert 10 < row["latency_ms"] < 25
