"""The drawing of mutants: the same every time, each one another text, and none of another file's business."""

import ast
import json
import sys
from pathlib import Path

import pytest
from hypermon.hdl import layout

sys.path.insert(0, str(Path(__file__).parent))
import handwritten
from mutants import shares, shuffled, sites, stages

HDL = Path(layout.__file__).parent
TEXT = '''"""A stage."""


class Stage:
    def __init__(self):
        self.depth = 4 + 1

    def elaborate(self, platform):
        m = Module()
        count = Signal(4, init=1)
        with m.If(self.i & ~self.o):
            m.d.sync += [count.eq(count + 1), self.a.eq(Mux(count == 7, self.b, self.c))]
        m.d.comb += self.full.eq(count < self.depth)
        return m
'''
EXPECTED = [
    "10: 1 -> 0", "11: self.i & ~self.o -> (self.i & ~self.o) == 0", "11: & -> |", "11: ~ -> nothing",
    "12: count.eq(count + 1) -> *()", "12: + -> -", "12: 1 -> 2",
    "12: self.a.eq(Mux(count == 7, self.b, self.c)) -> *()",
    "12: == -> !=", "12: 7 -> 8", "12: self.b, self.c -> self.c, self.b", "13: self.full.eq(count < self.depth) -> []",
    "13: < -> <=",
]


@pytest.fixture(scope="module")
def texts():
    return {name: (HDL / name).read_text() for name in stages(HDL)}


@pytest.fixture(scope="module")
def drawn(texts):
    return {name: shuffled(name, text, 1) for name, text in texts.items()}


def test_places():
    assert [str(m).removeprefix("stage.py:") for m in sites("stage.py", TEXT)] == EXPECTED


def test_widths():
    """A wider memory and a longer slice are found, as all numbers are, but not drawn."""
    text = "def elaborate(m):\n    m.fifo = SmallFifo(8, 3)\n    m.d.comb += m.o.eq(m.i[:4] + 2)\n"
    assert [(m.old, m.widens) for m in sites("stage.py", text) if m.old.isdigit()] == [
        ("8", True), ("3", False), ("4", True), ("2", False)]
    assert sorted(m.old for m in shuffled("stage.py", text, 1) if m.old.isdigit()) == ["2", "3"]


def test_states():
    text = ('def elaborate(m):\n    with m.State("ONE"):\n        m.next = "TWO"\n'
            '    with m.State("TWO"):\n        m.next = "ONE"\n')
    assert [m.new for m in sites("stage.py", text)] == ['"ONE"', '"TWO"']


def test_each_changes_its_piece_alone(texts, drawn):
    for name, text in texts.items():
        for mutant in drawn[name][:2]:
            changed = mutant.applied(text)
            assert changed != text
            ast.parse(changed)
            assert changed[:mutant.start] == text[:mutant.start]
            assert changed.removeprefix(text[:mutant.start] + mutant.new) == text[mutant.end:]


def test_the_same_every_time(texts):
    text = texts["gate.py"]
    first = shuffled("gate.py", text, 1)
    assert first == shuffled("gate.py", text, 1)
    assert first != shuffled("gate.py", text, 2)
    assert len({m.key for m in first}) == len(first)


def test_lines_that_move_keep_their_keys():
    moved = TEXT.replace('"""A stage."""', '"""A stage.\n\nOf three lines."""')
    assert [m.key for m in sites("s.py", moved)] == [m.key for m in sites("s.py", TEXT)]
    changed = TEXT.replace("count < self.depth", "count < self.deep")
    assert [m.key for m in sites("s.py", changed)][:-2] == [m.key for m in sites("s.py", TEXT)][:-2]


def test_shares(drawn):
    numbers = {name: len(found) for name, found in drawn.items()}
    given = shares(numbers, 300)
    assert 300 <= sum(given.values()) < 330
    assert all(given[name] >= min(3, number) for name, number in numbers.items())
    # What a file is drawn of is its own affair: another one that grows takes no mutant of it but the last.
    more = shares(numbers | {"trigger.py": numbers["trigger.py"] + 30}, 300)
    assert all(abs(more[name] - given[name]) <= 2 for name in given if name != "trigger.py")


def test_all_stages_of_the_capture_path(texts):
    assert {"synchronizer.py", "gate.py", "trigger.py", "blocker.py", "vertical.py"} <= texts.keys()
    assert not {"layout.py", "top.py", "usb.py", "uart.py"} & texts.keys()


HANDWRITTEN = handwritten.mutants()


def test_handwritten_ones_are_many_and_different():
    assert sum(m.folder == "hdl" for m in HANDWRITTEN) >= 60
    assert sum(m.folder == "host" for m in HANDWRITTEN) >= 10
    assert len({m.name for m in HANDWRITTEN}) == len({(m.path, m.old, m.new) for m in HANDWRITTEN}) == len(HANDWRITTEN)


@pytest.mark.parametrize("mutant", HANDWRITTEN, ids=lambda m: m.name)
def test_handwritten_ones_still_apply(mutant):
    """Each changes the source that it is for, into Python, and names tests that `make test` runs."""
    text = (Path(__file__).parents[2] / mutant.path).read_text()
    changed = mutant.applied(text)
    assert changed != text
    ast.parse(changed)
    assert mutant.why
    assert mutant.test_files
    for name in mutant.test_files:
        assert (Path(__file__).parents[2] / name).exists()
        assert "formal" not in name


def test_a_handwritten_one_that_has_rotted_is_named():
    rotten = handwritten.Handwritten("a carry", "gate.py", "self.carry", "0", "why", "tests/hdl/test_gate.py")
    with pytest.raises(ValueError, match=r"a carry: hdl/gate.py has 'self.carry' 0 times, not once"):
        rotten.applied("self.barred")


def test_handwritten_report(capsys, monkeypatch, tmp_path):
    """What has not been tried is to do, and the exit status says that not all are killed."""
    monkeypatch.setattr(handwritten, "_journal_folder", lambda: tmp_path)
    assert handwritten.main(["--report", "--only", "third carry late"]) == 1
    assert "| third carry late | to do |  |" in capsys.readouterr().out
    key = next(m.key() for m in HANDWRITTEN if m.name == "third carry late")
    row = {"name": "third carry late", "key": key, "verdict": "killed", "by": "tests/x.py::y"}
    (tmp_path / "handwritten.jsonl").write_text(json.dumps(row) + "\n")
    assert handwritten.main(["--report", "--only", "third carry late"]) == 0
    assert "1 of 1 killed" in capsys.readouterr().out
