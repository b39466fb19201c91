"""`hypermon check RUN RULES`: on whole runs, with dictionaries, losses and faults."""

import json
from xml.etree import ElementTree

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes

from tests.host.conftest import event_item
from tests.host.fake_board import FakeBoard

#: node 0 sends to node 1, which receives 2 us later; the windows are 10 ns.
SENT = [(1000, 0, 4, b"\x01\x07", False), (1200, 1, 5, b"\x00\x07", False), (2000, 0, 4, b"\x01\x08", False),
        (2300, 1, 5, b"\x00\x08", False), (9000, 3, 6, b"\x01\x00", False)]
RESPONSE = """
[[rule]]
name = "borders arrive"
kind = "response"
after = "send"
expect = "receive"
key = ["peer", "sequence"]
max = "%s"
"""


@pytest.fixture
def told_us(told):
    """A run of 4 nodes with events; times in units of 10 ns."""
    def make(rows, losses=()):
        return told([(t * 10_000, *rest) for t, *rest in rows], losses)
    return make


@pytest.fixture
def check(run_cli, tmp_path):
    """``check(run, rules, arguments...)``: exit status and JSON, or the line on standard error."""
    def judged(run, rules, *arguments):
        (tmp_path / "rules.toml").write_text(rules)
        status, out, err = run_cli("check", run.path, tmp_path / "rules.toml", "--json", *arguments)
        return status, json.loads(out) if out else [line.replace(str(tmp_path), "") for line in err]
    return judged


@pytest.mark.parametrize(("most", "status", "verdict"), [
    ("10 us", 0, "pass"), ("3.5 us", 4, "undecided"), ("500 ns", 1, "fail")])
def test_messages(told_us, check, most, status, verdict):
    """The windows are 800 ns, so that 3 us are from 2.2 to 3.8 us."""
    found, values = check(told_us(SENT), RESPONSE % most)
    assert (found, values["verdict"]) == (status, verdict)
    [rule] = values["rules"]
    assert {**rule, "where": None} == {
        "name": "borders arrive", "kind": "response", "verdict": verdict, "instances": 2,
        "failed": rule["failed"], "undecided": rule["undecided"], "worst_ps": 3_000_000, "where": None}


@pytest.mark.parametrize(("losses", "status", "failed"), [([], 1, 1), ([(1, 1, 40, 41)], 4, 0)])
def test_a_loss_leaves_it_open(told_us, check, losses, status, failed):
    """A border never arrives; or node 1 lost an item in the windows 40 and 41, from 32 to 33.6 us."""
    found, values = check(told_us([*SENT, (3000, 0, 4, b"\x01\x09", False)], losses), RESPONSE % "10 us")
    assert (found, values["rules"][0]["failed"]) == (status, failed)


def test_junit(told_us, check, tmp_path):
    assert check(told_us(SENT), RESPONSE % "500 ns", "--junit", tmp_path / "x.xml")[0] == 1
    assert ElementTree.parse(tmp_path / "x.xml").getroot().get("failures") == "1"


def test_states_and_conditions(told_us, check):
    rows = [(1000, 0, 1, b"\x05", False), (1600, 0, 2, b"\x05\x00\x00", False), (1700, 1, 1, b"\x05", False),
            (4000, 2, 99, b"", False), (9000, 3, 6, b"\x01\x00", False)]
    rules = """
[[rule]]
name = "jobs are short"
kind = "duration"
state = "it's a job"
max = "10 us"
[[rule]]
name = "job 5 only"
kind = "absence"
event = { event = "begin", where = "job <> 5" }
[[rule]]
name = "node 1 has none"
kind = "absence"
event = { event = "event:1", nodes = [1] }
"""
    _, values = check(told_us(rows), rules)
    assert [rule["verdict"] for rule in values["rules"]] == ["fail", "pass", "fail"]
    assert values["rules"][0]["where"][0] == {"time_ps": 17_000_000, "node": 1}


@pytest.mark.parametrize(("change", "line", "said"), [
    (("expect = \"receive\"", "expect = \"recieve\""), 6, "there is no event 'recieve'; there are receive"),
    (("\"sequence\"]", "\"sequenze\"]"), 7, "send has no field 'sequenze'; it has sequence"),
    (("\"send\"", "{ event = \"send\", where = \"pear = 3\" }"), 5, "where: "),
    (("\"send\"", "{ event = \"send\", where = \"1); drop table x; select (1\" }"), 5, "where: give one condition"),
    (("\"send\"", "{ event = \"send\", where = \"exists (from read_text('/etc/passwd'))\" }"), 5, "where: "),
    (("\"send\"", "{ event = \"send\", nodes = [4] }"), 5, "there is no node 4, but 0 to 3"),
    (("\"send\"", "\"nibble:15\""), 7, "nibble:15 has no field 'peer'"),
    (("\"send\"", "\"nibble:16\""), 5, "nibble:16: there is no such nibble; there are nibble:0 to nibble:15"),
    (("\"send\"", "\"event:256\""), 5, "event:256: there is no such event"),
    (("after =", "scope = { from = \"sent\" }\nafter ="), 5, "there is no event 'sent'; there are send")])
def test_what_does_not_fit(told_us, check, change, line, said):
    status, [error] = check(told_us(SENT), (RESPONSE % "1 us").replace(*change))
    assert status == 2
    assert f"/rules.toml:{line}: borders arrive: " in error
    assert said in error


def test_nibbles_without_a_dictionary(make_run, check):
    board = FakeBoard(nodes=3, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    board.items([LongItem(100 * k, k % 2, b"\x07") for k in range(1, 9)],
                ItemModes.of([ItemMode.NIBBLE, ItemMode.NIBBLE, ItemMode.WORD]))
    run = make_run(board.stop(2000), modes=["nibble", "nibble", "word"], item_timeout_clocks=1000)
    rule = "[[rule]]\nname = 'x'\nkind = 'period'\nevent = 'nibble:7'\nevery = '2 us'\ntolerance = '%s'\n"
    assert check(run, rule % "100 ns")[0] == 0
    assert check(run, rule % "5 ns")[0] == 4
    status, [error] = check(run, rule.replace("nibble:7", "event:7") % "1 us")
    assert (status, "the run has no events yet: hypermon decode RUN --framing event" in error) == (2, True)
    _, [error] = check(run, rule.replace("nibble:7", "tick") % "1 us")
    assert "names need a dictionary" in error
    status, values = check(run, rule.replace("nibble:7", "nibble:3") % "1 us")
    assert (status, values["rules"][0]["instances"]) == (4, 0)


def test_events_in_event_mode(make_run, check):
    """An aborted event may be any event; one whose node is in another mode is none."""
    modes = ItemModes.of([ItemMode.EVENT, ItemMode.EVENT])
    board = FakeBoard(nodes=2, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    board.items([event_item(1000, 0, 17), event_item(1500, 1, 18), event_item(3000, 0, 17)], modes)
    run = make_run(board.stop(4000), modes=["event", "event"], item_timeout_clocks=1000)
    rule = "[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'event:19'\n"
    assert check(run, rule)[0] == 0
    board = FakeBoard(nodes=2, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    board.items([event_item(1000, 0, 17), event_item(1500, 1, 18, 0, filler=2)], modes)
    run = make_run(board.stop(4000), modes=["event", "event"], item_timeout_clocks=1000, name="aborted")
    assert check(run, rule)[0] == 4


def test_a_stream_that_was_cut(told_us, make_run, check):
    board = FakeBoard(nodes=2)
    run = make_run(board.start(), name="cut")
    rule = "[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'nibble:7'\n"
    status, values = check(run, rule)
    assert (status, values["rules"][0]["undecided"]) == (4, 2)


def test_junit_without_rules(run_cli, told_us):
    status, _, [error] = run_cli("check", told_us(SENT).path, "--junit", "x.xml")
    assert (status, "there are no verdicts without rules" in error) == (2, True)
