"""What a search understands, what it says otherwise, and the list of its hits."""

import json
import random

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.view.understood import Names, understood

from tests.host.telling import made_up
from tests.host.view.test_selection import BEGIN, losing
from tests.host.web.test_timeline_tab import asked, within

NAMES = Names(16, {2: "the radio"}, ["begin", "end", "phase", "state machine"],
              ["computing", "at the barrier", "phase"], ["border", "cast"])


@pytest.mark.parametrize(("text", "kind", "name", "nodes"), [
    ("computing", "state", "computing", {}), ("COMPUT of node 3", "state", "COMPUT", {"of": (3,)}),
    ("at the barrier on the radio", "state", "at the barrier", {"on": (2,)}), ("phase", "", "phase", {}),
    ("state phase", "state", "phase", {}), ("border", "message", "border", {}),
    ("state machine", "", "state machine", {}),
    ("next send of node 3 to the radio", "send", "", {"of": (3,), "to": (2,)}), ("the radio", "", "", {"of": (2,)}),
    ("loss of node 15", "loss", "", {"of": (15,)}),
    ("begin of node 3,5", "", "begin", {"of": (3, 5)}), ("begin of nodes 5 and 3", "", "begin", {"of": (3, 5)}),
    ("send of nodes 1-3, 9 to node 0", "send", "", {"of": (1, 2, 3, 9), "to": (0,)}),
    ("nodes 2,4", "", "", {"of": (2, 4)}),
    ("#99", "", "#99", {}), ("7F", "", "7F", {})])
def test_what_is_understood(text, kind, name, nodes):
    wanted = understood(text, NAMES)
    assert (wanted.kind, wanted.name, wanted.nodes) == (kind, name, nodes)


@pytest.mark.parametrize(("text", "said"), [
    ("begin of node 99", "no node 99; nodes are 0 to 15"), ("comptuing", "near: computing"),
    ("state comptuing", "no state 'comptuing'; near: computing"), ("send bordre", "no message 'bordre'; near: border"),
    ("begin of the rado", "no node is named 'the rado'; near: the radio"), ("loss there", "loss of node 3"),
    ("begin of node 3,16", "no node 16; nodes are 0 to 15"), ("begin of nodes 5-3", "'5-3' is no range"),
    ("begin of node 3 of node 5", "of node 3, and of node 5: only one is possible; of nodes 3,5 is of both"),
    ("begin 3,5", "begin of nodes 3,5"), ("begin of node 1-2-3", "no range"),
    ("quux", "there are begin, end, phase"), ("x\u202ey\u0007", "nothing is named")])
def test_what_is_not(text, said):
    with pytest.raises(HypermonError) as refused:
        understood(text, NAMES)
    assert said in str(refused.value)
    assert str(refused.value).isprintable()


def test_without_a_dictionary():
    assert understood("a", Names(4)).name == "a"
    with pytest.raises(HypermonError, match="no dictionary"):
        understood("phase", Names(4))


def test_hits(told):
    """In order, those before the time too; a search continues at the other end."""
    story = told(made_up(random.Random(8), 3000))
    rows = story.sql("select time_ps, node from framed where name = 'begin' order by time_ps, node").fetchall()
    at = rows[120][0]

    async def work(client):
        answer = json.loads(await asked(client, "/timeline/hits", q="begin", at=at))
        found = [(int(hit["time_ps"]), hit["node"]) for hit in answer["hits"]]
        first = next(k for k, row in enumerate(rows) if row[0] == at)
        assert found[-150:] == rows[first:first + 150]
        assert sorted(found[:50]) == rows[first - 50:first]
        assert (answer["before"], answer["after"]) == (True, True)
        answer = json.loads(await asked(client, "/timeline/hits", q="begin job=2 of node 1", at=at))
        assert {hit["node"] for hit in answer["hits"]} == {1}
        last = json.loads(await asked(client, "/timeline/search", q="begin", at=rows[-1][0]))
        assert (int(last["time_ps"]), last["wrapped"]) == (rows[0][0], True)
        last = json.loads(await asked(client, "/timeline/search", q="begin", at=rows[0][0], back=1))
        assert (int(last["time_ps"]), last["wrapped"]) == (rows[-1][0], True)
        last = json.loads(await asked(client, "/timeline/search", q="phase", at=0))
        assert not last["wrapped"]
        for params in ({"q": "begin", "at": "x"}, {"q": "begin"}):
            async with client.get("/timeline/hits", params=params) as refused:
                assert (refused.status, len((await refused.text()).splitlines())) == (400, 1)
        async with client.get("/timeline/hits", params={"q": "node 4", "at": 0}) as refused:
            assert await refused.json() == {"refused": "search: there is no node 4; nodes are 0 to 3"}

    within(story, work)


def took(row, begin="begin_ps", end="end_ps"):
    if row["lost_ps"] is not None:
        return "unknown"
    return "not seen" if row[begin] is None or row[end] is None else str(row[end] - row[begin])


def test_how_long_hits_took(told):
    """States, also those that an event begins; messages from both endpoints; losses."""
    story = losing(told)
    states, messages = story.states().to_pylist(), story.messages().to_pylist()
    of = {"state phase": [(row["begin_ps"], row["node"], took(row)) for row in states if row["name"] == "phase"],
          "begin": [(row["begin_ps"], row["node"], took(row)) for row in states if row["name"] == "it's a job"],
          "loss": [(row["from_ps"], row["node"], str(row["to_ps"] - row["from_ps"]))
                   for row in story.loss().to_pylist()]}
    for text, name, at, node in (("send border", "border", "sent_ps", "sender"),
                                 ("receive border", "border", "received_ps", "receiver"),
                                 ("caught", "cast", "received_ps", "receiver")):
        of[text] = [(row[at], row[node], took(row, "sent_ps", "received_ps")) for row in messages
                    if row["name"] == name]

    async def work(client):
        seen = set()
        for text, own in of.items():
            hits = json.loads(await asked(client, "/timeline/hits", q=text, at=BEGIN))["hits"]
            assert hits
            for hit in hits:
                said = [each for at, node, each in own if (at, node) == (int(hit["time_ps"]), hit["node"])]
                # An item that was cut short begins nothing; of several at one time, none is known to be its own.
                assert hit["took"] in (said if hit["kind"] != "item" or len(said) == 1 else [None]), (text, hit, said)
                seen.add((text, hit["took"] if hit["took"] in ("unknown", "not seen", None) else "known"))
        assert {(text, "known") for text in of} <= seen
        assert {("state phase", "unknown"), ("begin", "unknown"), ("begin", "not seen"),
                ("send border", "unknown")} <= seen
        for hit in json.loads(await asked(client, "/timeline/hits", q="end", at=0))["hits"]:
            assert hit["took"] is None      # it begins nothing

    within(story, work)


def test_hits_of_shown_nodes(told):
    """Hits of other nodes are neither found nor listed, but counted; against the tables."""
    story = told(made_up(random.Random(8), 3000), [(1, 7, 10, 20), (3, 2, 100, 2000)])
    events = story.sql("select time_ps, node from framed where name = 'begin' order by time_ps, node").fetchall()
    messages = [row for row in story.messages().to_pylist() if row["name"] == "border" and row["sent_ps"] is not None]
    of = {"begin": events, "send border": [(row["sent_ps"], row["sender"]) for row in messages],
          "loss": [(row["from_ps"], row["node"]) for row in story.loss().to_pylist()],
          "state phase": [(row["begin_ps"], row["node"]) for row in story.states().to_pylist()
                          if row["name"] == "phase"]}

    async def work(client):
        for text, rows in of.items():
            for nodes, only in (("0.3", (0, 3)), ("2", (2,)), ("none", ())):
                own = sorted(row for row in rows if row[1] in only)
                answer = json.loads(await asked(client, "/timeline/hits", q=text, at=0, nodes=nodes))
                assert [answer[name] for name in ("total", "hidden", "counted")] == [
                    len(own), len(rows) - len(own), True], (text, nodes)
                assert [(int(hit["time_ps"]), hit["node"]) for hit in answer["hits"]] == own[:150]
                at, visited = -1, []
                for _ in range(4):
                    found = json.loads(await asked(client, "/timeline/search", q=text, at=at, nodes=nodes))
                    if found is not None:
                        at = int(found["time_ps"])
                        visited.append((at, found["node"]))
                assert {node for _, node in visited} <= set(only)
                assert bool(visited) == bool(own)
        answer = json.loads(await asked(client, "/timeline/hits", q="begin", at=events[120][0]))
        assert (answer["total"], answer["hidden"]) == (len(events), 0)

    within(story, work)


def test_the_longest_hits(told):
    """Of the whole run, not of those around the time; what is not known comes last."""
    story = told(made_up(random.Random(8), 12000), [(3, 2, 100, 30000)])
    rows = [row for row in story.states().to_pylist() if row["name"] == "it's a job"]
    known = sorted((row["end_ps"] - row["begin_ps"] for row in rows if row["end_ps"] is not None
                    and row["lost_ps"] is None), reverse=True)
    assert len(known) > 400

    async def work(client):
        async def listed(q, **wanted):
            answer = json.loads(await asked(client, "/timeline/hits", q=q, at=0, longest=1, **wanted))
            return [hit["took"] for hit in answer["hits"]], answer["total"], answer["longest"]

        assert await listed("state it's a job") == ([str(ps) for ps in known[:200]], len(rows), True)
        took, total, _ = await listed("state it's a job job=2", nodes="1")
        own = [row for row in rows if row["node"] == 1 and row["key"] == "2"]
        assert len(took) == total == len(own) < 200
        whole = [row["end_ps"] - row["begin_ps"] for row in own if row["end_ps"] is not None and row["lost_ps"] is None]
        assert sum(each.isdigit() for each in took) == len(whole) < len(own)
        assert took[:len(whole)] == [str(ps) for ps in sorted(whole, reverse=True)]
        assert (await listed("begin"))[2] is False      # events have no duration of their own

    within(story, work)
