"""Questions in SQL from the page: what they answer, what they may not do, and where their rows are."""

import asyncio
import random
from pathlib import Path

import pytest
from hypermon.host.errors import HypermonError

from tests.host.external.browsing import browser_page, served
from tests.host.fake_board import FakeBoard, random_run
from tests.host.telling import made_up

pytest.importorskip("aiohttp")
from hypermon.host.view import questions
from hypermon.host.view.questions import answer

from tests.host.web.test_timeline_page import calm, picture, said_of
from tests.host.web.test_timeline_tab import within


@pytest.fixture
def run(make_run):
    return make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000))


def test_rows_and_their_places(run):
    found = answer(run, "select time_ps, node, nibble from events where node = 5 order by time_ps")
    rows = [row for row in run.events().to_pylist() if row["node"] == 5]
    assert found["columns"] == ["time_ps", "node", "nibble"]
    assert found["rows"] == [[str(row["time_ps"]), "5", str(row["nibble"])] for row in rows][:questions.ROWS_MOST]
    assert found["places"] == [[str(row["time_ps"]), 5] for row in rows][:questions.ROWS_MOST]
    assert not found["more"]


def test_other_columns(run):
    """A row without a time has no place; without a node, one in all lanes; a blob is in hex."""
    found = answer(run, "select null::bigint as time_ps, '\\xAB\\x01'::blob as b union all select 2::bigint, null")
    assert sorted(zip(found["rows"], found["places"], strict=True), key=str) == [
        (["2", None], ["2", -1]), ([None, "ab 01"], None)]
    assert answer(run, "select 1.5 as time_ps")["places"] == [None]
    assert answer(run, "select 1 as n")["places"] == []
    assert answer(run, "from range(5000)")["more"]


def test_the_query_of_the_page(told):
    """The slowest messages, in the lanes of their receivers."""
    story = told(made_up(random.Random(8), 400))
    page = Path(__file__).parents[3] / "docs" / "view.md"
    found = answer(story, page.read_text().partition("```sql\n")[2].partition("```")[0])
    slow = sorted((row for row in story.messages().to_pylist() if row["latency_ps"] is not None),
                  key=lambda row: -row["latency_ps"])[:20]
    assert sorted(place for place in found["places"] if place) == sorted(
        [str(row["received_ps"]), row["receiver"]] for row in slow)


@pytest.mark.parametrize(("text", "said"), [
    ("selec 1", "syntax error"), ("", "one statement"), ("select 1; select 2", "one statement"),
    ("create table a as select 1", "one statement"), ("copy loss to 'a.csv'", "one statement"),
    ("set threads = 1", "one statement"), ("from read_text('/etc/passwd')", "query"), ("from nothing", "nothing"),
    ("select '" + "x" * 10_000 + "'", "characters")])
def test_what_is_refused(run, text, said):
    with pytest.raises(HypermonError, match=said) as refused:
        answer(run, text)
    assert len(str(refused.value).splitlines()) == 1


def test_one_that_takes_too_long(run, monkeypatch):
    monkeypatch.setattr(questions, "_SECONDS", 0.2)
    with pytest.raises(HypermonError, match="took more than"):
        answer(run, "select count(*) from range(1000000) a, range(1000000) b where a.range % 7 = b.range % 11")


def test_over_the_page(run):
    async def work(client):
        async with client.post("/timeline/question", data=b"select count(*) as n from loss") as said:
            assert (await said.json())["rows"] == [[str(len(run.loss()))]]
        for data, status in ((b"nonsense", 200), (b"\xff", 400), (b"x" * 100_000, 413)):
            async with client.post("/timeline/question", data=data) as said:
                assert (said.status, len((await said.text()).splitlines())) == (status, 1)
                assert status != 200 or "syntax error" in (await said.json())["refused"]
        await asyncio.sleep(0)

    within(run, work)


def test_in_a_browser(run):
    losses = run.sql("select from_ps, node from loss order by from_ps, node").fetchall()
    with served(run.path, command="view", said=said_of(run)) as address, browser_page(address) as page:
        picture(page)
        page.keyboard.press("q")
        page.keyboard.type("select from_ps as time_ps, node, lost from loss order by time_ps, node")
        page.keyboard.press("Control+Enter")
        page.locator("#sql-table button").first.wait_for()
        assert page.locator("#sql-table tr").count() == len(losses) + 1
        calm(page)
        assert int(picture(page)[2]["marks"]) == len(losses)
        page.locator("#sql-table button").nth(3).click()
        calm(page, 400)
        assert f"a={losses[3][0]}" in page.url
        assert page.inner_text("#detail").startswith(f"node {losses[3][1]}: SQL")
        # An error is a line, and none of the browser's console; it goes when the text is edited. A null is shown.
        page.fill("#sql-text", "select nonsense from nowhere")
        page.get_by_role("button", name="Ask").click()
        page.locator("#sql-note").get_by_text("nowhere").wait_for()
        page.locator("#sql-text").press("End")
        page.keyboard.type(" ")
        assert page.inner_text("#sql-note") == ""
        page.fill("#sql-text", "describe states")
        page.keyboard.press("Control+Enter")
        page.locator("#sql-note").get_by_text("8 rows").wait_for()
        assert "NULL" in page.inner_text("#sql-table")
        heights = page.evaluate("[...document.querySelectorAll('#sql-table th')].map((cell) => cell.offsetHeight)")
        assert max(heights) < 30        # a line; the table scrolls
        assert page.evaluate("(({ scrollWidth: a, clientWidth: b }) => a > b)(document.querySelector('#sql .scroll'))")

        # The tables and their columns; a click inserts a name.
        known = {row[0] for row in run.sql("select table_name from duckdb_columns() where not internal").fetchall()}
        assert set(page.locator("#sql-tables .table").all_inner_texts()) == known >= {"events", "loss", "states"}
        page.fill("#sql-text", "from")
        page.locator("#sql-tables button").get_by_text("messages", exact=True).click()
        assert page.input_value("#sql-text") == "from messages"
        assert "latency_ps" in page.inner_text("#sql-tables")
        page.fill("#sql-text", "select 1 as time_ps")
        page.get_by_role("button", name="Ask").click()
        page.locator("#sql-note").get_by_text("1 row;").wait_for()
        calm(page)
        assert int(page.evaluate("document.getElementById('lanes').dataset.marks")) == 1
        page.get_by_label("Close SQL").click()
        calm(page)
        assert page.evaluate("document.getElementById('lanes').dataset.marks") == "0"
