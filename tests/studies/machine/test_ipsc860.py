"""The iPSC/860: what the model makes, and that the analysis notices what is wrong with a recording."""

import struct
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypermon.studies.machine.analysis.freezes import sources
from hypermon.studies.machine.analysis.reading import BEGIN
from hypermon.studies.machine.core.network import ecube
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import ipsc860
from hypermon.studies.machine.machines.ipsc860 import EDGES_1, EDGES_2, Model, contended, machine, path
from hypermon.studies.machine.machines.refuted import stepwise
from hypermon.studies.machine.page.blind import drawn_ipsc860

from tests.studies.machine.dry import analysed, reading
from tests.studies.machine.foreign import SEND, Writer, echoes

FEW = (0, 10, 50, 100, 101, 400, 1000)


def ran(experiment, *paths, size=7000, count=31, **change):
    session = Session(machine(replace(Model(), **change), jitter_us=2), 16)
    for number in paths:
        contended(session, experiment, number, size, count=count)
    return session


def ratio(done, paths, column="ratio"):
    [row] = [row for row in done["ratios"] if row["paths"] == paths]
    return row[column]


def shared(pairs):
    """How many paths each edge has."""
    edges = [edge for pair in pairs for edge in ecube(*pair)]
    return {edge: edges.count(edge) for edge in edges if edges.count(edge) > 1}


def test_the_papers_paths_share_what_it_says():
    assert shared(EDGES_1) == {(7, 15): 4}
    assert shared(EDGES_2) == {(7, 15): 8, (3, 7): 4, (15, 31): 4, (1, 3): 2, (31, 63): 2, (5, 7): 2, (15, 47): 2}
    assert not any(shared([pair[::-1] for pair in pairs]) for pairs in (EDGES_1, EDGES_2))


def test_the_formula_is_found(monkeypatch):
    session = Session(machine(), 2)
    path(session, sizes=FEW, count=2)
    done = analysed(monkeypatch, "ipsc860", session)
    assert done["event_us"] == pytest.approx(0.35, abs=0.01)
    assert done["short"] == pytest.approx({"constant_us": 65, "byte_us": 0.425, "hop_us": 10}, rel=1e-3)
    assert done["long"] == pytest.approx({"constant_us": 147, "byte_us": 0.390, "hop_us": 30}, rel=1e-3)
    assert [row["us"] for row in done["zero"]] == pytest.approx([57 + 10 * hops for hops in range(1, 8)], abs=0.1)
    assert (done["left_out"], done["warnings"], done["early"]) == ([], [], 0)


@pytest.mark.parametrize("seed", range(1, 21))
def test_what_is_drawn_is_found(monkeypatch, seed):
    model, planted = drawn_ipsc860(Random(seed))
    session = Session(machine(model, seed=seed), 2)
    path(session, distances=(1, 3, 7), sizes=(10, 60, 100, 110, 600, 1000), count=1)
    path(session, distances=(1,), sizes=range(1100, 9201, 100), count=1)
    done = analysed(monkeypatch, "ipsc860", session)
    for form in ("short", "long"):
        for name in ("constant_us", "byte_us", "hop_us"):
            wanted = 3 * planted["planted_short_hop_us"] if (form, name) == ("long", "hop_us") else \
                planted[f"planted_{form}_{name}"]
            assert done[form][name] == pytest.approx(wanted, rel=0.005)
    assert done["plateau_bytes"] == pytest.approx(planted["planted_plateau_bytes"], abs=50)


def test_eight_paths_take_more_than_seven_times(monkeypatch):
    done = analysed(monkeypatch, "ipsc860", ran("edges-2", 1, 8))
    assert 7.0 < ratio(done, 8, "with_echo") < 7.3 < ratio(done, 8) < 7.6
    assert ratio(done, 1) == 1


@pytest.mark.parametrize(("share", "most"), [(0.0, 1.5), (0.5, 3.4), (1.0, 5.2)])
def test_the_share_decides_about_short_messages(monkeypatch, share, most):
    done = analysed(monkeypatch, "ipsc860", ran("edges-2", 1, 8, size=0, share=share))
    assert most - 0.3 < ratio(done, 8) < most


def test_edges_taken_one_by_one_are_refuted():
    assert stepwise(EDGES_2[:1], 7000) == 1
    assert 17 < stepwise(EDGES_2, 7000) < 22


def test_synchronized_paths_take_as_long(monkeypatch):
    free, bound = (analysed(monkeypatch, "ipsc860", ran(name, 1, 8)) for name in ("edges-2", "edges-3"))
    assert ratio(bound, 8, "period_us") == pytest.approx(ratio(free, 8, "period_us"), rel=0.05)
    # Of those that begin together the first is served at once: one message says little, the exchange as a whole does.
    assert ratio(bound, 8) < 0.8 * ratio(free, 8)


def test_nodes_are_no_resource(monkeypatch):
    done = analysed(monkeypatch, "ipsc860", ran("nodes", 1, 4))
    assert ratio(done, 4) == pytest.approx(1, abs=0.002)


def test_software_outside_the_circuit_is_not_lost():
    for ends in (True, False):
        for share in (0.0, 0.5, 1.0):
            legs = replace(Model(), ends=ends, share=share).legs(500)
            assert sum(leg.hold + leg.before + leg.after for leg in legs) == pytest.approx(147 + 0.39 * 500)
            assert [leg.back for leg in legs] == [False, True, False]


def test_stamps_of_a_node_that_are_late_are_noticed(monkeypatch):
    session = Session(machine(), 2)
    path(session, distances=(1, 7), sizes=FEW, count=2)
    done = analysed(monkeypatch, "ipsc860", session, late=((1, 1.0),))
    assert [row["us"] for row in done["asymmetry_us"]] == pytest.approx([1, 1], abs=0.02)
    assert any("longer than back" in text for text in done["warnings"])
    early = analysed(monkeypatch, "ipsc860", session, late=((1, -300.0),))
    assert early["least_us"] < 0 < early["early"]
    assert any("before they were sent" in text for text in early["warnings"])


def test_what_a_loss_covers_is_not_reported(monkeypatch):
    session = ran("edges-2", 1, 2, 4)
    whole = analysed(monkeypatch, "ipsc860", session)
    assert {row["paths"] for row in whole["ratios"]} == {1, 2, 4}
    # Port 4 begins with the four paths: a loss of its begin hides how many there are.
    first = session.recorders[4].times[0]
    done = analysed(monkeypatch, "ipsc860", session, losses=((4, first - 1, first + 1000),))
    assert done["lost"] > 0
    assert {row["paths"] for row in done["ratios"]} == {1, 2}
    assert any("ratio" in text for text in done["left_out"])
    assert any("left out" in text for text in done["warnings"])


def test_a_port_whose_begin_may_be_lost_is_nobody_s():
    session = Session(machine(), 2)
    path(session, distances=(1, 3), sizes=(10, 20), count=2)
    begins = [at for at, record in zip(session.recorders[1].times, session.recorders[1].records, strict=True)
              if record[0] == BEGIN]
    seen = reading(session, losses=((1, begins[1] - 5, begins[1] + 5),))
    late = (seen.port == 1) & (seen.us > begins[1])
    assert late.any()
    assert set(seen.node[late]) == {-1}
    assert set(seen.node[(seen.port == 1) & ~late]) == {-1, 1}


def test_events_that_are_missing_are_noticed(monkeypatch):
    session = Session(machine(), 2)
    path(session, distances=(1, 3, 7), sizes=FEW, count=4)
    random = np.random.default_rng(1)
    done = analysed(monkeypatch, "ipsc860", session, keep=lambda port, us: random.random(len(us)) > 0.01)
    assert done["left_out"]
    assert done["short"]["constant_us"] == pytest.approx(65, abs=0.5)
    assert all(row["us"] < 200 for row in done["zero"])


def test_sums_of_freezes_are_parted():
    at = np.array([1.0, 11, 21, 31, 41, 51, 3, 18, 33, 48])
    long = np.array([16.0, 16, 16, 16, 16, 16, 7, 7, 7, 7])
    # At 31 s the one of 7 ms came with it.
    long[3] += 7
    found = sources(at, long, 60, np.empty((0, 2)))
    assert [(round(one.period_s, 1), round(one.duration_ms, 2)) for one in found if one.period_s] == [(10, 16)] or \
        (10, 16) in [(round(one.period_s), round(one.duration_ms)) for one in found if one.period_s]


def test_numbers_are_the_fixed_ones():
    assert ipsc860.NUMBER == 1
    assert ipsc860.EXPERIMENTS == {"path": 1, "edges-1": 2, "edges-2": 3, "edges-3": 4, "nodes": 5}


class _Pausing(Writer):
    """A program that pauses before each answer, and whose events each cost the same, or also their bytes."""

    def __init__(self, pause_us, fixed_us, gap_us, *, long_marks):
        super().__init__(2, 8, gap_us, fixed_us)
        self.long_marks, self._pause_us = long_marks, pause_us
        self.recorders = [SimpleNamespace(times=[], records=[]) for _ in range(2)]

    def event(self, port, event, form="", *fields, drop=False):
        if event == SEND and port == 1:
            self.us[port] += self._pause_us
        stamp = super().event(port, event, form, *fields, drop=drop)
        self.recorders[port].times.append(stamp)
        self.recorders[port].records.append(bytes([event]) + struct.pack("<" + form, *fields))
        return stamp


@pytest.mark.parametrize("pause_us", [0.0, 0.4, 3.0, 5.0, 40.0])
@pytest.mark.parametrize(("fixed_us", "gap_us", "long_marks"), [(2.0, 0.0, False), (2.0, 0.0, True), (0.5, 0.1, True)])
def test_a_pause_before_each_answer_is_no_cost_of_an_event(monkeypatch, pause_us, fixed_us, gap_us, long_marks):
    """The cost comes from the marks alone: of one size if it does not depend on the length, else of two sizes."""
    writer = _Pausing(pause_us, fixed_us, gap_us, long_marks=long_marks)
    echoes(writer, (70.0, 0.5, 12.0), (150.0, 0.35, 28.0))
    done = analysed(monkeypatch, "ipsc860", writer)
    assert done["short"]["constant_us"] == pytest.approx(70.0, abs=0.05)
    assert done["long"]["constant_us"] == pytest.approx(150.0, abs=0.05)
    assert done["cost"]["event_us"] == pytest.approx(fixed_us + 3 * gap_us, abs=0.01)
    assert done["cost"]["byte_us"] == (pytest.approx(gap_us, abs=0.002) if long_marks else None)
    assert ("two sizes" in done["cost"]["from"]) == long_marks


def test_without_marks_the_cost_is_not_known(monkeypatch):
    writer = _Pausing(0.0, 2.0, 0.0, long_marks=False)
    writer.begin = lambda port, *fields, marks: Writer.begin(writer, port, *fields, marks=False)
    echoes(writer, (70.0, 0.5, 12.0), (150.0, 0.35, 28.0))
    done = analysed(monkeypatch, "ipsc860", writer)
    assert done["cost"] == {"event_us": None, "byte_us": None, "from": done["cost"]["from"]}
    assert done["cost"]["from"].startswith("no marks")
    assert done["short"]["constant_us"] == pytest.approx(72.0, abs=0.05)
