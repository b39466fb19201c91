"""Verdicts as a table, as JSON and as a JUnit file."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypermon.host.contracts.judged import Judged, Place
from hypermon.host.contracts.rules import Rule
from hypermon.host.contracts.verdicts import STATUS, as_dict, junit, overall, print_verdicts, verdict_lines
from hypermon.host.text.console import make_console

PASS = Judged(Rule("fine", "absence", 1, {}), "pass", 0, 0, 0)
FAIL = Judged(Rule("[late] & <bad>", "response", 5, {}), "fail", 9, 1, 0, 12_000_000,
              (Place(3 * 10**12, 4, True, "violated"),))
OPEN = Judged(Rule("open", "rate", 9, {}), "undecided", 2, 0, 1, None,
              (Place(5, 1, False, "node 1 lost 14 items between 1.2003 s and 1.2019 s"),), ("a note",))


@pytest.mark.parametrize(("judged", "verdict", "status"), [
    ([PASS], "pass", 0), ([PASS, OPEN], "undecided", 4), ([OPEN, FAIL, PASS], "fail", 1)])
def test_overall(judged, verdict, status):
    assert overall(judged) == verdict
    assert STATUS[verdict] == status


def test_json():
    assert as_dict([FAIL, PASS]) == {"verdict": "fail", "rules": [
        {"name": "[late] & <bad>", "kind": "response", "verdict": "fail", "instances": 9, "failed": 1, "undecided": 0,
         "worst_ps": 12_000_000, "where": [{"time_ps": 3 * 10**12, "node": 4}]},
        {"name": "fine", "kind": "absence", "verdict": "pass", "instances": 0, "failed": 0, "undecided": 0,
         "worst_ps": None, "where": []}]}


def test_table(capsys):
    print_verdicts([PASS, FAIL, OPEN], Path("RUN"), make_console())
    out = capsys.readouterr().out
    assert "[late] & <bad>  response  fail" in out
    assert "3.0 s  node 4  violated  http://127.0.0.1:8019/#from=2999950000000&span=100000000&a=3000000000000" in out
    assert "node 1 lost 14 items between 1.2003 s and 1.2019 s" in out
    assert "a note" in out
    assert "hypermon view RUN" in out


def test_a_link_shows_what_was_measured(capsys):
    """Both ends of an instance; and the number of places that are not listed."""
    places = tuple(Place(k * 10**12, 0, True, "violated: it lasts 5.0 ms", 5 * 10**9) for k in range(1, 3))
    rule = Rule("long", "duration", 1, {})
    print_verdicts([Judged(rule, "fail", 9, 16, 26, 5 * 10**9, places)], Path("RUN"), make_console())
    out = capsys.readouterr().out
    assert "#from=999950000000&span=5100000000&a=1000000000000&b=1005000000000" in out
    assert "and 14 violated and 26 undecided places more" in out
    assert verdict_lines(Judged(rule, "fail", 9, 2, 1, None, places))[-1] == "  and 1 undecided place more"


def test_junit():
    suite = ElementTree.fromstring(junit([PASS, FAIL, OPEN], Path("RUN")))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[(child.tag, child.get("type")) for child in case] for case in suite] == [
        [], [("failure", "fail")], [("error", "undecided")]]
    assert "node 1 lost 14 items" in suite[2][0].text
