"""Recordings in which something is missing: an analysis says so, and never fails."""

import ast
import importlib
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypermon.studies.machine.analysis import reading as reading_of
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import qsnet, sp2
from hypermon.studies.machine.machines.commands import _EXPERIMENTS, Wish
from hypermon.studies.machine.page import page as whole_page

from tests.studies.machine.dry import SYSTEMS, analysed, reading

WISHES = {"asciq": Wish(count=60), "sp2": Wish(count=3), "ipsc860": Wish(count=1, size=500),
          "qsnet": Wish(count=1, size=64)}
ALL = [(machine, experiment) for machine, own in _EXPERIMENTS.items() for experiment in own]
IDS = (0x01, 0x10, 0x11, 0x12, 0x13, 0x18, 0x19, 0x20, 0x28, 0x29)


@pytest.mark.parametrize(("machine", "experiment"), ALL)
def test_no_kind_of_event_is_needed(monkeypatch, machine, experiment):
    session = _EXPERIMENTS[machine][experiment](experiment, WISHES[machine])
    ids = np.array([record[0] for one in session.recorders for record in one.records])
    whole = analysed(monkeypatch, machine, session)
    assert whole["left_out"] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for event in IDS:
            done = analysed(monkeypatch, machine, session, keep=lambda port, us, event=event: ids != event)
            json.dumps(done, allow_nan=False)
            SYSTEMS[machine].curves(None)
        done = analysed(monkeypatch, machine, session, keep=lambda port, us: ids <= 3)
    assert any("no event is one of" in text for text in done["left_out"])
    assert any("left out" in text for text in done["warnings"])


def test_an_unknown_experiment_is_said(monkeypatch):
    monkeypatch.setitem(qsnet.EXPERIMENTS, "hotspot", 77)
    session = _EXPERIMENTS["qsnet"]["hotspot"]("hotspot", Wish(nodes=2, count=1))
    done = analysed(monkeypatch, "qsnet", session)
    assert "a program of node 1: experiment 77 is none of qsnet's, which are 1, 2, 3" in done["left_out"]
    assert any(text.startswith("0 items were lost; ") for text in done["warnings"])


@pytest.mark.parametrize("nodes", [3, 5, 31])
def test_an_odd_number_of_nodes(monkeypatch, nodes):
    session = Session(sp2.machine(seed=2), nodes)
    sp2.all_to_all(session, nodes, count=2)
    [row] = analysed(monkeypatch, "sp2", session)["all_to_all"]
    assert (row["nodes"], row["count"]) == (nodes, 2)


def test_a_port_that_began_in_another_machine_is_left_alone(monkeypatch):
    session = _EXPERIMENTS["sp2"]["exchange"]("exchange", Wish(count=100))
    programs = reading(session).programs
    assert {program.machine for program in programs} == {3}
    done = analysed(monkeypatch, "asciq", session)
    assert done["nodes"] == []
    assert done["bsp"] == []


@pytest.mark.parametrize(("name", "parts"), [
    ("ipsc860", "reading ipsc860"), ("asciq", "reading asciq freezes"), ("sp2", "reading sp2 trains"),
    ("qsnet", "reading qsnet")])
def test_every_limit_of_an_analysis_is_in_its_figures(monkeypatch, name, parts):
    """Each number in capitals is a limit, which the page explains, or is none of those here."""
    ids = {"_PATH", "_EXCHANGE", "_ALL", "_PING", "_BOTH", "_HOTSPOT", "_GSYNC", "_SEND", "_SENT", "_RECEIVE",
           "_RECEIVED", "_ARRIVE", "_LEAVE", "_QUANTUM", "_READY", "_MARK_BYTES", "_PADDING", "_PS_PER_US"}
    drawn = {"_SHOWN", "_SERIES", "_RESAMPLED", "_BIN_US"}
    experiment = next(iter(_EXPERIMENTS[name]))
    stated = analysed(monkeypatch, name, _EXPERIMENTS[name][experiment](experiment, WISHES[name]))["thresholds"]
    page = Path(whole_page.__file__).with_name("page.md").read_text("utf-8")
    for part in parts.split():
        module = importlib.import_module(f"hypermon.studies.machine.analysis.{part}")
        for constant, value in vars(module).items():
            if re.fullmatch("_[A-Z_]+", constant) and type(value) in (int, float) and constant not in ids | drawn:
                if (part, constant) == ("sp2", "_STEP"):    # an event
                    continue
                assert stated[constant[1:].lower()] == value
    assert all(f"`{limit}`" in page for limit in stated)


#: Numbers within functions that are no limits: units, roots, masks, widths of fields, and how texts and
#: keys are made.
_PLAIN = {0, 0.5, 1, 2, 3, 1000, 1e6, 24, 0xff, 0xffffff}
_OTHERS = {"messages": {4, 5, 10, 20, 40}, "reading": {8, 16, 32, 62, 64}}


def test_no_limit_is_within_a_function():
    """Limits have names, by which the test above finds them."""
    for path in Path(reading_of.__file__).parent.glob("*.py"):
        within = {node.value for function in ast.walk(ast.parse(path.read_text("utf-8")))
                  if isinstance(function, ast.FunctionDef) for node in ast.walk(function)
                  if isinstance(node, ast.Constant) and type(node.value) in (int, float)}
        assert within - _PLAIN - _OTHERS.get(path.stem, set()) == set(), path.name
