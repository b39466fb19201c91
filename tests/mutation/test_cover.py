"""Reports of coverage: points by room, places that no design contains, and branches of the host."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import cover
from cover import Point

STAGE = """
def elaborate(self, platform):
    m = Module()
    m.d.comb += self.a.eq(1)
    with m.If(self.a):
        m.d.sync += self.b.eq(1)
        m.d[self.domain] += self.b.eq(1)
    with m.FSM():
        with m.State("IDLE"):
            m.next = "DONE"
    count += 1
    with self.lock:
        pass
"""


def test_places():
    assert sorted(cover.places(STAGE)) == [(4, "line"), (5, "branch"), (6, "line"), (7, "line"), (9, "state")]


def test_a_point_is_reached_in_any_design(tmp_path):
    key = "gate/drop_gate.py/73/toggle/x__05Fy__02412[1]:0->1"
    (tmp_path / "one.json").write_text(json.dumps({key: False, "top.py/3/state/IDLE": True}))
    (tmp_path / "two.json").write_text(json.dumps({key: True}))
    reached = cover.points(tmp_path)
    assert reached[Point("gate/drop_gate.py", 73, "toggle", "x_y[1]:0->1")]
    assert Point("top.py", 3, "state", "IDLE").room == "tops"
    missing = [point for point, value in reached.items() if not value]
    assert {point.detail for point in missing} == {"in no design"}
    assert any(point.file == "gate/drop_gate.py" and point.heading == "lines" for point in missing)


def test_report():
    reached = {Point("top.py", 1, "toggle", "x:0->1"): True, Point("top.py", 1, "toggle", "y:0->1"): False,
               Point("gate/drop_gate.py", 3, "state", "A"): False, Point("gate/drop_gate.py", 1, "line"): True,
               Point("gate/drop_gate.py", 2, "branch", "If"): False}
    lines = cover.report(reached).split("\n")
    assert lines[0] == "| room of `hdl/` | lines | branches | states | resets in states | toggles |"
    assert lines[2:5] == ["| gate | 1 of 1 | 0 of 1 | 0 of 1 |  |  |", "| tops |  |  |  |  | 1 of 2 |",
                          "| all | 1 of 1 | 0 of 1 | 0 of 1 |  | 1 of 2 |"]
    assert lines[6:] == ["not reached: hdl/gate/drop_gate.py:2 branch If",
                         "not reached: hdl/gate/drop_gate.py:3 state A"]
    assert cover.report(reached, toggles=True).split("\n")[8:] == ["not reached: hdl/top.py:1 toggle y:0->1"]


def test_branches():
    summary = {"covered_lines": 3, "num_statements": 4, "covered_branches": 1, "num_branches": 4}
    files = {"host/web/a.py": {"summary": summary}, "host/web/b.py": {"summary": summary},
             "host/c.py": {"summary": summary | {"num_branches": 0, "covered_branches": 0}}}
    assert cover.branches(files).split("\n")[2:] == [
        "| host | 3 of 4 | 0 of 0 |  |", "| host/web | 6 of 8 | 2 of 8 | 25.0 |", "| all | 9 of 12 | 2 of 8 | 25.0 |"]


@pytest.mark.parametrize(("what", "test", "room"), [
    ("gateware", "tests/hdl/trigger/test_trigger_out.py", "trigger"),
    ("host", "tests/host/text/test_numbers.py", "host/text")])
def test_tests_are_measured(tmp_path, monkeypatch, capsys, what, test, room):
    """In pytest's workers: what one test reaches is in the table."""
    monkeypatch.setattr(cover, "FOLDER", tmp_path)
    assert cover.main([what, test]) == 0
    [row] = [line for line in capsys.readouterr().out.split("\n") if line.startswith(f"| {room} |")]
    assert int(row.split("|")[2].split()[0]) > 0


@pytest.mark.parametrize("kind", cover.KINDS)
def test_every_kind_has_a_heading(kind):
    assert Point.of(f"a.py/1/{kind}/x").heading in cover.HEADINGS
