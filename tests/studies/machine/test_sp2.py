"""The SP2: pairs, interruptions, all-to-all communication, and the resampled one."""

from random import Random

import numpy as np
import pytest
from hypermon.studies.machine.analysis.sp2 import resampled
from hypermon.studies.machine.core.noise import Quiet
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import sp2
from hypermon.studies.machine.page.blind import drawn_sp2

from tests.studies.machine.dry import analysed


def test_figure_1_is_made_by_figure_2():
    steps = [{tuple(sorted((node, sp2.partner(node, step, 6)))) for node in range(6)} for step in range(5)]
    assert steps[0] == {(0, 5), (1, 4), (2, 3)}
    assert steps[3] == {(3, 5), (2, 4), (0, 1)}


@pytest.mark.parametrize("nodes", range(2, 33))
def test_all_pairs_exchange_once(nodes):
    pairs = []
    for step in range(nodes - 1 + nodes % 2):
        own = {node: sp2.partner(node, step, nodes) for node in range(nodes)}
        assert all(peer is None or own[peer] == node for node, peer in own.items())
        pairs += [(node, peer) for node, peer in own.items() if peer is not None and node < peer]
    assert sorted(pairs) == [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]


def exchanges(system, count=6000, ports=2, seed=1, **more):
    session = Session(sp2.machine(system, seed=seed), ports)
    sp2.exchange(session, count=count, **more)
    return session


def test_exchanges_and_their_interruptions(monkeypatch):
    done = analysed(monkeypatch, "sp2", exchanges(None))
    assert done["exchange"]["mean_us"] == pytest.approx(173, rel=0.01)
    assert done["exchange"]["floor_us"] == pytest.approx(sp2.FLOOR_US, abs=0.05)
    assert done["exchange"]["skew"] > 5
    assert any(abs(period / 6025 - 1) < 0.01 for period in done["periods_us"])
    assert any(abs(period / 10_000 - 1) < 0.01 for period in done["periods_us"])


def test_without_noise_nothing_is_found(monkeypatch):
    done = analysed(monkeypatch, "sp2", exchanges(Quiet(), 500, us=4500.0))
    assert done["exchange"]["sd_us"] < 0.05
    assert done["periods_us"] == []


@pytest.mark.parametrize("seed", range(1, 21))
def test_what_is_drawn_is_found(monkeypatch, seed):
    system, planted = drawn_sp2(Random(seed))
    done = analysed(monkeypatch, "sp2", exchanges(system, 3000, 1, seed))
    for wanted in planted.values():
        assert any(abs(period / wanted - 1) < 0.01 for period in done["periods_us"])


def spread(monkeypatch, system, *nodes, count=30, **how):
    session = Session(sp2.machine(system, seed=2), max(nodes))
    for number in nodes:
        sp2.all_to_all(session, number, count=count)
    return analysed(monkeypatch, "sp2", session, **how)


def test_stalls_cost_more_with_more_nodes(monkeypatch):
    two, many = spread(monkeypatch, None, 2, 16)["all_to_all"]
    assert (two["nodes"], many["nodes"], two["count"]) == (2, 16, 30)
    assert 0.01 < 1 - many["mb_per_s"] / two["mb_per_s"] < 0.05
    assert two["idle_us"] == 0 < many["idle_us"] < many["idle_max_us"]
    assert many["idle_zero"] < two["idle_zero"]


def test_nobody_is_idle_without_noise(monkeypatch):
    for nodes in (4, 5):
        [row] = spread(monkeypatch, Quiet(), nodes, count=3)["all_to_all"]
        if nodes % 2 == 0:
            assert row["idle_us"] == pytest.approx(0, abs=0.1)
            assert row["mb_per_s"] == pytest.approx(1e6 / sp2.LARGE_US, rel=1e-4)


def test_missing_exchanges_are_left_out(monkeypatch):
    random = np.random.default_rng(1)
    done = spread(monkeypatch, None, 4, count=40, keep=lambda port, us: random.random(len(us)) > 0.01)
    assert any("exchanges of node" in text for text in done["left_out"])
    assert done["all_to_all"][0]["mb_per_s"] == pytest.approx(40.5, rel=0.02)


def test_resampling_without_deviation_is_exact():
    total, idle = resampled(np.array([10.0]), 8, 5, 1)
    assert total.tolist() == [70.0] * 5
    assert idle.tolist() == [0.0] * 5
    total, idle = resampled(np.array([10.0, 20.0]), 32, 50, 1)
    assert total.mean() > 15 * 31
    assert idle.mean() > 0
