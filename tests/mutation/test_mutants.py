"""The drawing of mutants: the same every time, each one another text, and none of another file's business."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypermon.hdl import layout

sys.path.insert(0, str(Path(__file__).parent))
import handwritten
import steps
from host_mutants import HostFinder, function_of
from mutants import shares, shuffled, sites, source, stages

HDL = Path(layout.__file__).parents[1]
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
    return {name: source(HDL, name).read_text() for name in stages(HDL)}


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
    text = texts["drop_gate.py"]
    first = shuffled("drop_gate.py", text, 1)
    assert first == shuffled("drop_gate.py", text, 1)
    assert first != shuffled("drop_gate.py", text, 2)
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
    assert {"strobe_synchronizer.py", "drop_gate.py", "trigger.py", "blocker.py", "bit_sliced.py"} <= texts.keys()
    assert not {"layout.py", "top.py", "link.py", "line.py"} & texts.keys()


# ------------------------------------------------------------------------------------------- the host

ROOT = Path(__file__).parents[2]
HOST_TEXT = '''"""A module."""
SIZE = 4 + 1


class Ring:
    """\u00b5s."""

    @wrapped(7)
    def take(self, at: int | None = None) -> bool:
        """Takes one."""
        self.at = -at  # 1 + 1
        if not self.full and at is not None:
            raise ValueError(f"{at + 1} is taken")
        while low <= at < 5:
            at += 1
            break
        time.sleep(3)
        print("\u00b5", len(at) % 2, flush=True)
        return at in [x for x in self.all if x > at]

    def two(self):
        def inner():
            return False
        return inner
'''
HOST_EXPECTED = [
    "11: self.at = -at -> pass", "11: - -> nothing", "12: not -> nothing",
    "12: not self.full and at is not None -> (not (not self.full and at is not None))", "12: and -> or",
    "12: is not -> is",
    '13: raise ValueError(f"{at + 1} is taken") -> pass', "14: low <= at < 5 -> (not (low <= at < 5))", "14: <= -> <",
    "14: < -> <=", "14: 5 -> 6", "15: at += 1 -> pass", "15: 1 -> 2", "16: break -> pass",
    "17: time.sleep(3) -> pass", '18: print("\u00b5", len(at) % 2, flush=True) -> pass', "18: % -> //", "18: 2 -> 3",
    "19: at in [x for x in self.all if x > at] -> None", "19: in -> not in", "19: x > at -> (not (x > at))",
    "19: > -> >=", "23: False -> True", "24: inner -> None",
]


def test_places_of_the_host():
    """Nothing outside functions, no message, no annotation, no decorator, no time to wait, no style."""
    found = sites("ring.py", HOST_TEXT, HostFinder)
    assert [str(m).removeprefix("ring.py:") for m in found] == HOST_EXPECTED
    for mutant in found:
        ast.parse(mutant.applied(HOST_TEXT))


def test_functions_by_line():
    assert [function_of(HOST_TEXT, line) for line in (2, 9, 19, 21, 23, 24)] == [
        "<module>", "Ring.take", "Ring.take", "Ring.two", "Ring.two.<locals>.inner", "Ring.two"]


@pytest.fixture(scope="module")
def host():
    """The subject of the campaign, with measurements that are made up."""
    from host_campaign import Host
    from host_tree import Reach

    subject = Host()
    subject.__dict__["reach"] = reach = Reach()
    reach._add({"ran": {"t/test_a.py::fast": [1, True], "t/test_a.py::slow": [14.5, True],
                        "t/test_a.py::fails": [0, False], "t/test_b.py::slowest": [40, True],
                        "tests/host/blocks/test_sequence.py::far": [2, True]},
                "calls": {"blocks/sequence.py": {"Sequence.ahead": ["t/test_a.py::slow", "t/test_a.py::fails",
                                                              "t/test_b.py::slowest"],
                                          "Sequence.take": ["t/test_a.py::fast"]}}})
    return subject


def test_all_files_of_the_host_are_broken(host):
    names = host.files()
    assert {"decode/ledger.py", "record/recorder.py", "web/program.py"} <= set(names)
    assert not any(name.startswith("sigrok/") for name in names)
    numbers = {n: len(shuffled(n, (host.folder / n).read_text(), 1, HostFinder)) for n in names}
    given = shares(numbers, 300, host.least)
    assert 300 <= sum(given.values()) < 330
    assert all(given[name] for name, number in numbers.items() if number)


@pytest.mark.parametrize(("function", "steps"), [
    ("ahead", ["t/test_a.py::slow", "t/test_b.py::slowest",
               "t/test_a.py::fast tests/host/blocks/test_sequence.py::far"]),
    ("take", ["t/test_a.py::fast", "tests/host/blocks/test_sequence.py::far t/test_a.py::slow"]),
    # Nobody calls it: those that call anything of the file.
    ("missed", ["t/test_a.py::fast", "t/test_a.py::slow t/test_b.py::slowest",
                "tests/host/blocks/test_sequence.py::far"]),
])
def test_which_tests_a_mutant_meets(host, function, steps):
    """The fastest that call its function, the others that do, then more of their files and of its name."""
    text = (host.folder / "blocks/sequence.py").read_text()
    mutant = next(m for m in sites("blocks/sequence.py", text, HostFinder)
                  if function_of(text, m.line) == f"Sequence.{function}")
    assert [step.arguments for kind in range(3) for step in host.steps(mutant, kind)] == steps


def test_what_tests_call_is_recorded(tmp_path):
    """In pytest's process, and in those that tests start."""
    (tmp_path / "hypermon").mkdir()
    for folder in ("host", "hdl"):
        (tmp_path / "hypermon" / folder).symlink_to(ROOT / folder)
    (tmp_path / "test_calls.py").write_text("""
import subprocess, sys
from hypermon.host.blocks.sequence import Sequence

def test_here():
    Sequence(3).ahead(4)

def test_elsewhere():
    code = "from hypermon.host.blocks.sequence import Sequence; Sequence().take(1)"
    subprocess.run([sys.executable, "-c", code], check=True)
""")
    watch = Path(__file__).parent / "watch"
    environment = os.environ | {"HYPERMON_REACHED": str(tmp_path / "record"), "PYTHONPATH": f"{watch}:{tmp_path}",
                                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "reached", "-p", "no:cacheprovider", "-c", os.devnull,
                    f"--rootdir={tmp_path}", tmp_path / "test_calls.py"], env=environment, cwd=tmp_path, check=True)
    rows = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    here, elsewhere = "test_calls.py::test_here", "test_calls.py::test_elsewhere"
    file = "blocks/sequence.py"
    assert {row[0] for row in rows if row[1:] == [file, "Sequence.ahead"]} == {here, elsewhere}
    assert {row[0] for row in rows if row[1:] == [file, "Sequence.take"]} == {elsewhere}
    assert [(test, passed) for test, seconds, passed in rows if isinstance(seconds, float)] == [
        (here, True), (elsewhere, True)]


# ------------------------------------------------------------------------------------ written by hand

HANDWRITTEN = handwritten.mutants()


def test_handwritten_ones_are_many_and_different():
    assert sum(m.folder == "hdl" for m in HANDWRITTEN) >= 60
    assert sum(m.folder == "host" for m in HANDWRITTEN) >= 10
    assert len({m.name for m in HANDWRITTEN}) == len({(m.path, m.old, m.new) for m in HANDWRITTEN}) == len(HANDWRITTEN)


@pytest.mark.parametrize("mutant", HANDWRITTEN, ids=lambda m: m.name)
def test_handwritten_ones_still_apply(mutant):
    """Each changes the source that it is for, into Python, and names tests that `make test` runs."""
    text = (ROOT / mutant.path).read_text()
    changed = mutant.applied(text)
    assert changed != text
    ast.parse(changed)
    assert mutant.why
    assert mutant.test_files
    assert mutant.key(), "of folders of tests, too"
    for name in mutant.test_files:
        assert (ROOT / name).exists()
        assert "formal" not in name


def test_a_handwritten_one_that_has_rotted_is_named():
    rotten = handwritten.Handwritten("a carry", "drop_gate.py", "self.carry", "0", "why",
                                     "tests/hdl/gate/test_drop_gate.py")
    with pytest.raises(ValueError, match=r"a carry: drop_gate.py has 'self.carry' 0 times, not once"):
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


def test_a_stage_has_the_tests_that_are_named():
    """One under another name would meet no test, and survive."""
    known = {name.removesuffix(".py") for name in stages(HDL)}
    # A board of its own, and a node's port.
    known |= {path.stem for path in (HDL / "regeneration").glob("*.py")} | {"store_port"}
    tables = [steps._ALSO, steps._AROUND, steps._OTHERS, steps._BOARDS_FIRST, *steps._FORMAL.values()]
    assert set().union(*tables) <= known
    named = {name for table in (steps._ALSO, steps._AROUND) for names in table.values() for name in names.split()}
    assert [name for name in sorted(named) if not steps._of(name)] == []
