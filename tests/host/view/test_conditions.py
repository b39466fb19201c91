"""Conditions on fields in a search, against the rows of the tables; what is not used is refused."""

import json
import operator
import random

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.view.conditions import Condition, Field, conditions, where

from tests.host.telling import made_up
from tests.host.web.test_timeline_tab import asked, within

SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize(("text", "found", "rest"), [
    ("begin job=2 of node 1", [("job", "=", "2")], "begin of node 1"),
    ("Load <= -7 end", [("load", "<=", "-7")], "end"), ("latency > 1.5 us", [("latency", ">", "1.5 us")], ""),
    ("a>1 a!=x b=two", [("a", ">", "1"), ("a", "!=", "x"), ("b", "=", "two")], ""), ("state <img", [], "state <img")])
def test_conditions_of_a_text(text, found, rest):
    made, left = conditions(text)
    assert ([(each.name, each.sign, each.value) for each in made], " ".join(left.split())) == (found, rest)


@pytest.mark.parametrize(("kind", "value", "said"), [
    ("whole", "many", "'many' is not a number"), ("VARCHAR", "7", "has no numbers"), ("time", "7", "x<1ms")])
def test_what_cannot_be_compared(kind, value, said):
    with pytest.raises(HypermonError, match=said):
        where(Condition("x", "<", value), Field("x", kind), {})


@pytest.fixture
def story(told):
    return told(made_up(random.Random(8), 900), [(1, 7, 10, 20), (3, 2, 100, 300)])


def test_every_condition_is_met(story):
    """The hits are exactly the rows that a query finds."""
    items = story.sql("select * from framed").to_arrow_table().to_pylist()
    messages = story.messages().to_pylist()

    async def work(client):
        async def hits(q):
            answer = json.loads(await asked(client, "/timeline/hits", q=q, at=0))
            return [(int(hit["time_ps"]), hit["node"]) for hit in answer["hits"]]

        def first(rows):
            return sorted(rows)[:150]

        for sign, holds in SIGNS.items():
            assert await hits(f"end load{sign}-3 of node 1") == first(
                (row["time_ps"], 1) for row in items
                if row["name"] == "end" and row["node"] == 1 and row["load"] is not None and holds(row["load"], -3))
            sent = [row for row in messages if row["sent_ps"] is not None and row["sender"] == 3]
            assert await hits(f"send border sequence{sign}1 of node 3") == first(
                (row["sent_ps"], 3) for row in sent if row["name"] == "border" and holds(int(row["key"]), 1))
            assert await hits(f"send latency {sign} 20 us of node 3") == first(
                (row["sent_ps"], 3) for row in sent
                if row["latency_ps"] is not None and holds(row["latency_ps"], 2 * 10**7))
        assert await hits("end load>100 load<200") == first(
            (row["time_ps"], row["node"]) for row in items
            if row["name"] == "end" and row["load"] is not None and 100 < row["load"] < 200)
        assert await hits("send sequence=9 of node 3") == []
        assert await hits("send number=3") == first((row["sent_ps"], -1 if row["sender"] is None else row["sender"])
                                                    for row in messages if row["name"] == "cast" and row["key"] == "3"
                                                    and row["sent_ps"] is not None)
        states = story.states().to_pylist()
        assert await hits("state job key=2 duration>50us") == first(
            (row["begin_ps"], row["node"]) for row in states if row["name"] == "it's a job" and row["key"] == "2"
            and row["end_ps"] is not None and row["end_ps"] - row["begin_ps"] > 5 * 10**7)
        assert [node for _, node in await hits("loss lost>5")] == [1]
        assert await hits("begin payload=02") == first((row["time_ps"], row["node"]) for row in items
                                                       if row["name"] == "begin" and row["payload"] == b"\x02")

    within(story, work)


@pytest.mark.parametrize(("q", "said"), [
    ("send sequenze=9", "there is no field 'sequenze' of messages; near: sequence"),
    ("send border number=3", "there is no field 'number' of messages 'border'"),
    ("loss colour=3", "there is no field 'colour' of losses"),
    ("state phase colour=3", "no field 'colour' of states"),
    ("begin load=3", "'begin' has no field 'load'; there are job"),
    ("phase job=3", "'phase' has no field 'job'; it has none"),
    ("end load>big", "'big' is not a number"),
    ("end load=big", "'big' is not a number"),
    ("send latency>5", "a time has a unit: latency>1ms"),
    ("begin of node 1 to node 2", "only a message has a receiver"),
    ("node 1 node 2", "of node 1, and of node 2: only one"),
    ("send of node 1 from node 2", "only one is possible"),
    ("receive of node 1 to node 2", "only one is possible"),
    ("loss of node 1 from node 2", "only one is possible"),
    ("begin " + "x" * 200, "more than 200 characters"),
    ("0.001166", "a time has a unit: 1 ms")])
def test_what_would_not_be_used_is_refused(story, q, said):
    async def work(client):
        for path in ("/timeline/search", "/timeline/hits"):
            async with client.get(path, params={"q": q, "at": 0}) as answer:
                text = await answer.text()
                assert answer.status != 200 or "refused" in text
                assert said in text
                assert len(text.splitlines()) == 1

    within(story, work)


def test_previous_turns_the_direction(story):
    async def work(client):
        there, back = [json.loads(await asked(client, "/timeline/search", q=q, at=3 * 10**8, back=back))
                       for q, back in (("previous begin", 0), ("begin", 1))]
        assert there == back
        assert int(there["time_ps"]) < 3 * 10**8

    within(story, work)
