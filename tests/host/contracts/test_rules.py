"""Rules files: what is read, and the one line about each fault."""

import pytest
from hypermon.host.contracts.rules import KINDS, Event, load_rules
from hypermon.host.errors import InputError

#: A rule of each kind, as the specification writes it.
EACH = """
[[rule]]
name = "a"
kind = "response"
after = "send"
expect = { event = "receive", nodes = [3, 4], where = "peer = 5 and bytes > 100" }
min = "1 us"
max = "20 us"
key = ["sequence"]
[[rule]]
name = "b"
kind = "absence"
event = "nibble:7"
between = ["nibble:1", "nibble:2"]
[[rule]]
name = "c"
kind = "absence"
event = "event:17"
after = "send"
within = "3 ms"
[[rule]]
name = "d"
kind = "precedence"
event = "receive"
needs = "send"
within = "1 s"
[[rule]]
name = "e"
kind = "period"
event = "tick"
every = "1 ms"
tolerance = "10 us"
[[rule]]
name = "f"
kind = "duration"
begin = "begin"
end = "end"
max = "5 ms"
quantile = 0.99
[[rule]]
name = "g"
kind = "rate"
event = "tick"
per = "1 s"
min = 10
max = 20
[[rule]]
name = "h"
kind = "exclusion"
spans = [["enter", "leave"], ["lock", "unlock"]]
[[rule]]
name = "i"
kind = "together"
event = "barrier"
within = "1 us"
[[rule]]
name = "j"
kind = "order"
events = ["one", "two", "three"]
[[rule]]
name = "k"
kind = "share"
state = "busy"
min = 0.1
max = 0.5
"""


def test_each_kind(tmp_path):
    (tmp_path / "rules.toml").write_text(EACH)
    rules = load_rules(tmp_path / "rules.toml").rules
    assert {rule.kind for rule in rules} == set(KINDS)
    first = rules[0]
    assert first.events["after"] == (Event("send"),)
    assert first.events["expect"] == (Event("receive", (3, 4), "peer = 5 and bytes > 100"),)
    assert (first.ps("min"), first.ps("max"), first.key, first.line) == (10**6, 20 * 10**6, ("sequence",), 2)
    assert [rule.name for rule in rules if rule.same_node] == ["e", "f", "g", "j"]
    assert rules[7].events["spans"] == (Event("enter"), Event("leave"), Event("lock"), Event("unlock"))


@pytest.mark.parametrize(("text", "line", "said"), [
    ("", None, "this one has none"),
    ("[rule]\nname = 'x'\n", None, "this one has none"),
    ("[[rules]]\nname = 'x'\n", 1, "a rules file is a list of [[rule]]; there is no 'rules'"),
    ("[[rule]]\nname = 'x'\n", 1, "kind is missing; there are response"),
    ("[[rule]]\nkind = 'share'\n", 1, "rule 1: name is missing"),
    ("[[rule]]\nname = 'x'\nkind = 'respons'\n", 3, "there is no kind 'respons'; there are response"),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = 'a'\nexpekt = 'b'\n", 5,
     "response has no 'expekt'; it has expect"),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = 'a'\n", 1, "response needs after and expect; expect is missing"),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = 'a'\nexpect = 'b'\nmax = 20\n", 6, 'such as "20 us"'),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = 'a'\nexpect = 'b'\nmin = '2 us'\nmax = '1 us'\n", 6,
     "min is more than max"),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = { event = 'a', node = 3 }\nexpect = 'b'\n", 4,
     "an event has event, nodes and where; not 'node'"),
    ("[[rule]]\nname = 'x'\nkind = 'response'\nafter = { event = 'a', nodes = [-1] }\nexpect = 'b'\n", 4, "nodes is"),
    ("[[rule]]\nname = 'x'\nkind = 'rate'\nevent = 'a'\nper = '1 s'\nmax = 1.5\n", 6, "it is a count, 0 or more"),
    ("[[rule]]\nname = 'x'\nkind = 'rate'\nevent = 'a'\nper = '0 s'\nmax = 1\n", 5, "longer than 0"),
    ("[[rule]]\nname = 'x'\nkind = 'rate'\nevent = 'a'\nper = '1 s'\n", 1, "rate needs min, max or both"),
    ("[[rule]]\nname = 'x'\nkind = 'share'\nstate = 'a'\nmax = 2\n", 5, "from 0 to 1"),
    ("[[rule]]\nname = 'x'\nkind = 'share'\nstate = 'a'\nkey = ['k']\nmax = 1\n", 5, "share has no 'key'"),
    ("[[rule]]\nname = 'x'\nkind = 'duration'\nstate = 'a'\nbegin = 'b'\nend = 'c'\nmax = '1 s'\n", 1,
     "either state, or begin and end"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nwithin = '1 s'\n", 1, "after and within belong together"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nbetween = ['b']\n", 5, "a list of 2 events"),
    ("[[rule]]\nname = 'x'\nkind = 'exclusion'\nspans = [['a']]\n", 4, "a list of 2 events"),
    ("[[rule]]\nname = 'x'\nkind = 'order'\nevents = ['a']\n", 4, "a list of 2 or more events"),
    ("[[rule]]\nname = 'x'\nkind = 'order'\nevents = ['a', 'b']\nkey = 'k'\n", 5, "key is a list of fields"),
    ("[[rule]]\nname = 'x'\nkind = 'order'\nevents = ['a', 'b']\nsame_node = 1\n", 5, "true or false"),
    ("[[rule]]\nname = 'a'\nkind = 'absence'\nevent = 'x'\n[[rule]]\nname = 'b'\nkind = 'share'\nmax = 'x'\n", 8,
     "b: max: it is a number from 0 to 1"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nscope = 'b'\n", 5, 'a scope is { from = "start" }'),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nscope = { same_node = true }\n", 5, 'a scope is { from'),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nscope = { from = 'b', until = 'c' }\n", 5,
     "a scope has from, to and same_node; not 'until'"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nscope = { from = 'b', to = 'b' }\n", 5,
     "from and to are the same event"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\nscope = { from = 'b', same_node = 1 }\n", 5,
     "true or false"),
    ("[[rule]]\nname = 'x'\nkind = 'absence'\nevent = 'a'\n[rule.scope]\nfrom = { event = 3 }\n", 5,
     "an event needs its name"),
    ("[[rule]]\nname = 'x'\nkind = 'exclusion'\nspans = [['a', 'b']]\nscope = { from = 'b', same_node = true }\n", 5,
     "in a scope of all nodes"),
    ("[[rule]\n", 1, "not TOML"),
    ("rule = 3\n", None, "this one has none"),
])
def test_faults(tmp_path, text, line, said):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_rules(path)
    assert said in error.value.reason
    assert error.value.line == line
    assert "\n" not in str(error.value)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_rules(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        load_rules(tmp_path / "bytes.toml")


def test_two_rules_of_one_name(tmp_path):
    """In every output a verdict has the name of its rule."""
    path = tmp_path / "rules.toml"
    path.write_text(EACH + '[[rule]]\nkind = "absence"\nname = "c"\nevent = "nibble:1"\n')
    line = path.read_text().splitlines().index('name = "c"') + 1
    with pytest.raises(InputError, match=rf": c: the rule in line {line - 1} has this name, too") as error:
        load_rules(path)
    assert error.value.line == len(path.read_text().splitlines()) - 1
